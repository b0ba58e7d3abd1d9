"""Request of a lease by an operator, in two steps: what is requested, where and at what price, then exactly that.

A bare machine: no stack owns it, nothing is installed on it. It runs as a named service account in a named network,
without an external address, and ends by itself after its run duration. Leaves out what is sent
(`lease_request`), the wait for capacity, which Google does, and leases of stacks, which a deploy requests.
"""

import math
from collections.abc import Iterator, Sequence

from bezel.leases.backends.interface import BackEnd
from bezel.leases.clock import format_duration
from bezel.leases.controller import LeaseController
from bezel.leases.inventory import back_end_of, new_client
from bezel.leases.names import BY_HAND
from bezel.leases.requests import LeaseSpec
from bezel.leases.state.observation import DesiredState, Goal, Observation
from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.plan import Outcome, Plan, PlannedChange, plain_all
from bezel.operations.changes.stack_lock import CancelledError, check_cancelled
from bezel.operations.context import Context
from bezel.operations.deploy.deploy import price_of
from bezel.operations.tpu.lease_request import CreateArguments, LeaseRequest, request_of
from bezel.operations.tpu.records import TYPES, project_of
from bezel.operations.tpu.stopping import stopping_clock, stopping_show
from bezel.planner.base.money import Unpriced, lasting, most_expensive
from bezel.planner.cost.lease_cost import lease_cost
from bezel.resource_cost.price_line import price_line
from bezel.resource_cost.stack_cost import StackCost
from bezel.rest import GoogleClient, RestError
from bezel.rest.cloud_quotas import Limit, quota_of
from bezel_base.errors import one_line
from bezel_base.text.shell import shell_word

_LEASES, _REQUEST = "leases of that name", "the request"


def plan_create(context: Context, arguments: CreateArguments) -> Plan:
    """Plan the request of a lease.

    Raises:
        UserError: It cannot be requested; holds every problem.
        RestError: A zone could not be read.
    """
    with new_client(context.clock) as client:
        request = request_of(client, project_of(context, arguments.project), arguments)
        present = _present(client, request.spec)
        warnings = list(_warnings(client, request))
    spec, price = request.spec, _price(request)
    existing = [lease for lease in present if lease.is_live and lease.spec == spec.hash and lease.belongs_to(BY_HAND)]
    kept = [lease for lease in present if lease not in existing]
    zones = ", then ".join(spec.all_zones)
    return Plan(
        operation="tpu_create",
        target=arguments.name,
        summary=f"it exists: {existing[0].zone}, {existing[0].word}"
        if existing
        else f"one {request.hardware.id} in {zones}",
        arguments=arguments.model_dump(mode="json"),
        changes=() if existing else (PlannedChange(op="create", name=spec.name, type=TYPES[spec.back_end]),),
        price=price_line(StackCost(), price),
        price_before=price_of(StackCost()),
        price_after=price_of(price),
        warnings=plain_all([] if existing else warnings),
        refusals=plain_all(
            f"{lease.zone} has another {lease.name} ({lease.word}): delete it first, or choose another name"
            for lease in kept
        ),
        basis=_basis(context, spec, present),
        is_empty=bool(existing),
    )


def apply_create(context: Context, plan: Plan) -> Outcome:
    """Request the lease that was planned, and return once Google has stored the request.

    Raises:
        ChangedError: Something has changed since; nothing was requested.
        CancelledError: The caller gave up before anything was requested.
        UserError: No zone takes the request.
        RestError: Google refused.
    """
    check_place(context, plan)
    arguments = CreateArguments.model_validate(plan.arguments)
    with new_client(context.clock) as client:
        spec = request_of(client, project_of(context, arguments.project), arguments).spec
        check(plan, _basis(context, spec, _present(client, spec)))
        if plan.is_empty:
            return Outcome(operation=plan.operation, target=plan.target, verdict="unchanged")
        check_cancelled(context)
        controller = LeaseController(_back_end(client, spec), stopping_clock(context), stopping_show(context))
        try:
            lease = controller.run(DesiredState(spec, Goal.STORED))
        except CancelledError as error:
            return Outcome(operation=plan.operation, target=plan.target, verdict="cancelled", problems=(str(error),))
    assert lease is not None  # noqa: S101 - the goal is a stored one
    patience = format_duration(spec.choice(lease.zone).patience_seconds)
    return Outcome(
        operation=plan.operation,
        target=plan.target,
        verdict="done",
        changes=plan.changes,
        price=plan.price,
        details=(
            f"{lease.zone}: {lease.word}; Google waits for capacity for {patience} at most, and bills from the grant",
            f"`bezel tpu describe {shell_word(spec.name)} --zone {shell_word(lease.zone)}` shows its progress",
        ),
    )


def _present(client: GoogleClient, spec: LeaseSpec) -> list[Observation]:
    back_end = _back_end(client, spec)
    return [lease for zone in spec.all_zones if (lease := back_end.observe(zone, spec.name)).exists]


def _back_end(client: GoogleClient, spec: LeaseSpec) -> BackEnd:
    return back_end_of(spec.back_end, client, spec.project)


def _basis(context: Context, spec: LeaseSpec, present: Sequence[Observation]) -> dict[str, str]:
    ids = ", ".join(f"{lease.id} {lease.is_live}" for lease in present)
    return {**place_of(context), _REQUEST: f"{spec.project} {spec.hash}", _LEASES: ids}


def _price(request: LeaseRequest) -> StackCost:
    """The price of the machine in the dearest zone, and until its end."""
    zones = request.spec.all_zones
    hourly = most_expensive(lease_cost(request.hardware, zone=zone, provisioning="flex-start").hourly for zone in zones)
    missing = (hourly.reason,) if isinstance(hourly, Unpriced) else ()
    return StackCost(hourly, lasting(hourly, request.run_seconds), hourly, missing)


def _warnings(client: GoogleClient, request: LeaseRequest) -> Iterator[str]:
    """What speaks against a zone, as far as Google says."""
    hardware, spec = request.hardware, request.spec
    quota = hardware.quotas[spec.back_end][1]
    for zone in spec.all_zones:
        if zone in hardware.zones_refused:
            yield f"{zone} refused a flex-start request for {hardware.id} before"
        elif zone not in hardware.zones:
            yield f"{zone} is not known to have {hardware.id}"
        try:
            allowed = quota_of(client, spec.project, Limit(quota.service, quota.id, zone, quota.dimensions))
        except RestError as error:
            yield f"{zone}: the quota is unknown: {one_line(error)}"
            continue
        if allowed is None:
            yield f"{zone}: the quota {quota.id} is unknown"
        elif allowed.value != math.inf and allowed.value < hardware.chips:
            yield f"{zone}: the quota {quota.id} is {allowed.value:g}, and the lease needs {hardware.chips}"
