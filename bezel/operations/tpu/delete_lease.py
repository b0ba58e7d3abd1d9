"""Return of a lease in two steps: which one, in which state, at what price, then that one and no other.

Names are repeated in every zone, and a deleted lease may be requested again under its name: a plan is bound to the
leases that were seen. Leaves out stacks, which a destroy ends, and what is left over (`bezel tpu sweep`).
"""

from collections.abc import Sequence

from bezel.leases.controller import LeaseError
from bezel.leases.names import BY_HAND
from bezel.leases.state.observation import Observation
from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.plan import Outcome, Plan, PlannedChange, plain_all
from bezel.operations.changes.stack_lock import CancelledError, check_cancelled
from bezel.operations.context import Context
from bezel.operations.deploy.deploy import price_of
from bezel.operations.redaction import clean_text
from bezel.operations.tpu.records import NODE_TYPE, TYPES, LeaseName, PlaceArguments, hourly_of, inventory, leases_named
from bezel.planner.base.money import Unpriced, lasting, total
from bezel.resource_cost.price_line import price_line
from bezel.resource_cost.stack_cost import StackCost
from bezel.rest import RestError
from bezel_base.errors import UserError, one_line

_LEASES = "the leases of that name"
_MONTH_SECONDS = 730 * 3600.0


class DeleteArguments(PlaceArguments):
    """Which lease."""

    name: LeaseName


def plan_delete(context: Context, arguments: DeleteArguments) -> Plan:
    """Plan the deletion of the leases of a name, in every zone that has one.

    Raises:
        UserError: There is none, or no project is named.
        RestError: A zone could not be read.
    """
    with inventory(context, arguments) as leases:
        targets = leases_named(leases, arguments.name)
    before = _price(targets)
    return Plan(
        operation="tpu_delete",
        target=arguments.name,
        summary=f"{len(targets)} to delete: {', '.join(lease.zone for lease in targets)}",
        arguments=arguments.model_dump(mode="json"),
        changes=tuple(_change(lease) for lease in targets),
        price=price_line(before, StackCost()),
        price_before=price_of(before),
        price_after=price_of(StackCost()),
        destroyed=plain_all(
            f"{lease.zone}/{lease.name} ({lease.hardware or 'unknown hardware'}): {lease.word}" for lease in targets
        ),
        lost=("the machine with its disk; new capacity may not be granted",),
        warnings=plain_all(_stack_warnings(context, targets)),
        refusals=plain_all(
            f"the labels of {lease.zone}/{lease.name} contradict its name or name no stack, so its owner is unknown"
            for lease in targets
            if not _is_owned(lease)
        ),
        confirm_name=arguments.name,
        basis=_basis(context, targets),
    )


def apply_delete(context: Context, plan: Plan) -> Outcome:
    """Delete the leases that were planned, and wait until they are gone.

    Raises:
        ChangedError: Another lease has the name, or one of them has ended or begun; nothing was deleted.
        CancelledError: The caller gave up before anything was deleted.
        UserError: The leases cannot be listed.
    """
    check_place(context, plan)
    arguments = DeleteArguments.model_validate(plan.arguments)
    gone: list[Observation] = []
    problems: list[str] = []
    with inventory(context, arguments) as leases:
        targets = [lease for lease in leases.list() if lease.name == arguments.name]
        check(plan, _basis(context, targets))
        check_cancelled(context)
        try:
            for lease in targets:
                try:
                    leases.delete(lease)
                    gone.append(lease)
                except (LeaseError, RestError) as error:
                    problems.append(f"{lease.zone}/{lease.name}: {one_line(error)}")
        except CancelledError as error:
            problems.append(str(error))
    left = _price([lease for lease in targets if lease not in gone])
    cancelled = context.cancelled.is_set() and len(gone) < len(targets)
    return Outcome(
        operation=plan.operation,
        target=plan.target,
        verdict="cancelled" if cancelled else "failed" if problems else "done",
        changes=tuple(_change(lease) for lease in gone),
        price=price_line(_price(targets), left),
        problems=plain_all(problems),
    )


def _is_owned(lease: Observation) -> bool:
    return bool(lease.stack) and lease.belongs_to(lease.stack)


def _change(lease: Observation) -> PlannedChange:
    type_ = TYPES.get(lease.kind, NODE_TYPE)
    return PlannedChange(op="delete", name=f"{lease.zone}/{lease.name}", type=type_)


def _price(leases: Sequence[Observation]) -> StackCost:
    """The price of the machines of leases, per hour and at most until they end; one that has ended costs nothing."""
    priced = [(hourly_of(lease), lease.run_seconds or _MONTH_SECONDS) for lease in leases if lease.is_live]
    hourly = total(amount for amount, _ in priced)
    until_end = total(lasting(amount, seconds) for amount, seconds in priced)
    missing = (hourly.reason,) if isinstance(hourly, Unpriced) else ()
    return StackCost(hourly, until_end, hourly, missing)


def _basis(context: Context, leases: Sequence[Observation]) -> dict[str, str]:
    return {**place_of(context), _LEASES: ", ".join(sorted(f"{lease.id} {lease.is_live}" for lease in leases))}


def _stack_warnings(context: Context, leases: Sequence[Observation]) -> list[str]:
    """What a deletion means for the stacks that requested the leases."""
    stacks = sorted({lease.stack for lease in leases if lease.stack and lease.stack != BY_HAND})
    if not stacks:
        return []
    try:
        deployed = set(context.stacks())
    except UserError as error:
        return [f"whether a deployed stack needs it is unknown: {clean_text(one_line(error), 300)}"]
    return [
        f"the stack {stack} is deployed and will serve nothing: destroy the stack to end all of it"
        for stack in stacks
        if stack in deployed
    ]
