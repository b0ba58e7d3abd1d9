"""Recovery of a stack in two steps: what a killed run left open and which locks, then exactly that is reconciled.

The first step reads the state alone and changes nothing. The second unlocks what a dead engine of this machine left,
and reads the open resources from the cloud into the state; nothing in the cloud is changed. Leaves out how that is
done (bezel.engine.recover), and localcloud's own recovery.
"""

from collections.abc import Sequence

from bezel.engine.events.open_changes import OpenChange
from bezel.engine.locks.held import HeldLock
from bezel.engine.locks.stale_locks import stale_lock_pids
from bezel.engine.outcomes import LockedError
from bezel.engine.recover.plan import pending, plan_recovery
from bezel.engine.recover.recover import manual_repair, recover
from bezel.engine.run.command import CommandError
from bezel.engine.run.stack import StackEngine, deployed_engine
from bezel.engine.state.backend import local_folder
from bezel.engine.state.bucket import BACKEND
from bezel.engine.state.exported import state_digest
from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import Stack
from bezel.operations.changes.basis import check, check_place, place_of
from bezel.operations.changes.lock_owner import FREE, reader_of_locks
from bezel.operations.changes.plan import Outcome, Plan, plain, plain_all
from bezel.operations.changes.stack_lock import Wait, check_cancelled, check_engine, under_lock
from bezel.operations.context import Context, NotDeployedError
from bezel.operations.results import format_count
from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word

NAME = "recover"
_WAIT = Wait(0.0)


class RecoverArguments(Arguments):
    """Which stack."""

    stack: Stack


def plan_recover(context: Context, arguments: RecoverArguments) -> Plan:
    """Plan the recovery of a stack.

    Raises:
        NotDeployedError: The backend has no such stack.
        UserError: The stack has no file, or the backend cannot be read.
    """
    stack = arguments.stack
    with deployed_engine(context.project, stack, context.environ) as opened:
        prepared = _check_state(opened, stack)
    stale = _stale_locks(context, stack)
    owner = None if stale else reader_of_locks(context)[0](stack)
    changes = pending(prepared.state or {})
    project = context.project.cloud_project(stack, context.environ)
    recovery = plan_recovery(dict(prepared.state or {}), changes, project)
    unlocking = [f"unlocks the stack: the engine of process {pid} on this machine is gone" for pid in stale]
    reading = [_line(change, recovery.creates.get(change.urn)) for change in changes]
    by_hand = [f"delete it by hand if it exists: {each}" for each in recovery.orphans]
    refusals = [_one_line(manual_repair(recovery.unknown))] if recovery.unknown else []
    if owner not in (None, FREE) and context.environ.get(BACKEND, "").startswith("file://"):
        refusals.append(f"the stack is locked by {owner}: wait for its end")
    elif owner not in (None, FREE):
        by_hand.append(f"the stack is locked by {owner}: that lock is taken over only if its owner has ended")
    return Plan(
        operation=NAME,
        target=stack,
        summary=_summary(len(changes), unlocks=bool(stale)),
        arguments=arguments.model_dump(mode="json"),
        warnings=plain_all(by_hand),
        notes=plain_all([*unlocking, *reading]),
        refusals=plain_all(refusals),
        basis=_basis(context, prepared, stale),
        is_empty=not (changes or stale),
    )


def apply_recover(context: Context, plan: Plan) -> Outcome:
    """Unlock and reconcile what was planned.

    Raises:
        ChangedError: The state or a lock has changed since; nothing was done.
        LockedError: Another run works on the stack.
        UserError: The engine or the cloud failed; the state says what is still open.
    """
    stack = plan.target
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line.strip())
        context.show(line)

    def step(_lock: HeldLock | None) -> Outcome:
        check_engine(context, stack)
        with deployed_engine(context.project, stack, context.environ) as opened:
            prepared = _check_state(opened, stack)
            stale = _stale_locks(context, stack)
            check(plan, _basis(context, prepared, stale))
            if plan.is_empty:
                return Outcome(operation=NAME, target=stack, verdict="unchanged", details=("no open changes",))
            check_cancelled(context)
            if stale:
                prepared.engine.output_of("cancel", "--yes")
            recovered = recover(prepared.engine, say)
        unlocked = ("the stack is unlocked",) if stale else ()
        problems = tuple(f"not created: {change.name}" for change in recovered.missing if change.exists)
        return Outcome(
            operation=NAME, target=stack, verdict="done", details=plain_all([*unlocked, *lines]), problems=problems
        )

    check_place(context, plan)
    try:
        return under_lock(context, stack, _WAIT, step)
    except CommandError as error:
        if "currently locked" not in str(error):
            raise
        repair = (
            f"if that run is dead, `pulumi cancel --stack {shell_word(stack)}` removes its lock; then recover again."
        )
        raise LockedError(Problem(f"stack {stack}", None, plain(str(error)), repair)) from None


def _check_state(prepared: StackEngine | None, stack: str) -> StackEngine:
    if prepared is None:
        repair = "`bezel status` lists the stacks that are deployed."
        raise NotDeployedError(Problem("STACK", stack, "the backend has no state of it.", repair))
    return prepared


def _stale_locks(context: Context, stack: str) -> list[int]:
    """Process ids of dead engines of this machine that hold the stack; only a backend in a folder shows them."""
    backend = context.environ.get(BACKEND, "")
    if not backend.startswith("file://"):
        return []
    return stale_lock_pids(local_folder(backend), context.project.name, stack)


def _basis(context: Context, prepared: StackEngine, stale: Sequence[int]) -> dict[str, str]:
    return {**place_of(context), "state": state_digest(prepared.state), "locks": ", ".join(map(str, stale))}


def _summary(count: int, *, unlocks: bool) -> str:
    parts = ["unlocks the stack"] if unlocks else []
    parts += [f"reads {format_count(count, 'unfinished change')} from the cloud into the state"] if count else []
    return ", then ".join(parts) or "no open changes"


def _line(change: OpenChange, resource_id: str | None) -> str:
    sought = f": looks for {resource_id}" if resource_id else ""
    return f"{change.kind} {change.name} ({change.resource['type']}), outcome unknown{sought}"


def _one_line(problem: Problem) -> str:
    return " ".join(f"{problem.key}: {problem.consequence} Repair: {problem.repair}".split())
