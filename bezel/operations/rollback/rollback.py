"""Rollback of a service in two steps: all its traffic goes to the last revision that passed its check.

It is no deploy: the engine does not run, the stack's file and its state stay as they are, and Cloud Run has the new
traffic within seconds. The service keeps a record of it (bezel.outside_changes.rollback), by which status, drift and
the next preview know it; the next deploy ends it. Leaves out leased machines, which have no revisions.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from bezel.diagnosis.revision_traffic import shares
from bezel.engine.locks.held import HeldLock
from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import Region, Stack, Wait
from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.plan import Outcome, Plan, PlannedChange, plain, plain_all
from bezel.operations.changes.stack_lock import check_cancelled, check_engine, under_lock, wait_of
from bezel.operations.context import Context
from bezel.operations.deploy.deploy import price_of
from bezel.operations.deployment.deployment import SERVICE_TYPE, DeployedService, Deployment
from bezel.operations.live_price import live_cost
from bezel.operations.rollback.choice import Choice, choose, rollback_command, short
from bezel.operations.rollback.differences import difference_notes, model_warnings
from bezel.operations.rollback.move import NotMovedError, move, targets_of
from bezel.operations.rollback.needs import Needs, needs_of
from bezel.operations.rollback.passed import ended_rollback, passed_revisions
from bezel.operations.rollback.start import start_notes
from bezel.operations.status.live_service import read_service
from bezel.outside_changes.rollback import Rollback, in_force, left_by, new_rollback
from bezel.resource_cost.price_line import price_line
from bezel.resource_cost.stack_cost import StackCost
from bezel_base.errors import NOT_SET, Problem, UserError, one_line
from bezel_base.text.shell import shell_word

_MOST_REVISIONS = 1000
_MOST_ORIGINS = 4


class RollbackArguments(Arguments):
    """Which stack, and to which revision."""

    stack: Stack
    to: Annotated[str | None, Reach.INSIDE, Option("REVISION")] = Field(
        None,
        pattern=r"^[a-z0-9-]{1,63}$",
        examples=["bezel-l4-qat-00002-abc"],
        description="revision that gets the traffic (default: the last before it that passed its check)",
    )
    wait: Wait = "15m"
    region: Annotated[Region | None, Reach.INSIDE, Option("REGION")] = Field(
        None, description="region whose service is rolled back; needed where the stack has several"
    )


@dataclass(frozen=True)
class _Seen:
    """What a rollback starts from."""

    deployment: Deployment
    service: DeployedService
    live: Mapping[str, Any]
    revisions: Mapping[str, Mapping[str, Any]]
    passed: Mapping[str, Mapping[str, Any]]
    pin: Rollback | None


def plan_rollback(context: Context, arguments: RollbackArguments) -> Plan:
    """Plan a move of a service's traffic to an earlier revision.

    Raises:
        NotDeployedError: The backend has no such stack.
        UserError: The stack leases machines, or no revision can be chosen.
        RestError: Cloud Run could not be asked.
    """
    wait_of(arguments.wait)
    seen = _look(context, arguments.stack, arguments.region)
    choice = _choose(seen, arguments)
    before = _price(seen, seen.live.get("traffic") or ())
    plan = Plan(
        operation="rollback",
        target=arguments.stack,
        summary=plain(choice.summary),
        arguments=arguments.model_dump(mode="json"),
        price=price_line(before, before),
        price_before=price_of(before),
        price_after=price_of(before),
        basis=_basis(context, seen, choice.target),
        is_empty=not choice.target,
    )
    return _with_target(context, plan, seen, choice) if choice.target else plan


def apply_rollback(context: Context, plan: Plan) -> Outcome:
    """Move the traffic as planned.

    Raises:
        ChangedError: The service has changed since; nothing was done.
        LockedError: Another run works on the stack.
        CancelledError: The caller gave up before anything was done.
        UserError: The backend cannot be used, or no revision can be chosen any more.
        RestError: Cloud Run could not be asked.
    """
    arguments = RollbackArguments.model_validate(plan.arguments)

    def step(lock: HeldLock | None) -> Outcome:
        seen = _look(context, arguments.stack, arguments.region)
        check(plan, _basis(context, seen, _choose(seen, arguments).target))
        if plan.is_empty:
            return Outcome(operation=plan.operation, target=plan.target, verdict="unchanged", price=plan.price)
        check_cancelled(context)
        if lock is None:
            check_engine(context, arguments.stack)
        else:
            lock.look()
            lock.check()
        return _move_traffic(context, plan, seen, arguments)

    check_place(context, plan)
    return under_lock(context, arguments.stack, wait_of(arguments.wait), step)


def _look(context: Context, stack: str, region: str | None) -> _Seen:
    """The stack as its state and Cloud Run have it, of several regions the named one.

    Raises:
        UserError: It has no service with revisions of a model, or Cloud Run has none.
        RestError: Cloud Run could not be asked.
    """
    deployment = context.deployment(stack)
    regions = list(deployment.urls)
    if region is None and len(regions) > 1 and not deployment.leases:
        consequence = "each of its regions has revisions of its own, so none can be chosen for all of them."
        first = f"`bezel rollback {shell_word(stack)} --region {regions[0]}`"
        raise UserError(Problem("--region", NOT_SET, consequence, f"name one of {', '.join(regions)}, e.g. {first}."))
    deployment = deployment.of_one_region(region)
    service = deployment.service
    if deployment.leases or (service is not None and not service.has_gpu):
        consequence = "it leases machines, which have no revisions: there is no earlier one to move the traffic to."
        repair = (
            f"restore an earlier Pulumi.{stack}.yaml (`git log -- Pulumi.{stack}.yaml`), then `bezel deploy "
            f"{shell_word(stack)}`; it replaces the machines whose settings differ."
        )
        raise UserError(Problem("STACK", stack, consequence, repair))
    live = None if service is None else read_service(context, service)
    if service is None or live is None:
        raise UserError(
            Problem("STACK", stack, "it has no service.", f"deploy it: `bezel deploy {shell_word(stack)}`.")
        )
    revisions: dict[str, Mapping[str, Any]] = {}
    url = f"{context.address('CLOUD_RUN_V2')}{service.id}/revisions"
    for each in context.google.pages(url, "revisions", params={"pageSize": 100}):
        revisions[short(each.get("name"))] = each
        if len(revisions) >= _MOST_REVISIONS:
            break
    pin = in_force(live, ended_rollback(deployment))
    return _Seen(deployment, service, live, revisions, passed_revisions(deployment), pin)


def _choose(seen: _Seen, arguments: RollbackArguments) -> Choice:
    passed, revisions = list(seen.passed), list(seen.revisions.values())
    return choose(arguments.stack, seen.live, revisions, passed, seen.pin, arguments.to, arguments.region)


def _with_target(context: Context, plan: Plan, seen: _Seen, choice: Choice) -> Plan:
    """The plan with what is known of the revision that gets the traffic."""
    target, stack = seen.revisions[choice.target], seen.deployment.stack
    entry, serving = seen.passed.get(choice.target, {}), list(shares(seen.live))
    needs = needs_of(context, target)
    before = _price(seen, seen.live.get("traffic") or ())
    after = _price(seen, [each.as_json() for each in targets_of(seen.live, choice.target)])
    refusals = [f"{choice.target} cannot start: {text}" for text in needs.gone]
    if refusals:
        refusals.append(
            f"`{rollback_command(stack, plan.arguments.get('region'))} --to REVISION` names another revision"
        )
    present = seen.revisions.get(max(serving, key=lambda name: shares(seen.live)[name]), {})
    return plan.model_copy(
        update={
            "changes": (
                PlannedChange(op="update", name=seen.service.name, type=SERVICE_TYPE, properties=("traffic",)),
            ),
            "price": price_line(before, after),
            "price_after": price_of(after),
            "warnings": plain_all(
                [*choice.warnings, *model_warnings(seen.deployment.model, target, entry), *_state_warnings(seen),
                 *needs.not_judged]
            ),
            "notes": plain_all(
                [*start_notes(context, seen.service, seen.live, target, entry.get("start"), serving),
                 *difference_notes(present, target), *_found_notes(needs), *_standing_notes(seen, choice.target)]
            ),
            "refusals": plain_all(refusals),
        }
    )  # fmt: skip


def _found_notes(needs: Needs) -> list[str]:
    return [f"exists still: {', '.join(needs.existing)}"] if needs.existing else []


def _state_warnings(seen: _Seen) -> Iterator[str]:
    stack = seen.deployment.stack
    if seen.deployment.is_pending:
        recover = f"`bezel recover {shell_word(stack)}`"
        yield f"a run of the engine ended in the middle of an operation: {recover} after the rollback"
    if seen.live.get("reconciling"):
        yield "Cloud Run is still working on an earlier change of the service"
    if seen.pin is not None:
        yield f"the traffic is {seen.pin.sentence()}; this takes its place"


def _standing_notes(seen: _Seen, target: str) -> Iterator[str]:
    yield (
        f"{target} stays pinned until the next deploy, which moves the traffic to its newest revision: correct "
        f"Pulumi.{seen.deployment.stack}.yaml before"
    )
    yield "who may call it (IAM), its ingress and its own scaling belong to the service, and stay as they are now"
    if any(str(each.get("type")).endswith(":ScheduledMinimum") for each in seen.deployment.resources):
        yield f"its schedule of minimum instances continues, and then counts for {target}"


def _move_traffic(context: Context, plan: Plan, seen: _Seen, arguments: RollbackArguments) -> Outcome:
    origin = sorted(shares(seen.live), key=lambda name: -shares(seen.live)[name])[:_MOST_ORIGINS]
    since = datetime.fromtimestamp(context.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    rollback = new_rollback(seen.live, plan.basis["target"], since, origin)

    def read() -> Mapping[str, Any]:
        live = read_service(context, seen.service) or {}
        again = _Seen(seen.deployment, seen.service, live, seen.revisions, seen.passed, seen.pin)
        if in_force(live) != rollback:
            check(plan, _basis(context, again, rollback.revision))
        return live

    try:
        move(context, seen.service.id, read, rollback, context.show)
    except NotMovedError as error:
        verdict = "cancelled" if context.cancelled.is_set() else "failed"
        problems = plain_all([one_line(error)])
        return Outcome(operation=plan.operation, target=plan.target, verdict=verdict, problems=problems)
    stack = arguments.stack
    return Outcome(
        operation=plan.operation,
        target=plan.target,
        verdict="done",
        changes=plan.changes,
        price=plan.price,
        url=seen.deployment.url or None,
        details=(
            f"{rollback.revision} has all traffic, pinned since {since} until the next deploy",
            f"back: `{rollback_command(stack, arguments.region)} --to {shell_word(origin[0])}`",
            f"for good: correct Pulumi.{arguments.stack}.yaml, then `bezel deploy {shell_word(stack)}`",
        ),
    )


def _price(seen: _Seen, traffic: Sequence[Mapping[str, Any]]) -> StackCost:
    """The price with this traffic; what a tag reaches keeps its own minimum."""
    newest = short(seen.live.get("latestReadyRevision"))
    names = dict.fromkeys(short(each.get("revision")) for each in traffic)
    named = [seen.revisions[name] for name in names if name and name != newest and name in seen.revisions]
    return live_cost(seen.deployment, {**seen.live, "traffic": traffic}, named)


def _basis(context: Context, seen: _Seen, target: str) -> dict[str, str]:
    traffic = sorted((short(each.get("revision")), int(each.get("percent") or 0), str(each.get("tag") or ""))
                     for each in seen.live.get("traffic") or ())  # fmt: skip
    return {
        **place_of(context),
        "service": f"{seen.service.id} {seen.live.get('uid', '')}".strip(),
        "traffic": _digest(traffic),
        "newest": short(seen.live.get("latestCreatedRevision")),
        "checks": _digest([sorted(seen.passed), sorted(left_by(seen.live))]),
        "target": target,
    }


def _digest(value: object) -> str:
    return f"sha256:{hashlib.sha256(json.dumps(value).encode()).hexdigest()}"
