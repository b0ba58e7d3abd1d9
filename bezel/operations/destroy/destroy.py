"""Destruction of a stack in two steps: what its state holds, by name, then exactly that, under the stack's lock.

The plan needs no run of the engine: a destruction deletes what the state holds. Leaves out stacks that are over, which
a pipeline destroys by itself (bezel.gitops.upkeep).
"""

from collections.abc import Mapping
from typing import Any

from bezel.engine.locks.held import HeldLock
from bezel.engine.run.stack import stack_engine
from bezel.engine.state.exported import resources_of
from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import Stack, Wait
from bezel.operations.changes.basis import basis_of, check, check_place
from bezel.operations.changes.losses import losses
from bezel.operations.changes.plan import Outcome, Plan, PlannedChange
from bezel.operations.changes.stack_lock import under_lock, wait_of
from bezel.operations.changes.stack_runs import planned_changes, problems_of, run_changes, verdict_of
from bezel.operations.changes.staying import is_check, refuses_deletion, staying
from bezel.operations.context import Context, NotDeployedError
from bezel.operations.deploy.deploy import price_of, refuse_pending
from bezel.operations.results import format_count
from bezel.resource_cost.price_line import price_line
from bezel.resource_cost.stack_cost import resources_in, stack_cost
from bezel_base.errors import Problem

_PROVIDERS = "pulumi:providers:"


class DestroyArguments(Arguments):
    """Which stack, and how long to wait."""

    stack: Stack
    wait: Wait = "15m"


def plan_destroy(context: Context, arguments: DestroyArguments) -> Plan:
    """Plan the destruction of everything that a stack's state holds.

    Raises:
        NotDeployedError: The backend has no such stack.
        UserError: The stack has no file, or an earlier run was interrupted.
    """
    stack = arguments.stack
    wait_of(arguments.wait)
    with stack_engine(context.project, stack, context.environ) as prepared:
        if prepared.state is None:
            repair = "`bezel status` lists the stacks that are deployed."
            raise NotDeployedError(Problem("STACK", stack, "the backend has no state of it.", repair))
        refuse_pending(prepared, stack)
        entries = resources_of(prepared.state)
        stay = staying(entries)
        kept = {each.urn for each in stay}
        resources = [entry for entry in entries if _is_deleted(entry) and str(entry["urn"]) not in kept]
        changes = tuple(_deletion(entry) for entry in resources)
        before = stack_cost(resources_in(entries))
        after = stack_cost(resources_in([entry for entry in entries if str(entry["urn"]) in kept]))
        return Plan(
            operation="destroy",
            target=stack,
            summary=_summary(len(changes), len(stay)),
            arguments=arguments.model_dump(mode="json"),
            changes=changes,
            price=price_line(before, after),
            price_before=price_of(before),
            price_after=price_of(after),
            destroyed=tuple(f"{_name(entry)} ({entry['type']}): {entry.get('id', '')}" for entry in resources),
            lost=losses(changes),
            staying=tuple(each.line() for each in stay),
            refusals=tuple(reason for entry in resources if (reason := _protection(entry))),
            confirm_name=stack,
            basis=basis_of(context, stack, prepared.state),
            is_empty=not changes and not stay,
        )


def apply_destroy(context: Context, plan: Plan) -> Outcome:
    """Destroy what was planned.

    Raises:
        ChangedError: Something has changed since; nothing was done.
        LockedError: Another run works on the stack.
        UserError: The backend cannot be used.
    """
    arguments = DestroyArguments.model_validate(plan.arguments)
    stack = arguments.stack

    def step(lock: HeldLock | None) -> Outcome:
        with stack_engine(context.project, stack, context.environ) as prepared:
            check(plan, basis_of(context, stack, prepared.state))
            if plan.is_empty:
                return Outcome(operation=plan.operation, target=stack, verdict="unchanged")
            stay = () if prepared.state is None else staying(resources_of(prepared.state))
            kept = {each.urn for each in stay}
            run, open_changes = run_changes(context, prepared.engine, "destroy", lock)
            return Outcome(
                operation=plan.operation,
                target=stack,
                verdict=verdict_of(run, open_changes),
                changes=planned_changes([change for change in run.changes if change.urn not in kept]),
                price=plan.price,
                details=tuple(f"stays: {each.line()}" for each in stay),
                problems=(*problems_of(run), *open_changes),
            )

    check_place(context, plan)
    return under_lock(context, stack, wait_of(arguments.wait), step)


def _is_deleted(entry: Mapping[str, Any]) -> bool:
    """Whether the engine deletes it in the cloud."""
    provider = str(entry["type"]).startswith(_PROVIDERS)
    return bool(entry.get("custom")) and not entry.get("external") and not provider and not is_check(entry)


def _summary(deleted: int, stay: int) -> str:
    if not deleted and not stay:
        return "the stack holds no resources"
    return f"{deleted} to delete" + (
        f", {format_count(stay, 'resource')} of the state stay in the cloud" if stay else ""
    )


def _deletion(entry: Mapping[str, Any]) -> PlannedChange:
    return PlannedChange(op="delete", name=_name(entry), type=str(entry["type"]))


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry["urn"]).rpartition("::")[2]


def _protection(entry: Mapping[str, Any]) -> str:
    """Why a resource cannot be deleted; "" if it can."""
    if entry.get("protect"):
        return f"{_name(entry)} is protected: remove `protect` from its declaration, deploy, then destroy"
    if (entry.get("inputs") or {}).get("deletionProtection") is True:
        return f"{_name(entry)} refuses its deletion: set bezel:deletion_protection: never, deploy, then destroy"
    if refuses_deletion(entry):
        return f"{_name(entry)} refuses its deletion: its deletionPolicy is PREVENT; change it, deploy, then destroy"
    return ""
