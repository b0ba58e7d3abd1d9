"""Expiry run: destroys what its plan allows, each stack under its lock.

Only stacks of this backend in dev and their ended leases are destroyed. Leaves out the plan and its report
(bezel.upkeep).
"""

import os
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from datetime import date

from bezel.engine.changes.locked_run import run_locked
from bezel.engine.locks.held import HeldLock
from bezel.engine.project.project import Project
from bezel.engine.run.stack import deployed_engine
from bezel.leases.inventory import LeaseInventory
from bezel.upkeep.expiry_plan import ExpiryPlan, stack_of
from bezel.upkeep.findings import stack_finding
from bezel_base.console import note
from bezel_base.errors import UserError, one_line

_LONGEST = 500


def destroy(
    plan: ExpiryPlan,
    project: Project,
    inventory: LeaseInventory | None,
    locked: Callable[[str], AbstractContextManager[HeldLock]],
    today: date,
) -> None:
    """Destroy what the plan allows, and note in it what became of each.

    Args:
        plan: The plan, as it was shown.
        project: The Pulumi project.
        inventory: Deletes leases; None where none were listed.
        locked: Holds a stack's lock.
        today: The day in UTC.
    """
    for number, finding in enumerate(plan.findings):
        if not finding.may_destroy:
            continue
        note(f"destroying {finding.kind} {finding.name}")
        try:
            if finding.kind == "stack":
                with locked(finding.name) as lock:
                    outcome = _destroy_stack(project, finding.name, lock, today, plan.protected)
            elif finding.kind == "lease" and inventory is not None:
                failed = inventory.sweep([plan.leases[finding.place, finding.name]])
                outcome = next(iter(failed.values()), "destroyed")
            else:
                continue
        except UserError as error:
            outcome = one_line(error)
        plan.findings[number] = finding.with_outcome(outcome)


def _destroy_stack(project: Project, name: str, lock: HeldLock, today: date, protected: Collection[str]) -> str:
    """Destroy a stack under its lock, unless a deploy has given it a later day; what became of it.

    Raises:
        UserError: The stack cannot be read, or its `expires-at` is malformed by now.
    """
    with deployed_engine(project, name, os.environ) as prepared:
        if prepared is None:
            return "its state is gone from the backend since the plan was made"
        try:
            finding = stack_finding(stack_of(project, name, prepared.state), today, protected)
        except ValueError as error:
            raise UserError(f"its expires-at cannot be read any more: {error}") from None
        if finding is None or not finding.may_destroy:
            return "a deploy has changed it since the plan was made: it may not be destroyed now"
        done = run_locked(prepared.engine, "destroy", lock)
    if done.run.ok:
        return "destroyed"
    return "; ".join([*done.run.errors, *([done.problem] if done.problem else [])])[:_LONGEST] or "the engine failed"
