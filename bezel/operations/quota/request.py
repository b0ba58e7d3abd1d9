"""Request for a higher quota in two steps: a QuotaPreference of Cloud Quotas, created or changed.

Amounts are in things (GPUs, chips, vCPUs, GiB): a quota of the RTX PRO 6000 is in milli-GPU, that of memory in bytes.
Google decides within minutes or days, so the outcome is the state of the request: `bezel quota` shows it later. A
second request for the same quota and place changes the first; nothing is deleted, and no limit is lowered.
"""

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import ProjectStack, Region, Zone
from bezel.operations.changes.basis import check, place_of
from bezel.operations.changes.plan import Outcome, Plan, PlannedChange, plain
from bezel.operations.context import Context
from bezel.operations.plan.plan import plan_of
from bezel.operations.quota.known import KnownQuota, known_quotas, needs_of
from bezel.operations.quota.places import refuse_both
from bezel.operations.quota.requests_made import request_of
from bezel.operations.touches import BeyondStackError
from bezel.rest.cloud_quotas import Limit, info_of, value_in
from bezel.rest.quota_preferences import QuotaPreference, dimensions_of, preferences_of, request_value
from bezel_base.errors import NOT_SET, Problem, UserError

_NAME = "quota_request"
_TYPE = "cloudquotas.googleapis.com/QuotaPreference"


class QuotaRequestArguments(Arguments):
    """Which quota, where, and how much."""

    quota: Annotated[str, Reach.INSIDE] = Field(
        pattern=r"^[A-Za-z0-9-]{1,120}$",
        description="id of the quota, as `bezel quota` shows it",
        examples=["CpuAllocPerProjectRegion"],
    )
    amount: Annotated[float, Reach.INSIDE, Option("N")] = Field(
        gt=0, le=1e9, description="wanted limit, in the unit that `bezel quota` shows"
    )
    region: Annotated[Region | None, Reach.INSIDE] = Field(
        None, description="region of a quota that is counted by region"
    )
    zone: Annotated[Zone | None, Reach.INSIDE] = Field(None, description="zone of a quota that is counted by zone")
    stack: ProjectStack = None
    email: Annotated[str, Reach.INSIDE, Option("ADDRESS")] = Field(
        "",
        pattern=r"^$|^[^@\s]{1,64}@[^@\s]{1,180}$",
        description="address for Google's questions; without it a request with questions is denied",
        examples=["team@example.com"],
    )
    justification: Annotated[str, Reach.INSIDE, Option("TEXT")] = Field(
        "", max_length=1000, description="reason of the request, for Google"
    )


@dataclass(frozen=True)
class _Target:
    """A quota in a place of a project: its limit in the API's unit, and the request that it has already."""

    known_quota: KnownQuota
    project: str
    limit: Limit
    allowed: float
    existing: QuotaPreference | None
    ineligible: str

    @property
    def name(self) -> str:
        return f"{self.limit.quota_id} in {self.limit.place}"


def plan_request(context: Context, arguments: QuotaRequestArguments) -> Plan:
    """Plan a request.

    Raises:
        UserError: The quota or the place is unknown, or the project cannot be asked.
    """
    target = _target(context, arguments)
    value, quota, existing = _value(target, arguments.amount), target.known_quota.quota, target.existing
    refusals = [target.ineligible] if target.ineligible else []
    enough = value <= target.allowed
    waits = existing is not None and existing.state == "pending" and existing.preferred == value
    present = "no limit" if target.allowed == math.inf else quota.things(target.allowed)
    if enough:
        summary = f"nothing to request: the limit of {target.project} is {present} already"
    elif waits:
        summary = f"nothing to request: {quota.things(value)} are requested already, and Google has not decided"
    else:
        summary = f"request {quota.things(value)}, now {present}, of {target.project}: {target.known_quota.title}"
    change = PlannedChange(op="update" if existing else "create", name=target.name, type=_TYPE)
    return Plan(
        operation=_NAME,
        target=target.name,
        summary=summary,
        arguments=arguments.model_dump(mode="json"),
        changes=() if enough or waits else (change,),
        warnings=_warnings(arguments, existing),
        refusals=tuple(refusals),
        basis=_basis(context, target),
        is_empty=enough or waits,
    )


def apply_request(context: Context, plan: Plan) -> Outcome:
    """Send the request that was planned.

    Raises:
        ChangedError: The limit or an earlier request has changed since; nothing was done.
        UserError: Google refuses it.
    """
    arguments = QuotaRequestArguments.model_validate(plan.arguments)
    target = _target(context, arguments)
    check(plan, _basis(context, target))
    if plan.is_empty:
        return Outcome(operation=_NAME, target=target.name, verdict="unchanged")
    made = request_value(
        context.google,
        target.project,
        target.limit,
        _value(target, arguments.amount),
        existing=target.existing,
        email=arguments.email,
        justification=arguments.justification,
    )
    shown = request_of(made, target.known_quota)
    state = plain(shown.line)
    look = "look at its state later: `bezel quota`"
    return Outcome(
        operation=_NAME,
        target=target.name,
        verdict="failed" if shown.state == "denied" else "done",
        changes=plan.changes,
        details=() if shown.state == "denied" else (state, look),
        problems=(state,) if shown.state == "denied" else (),
    )


def check_scope(context: Context, arguments: QuotaRequestArguments) -> None:
    """Check that a quota and its place are among those that the stack counts in.

    Raises:
        BeyondStackError: They are not.
        UserError: The stack cannot be planned, or both a region and a zone are given.
    """
    refuse_both(arguments.region, arguments.zone)
    needs = needs_of(plan_of(context, str(arguments.stack))[0])
    counted = {(need.quota.id, need.place) for need in needs}
    place = arguments.region or arguments.zone
    if (arguments.quota, place) in counted:
        return
    if arguments.quota not in {quota for quota, _ in counted}:
        choices = ", ".join(sorted({quota for quota, _ in counted}))
        raise BeyondStackError("QUOTA", arguments.quota, arguments.stack, f"choose one of {choices or '(none)'}.")
    kind = "zone" if arguments.zone or _known_quota(arguments).kind == "zone" else "region"
    choices = ", ".join(sorted(there for quota, there in counted if quota == arguments.quota))
    raise BeyondStackError(f"--{kind}", place or NOT_SET, arguments.stack, f"name one of {choices}.")


def _target(context: Context, arguments: QuotaRequestArguments) -> _Target:
    refuse_both(arguments.region, arguments.zone)
    known_quota = _known_quota(arguments)
    place = arguments.zone if known_quota.kind == "zone" else arguments.region
    if place is None:
        other_place = arguments.region or arguments.zone
        text = f"{arguments.quota} has a value for each {known_quota.kind}."
        raise UserError(
            Problem(f"--{known_quota.kind}", other_place, text, f"name one of {', '.join(known_quota.places)}.")
        )
    project = context.cloud_project(arguments.stack)
    limit = Limit(known_quota.quota.service, known_quota.quota.id, place, known_quota.quota.dimensions)
    info = info_of(context.google, project, limit.service, limit.quota_id)
    allowed = None if info is None else value_in(info, limit)
    if info is None or allowed is None:
        text = f"Google states no value of it in {place}, so there is nothing to raise."
        repair = "`bezel quota` shows where it has one."
        raise UserError(Problem("QUOTA", arguments.quota, text, repair))
    same = [
        each
        for each in preferences_of(context.google, project)
        if (each.service, each.quota_id, each.dimensions) == (limit.service, limit.quota_id, dimensions_of(limit))
    ]
    eligibility = info.get("quotaIncreaseEligibility") or {}
    ineligible = ""
    if info.get("isFixed"):
        ineligible = f"{limit.quota_id} is fixed: Google raises it for no one"
    elif eligibility and not eligibility.get("isEligible"):
        reason = plain(str(eligibility.get("ineligibilityReason") or "no reason stated"))
        ineligible = f"{project} may not request more of {limit.quota_id}: {reason}"
    return _Target(known_quota, project, limit, allowed.value, next(iter(same), None), ineligible)


def _known_quota(arguments: QuotaRequestArguments) -> KnownQuota:
    quotas = {each.quota.id: each for each in known_quotas()}
    if arguments.quota not in quotas:
        text = "it is none of those that deployments count in."
        raise UserError(Problem("QUOTA", arguments.quota, text, f"choose one of {', '.join(sorted(quotas))}."))
    return quotas[arguments.quota]


def _value(target: _Target, amount: float) -> int:
    """The amount in the API's unit.

    Raises:
        UserError: It is no whole number of that unit.
    """
    value = amount * target.known_quota.quota.unit
    if not math.isclose(value, round(value), abs_tol=1e-6):
        text = f"{target.limit.quota_id} counts whole {target.known_quota.quota.thing}s."
        raise UserError(Problem("--amount", amount, text, f"request {math.ceil(amount)}."))
    return round(value)


def _warnings(arguments: QuotaRequestArguments, existing: QuotaPreference | None) -> tuple[str, ...]:
    warnings = [] if arguments.email else ["without --email Google denies a request that it has a question about"]
    if existing is not None and existing.state == "denied":
        detail = f" ({plain(existing.detail)})" if existing.detail else ""
        warnings.append(f"an earlier request of {existing.updated} was denied{detail}")
    return tuple(warnings)


def _basis(context: Context, target: _Target) -> dict[str, str]:
    return {
        **place_of(context),
        "quota_project": target.project,
        "limit": f"{target.allowed:g}",
        "request": target.existing.etag if target.existing else "",
    }
