"""Run of the engine that changes a stack under its lock: look, run, watch, reconcile what the run left open.

The one sequence of deploys, destroys and expiries, of pipelines and of operators. Leaves out taking and releasing the
lock (`bezel.engine.locks.taker`), what is planned, and the report of an outcome.
"""

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bezel.engine.locks.held import HeldLock
from bezel.engine.recover.recover import Recovered, recover
from bezel.engine.run.engine import Engine, EngineRun, Operation
from bezel.engine.run.record import MARK
from bezel.engine.state.exported import has_pending
from bezel_base.console import note
from bezel_base.errors import UserError, one_line

_LOCKED = "currently locked by"
_OWNER = re.compile(r"created by (.+)")


@dataclass(frozen=True)
class LockedRun:
    """A run under a lock, and what became of the changes that it left open.

    Attributes:
        run: The engine's run.
        recovered: Its reconciliation; None where nothing was open, or it failed.
        problem: Why what is open could not be reconciled, "" where it could.
        other: The owner of the engine's own lock that refused the run, "" where it was not refused.
    """

    run: EngineRun
    recovered: Recovered | None = None
    problem: str = ""
    other: str = ""


def run_locked(
    engine: Engine,
    operation: Operation,
    held_lock: HeldLock | None,
    *,
    packs: Sequence[Path] = (),
    plan: Path | None = None,
    mark: str = "",
    begin: Callable[[], None] = lambda: None,
    on_loss: Callable[[], None] | None = None,
    with_pending: bool = False,
    say: Callable[[str], None] = note,
) -> LockedRun:
    """Run the engine while the lock is held, and reconcile what the run left open.

    Args:
        engine: The stack's engine.
        operation: `up` or `destroy`.
        held_lock: The lock in the bucket; None where the engine alone locks.
        packs: Policy packs.
        plan: The engine's plan that an `up` keeps to.
        mark: Marks the run's processes; by default a value of this run alone.
        begin: Writes what must stand in the bucket before the first change; called when the lock is known to be held.
        on_loss: Ends the run when the lock is lost; by default this process gets SIGTERM.
        with_pending: Whether operations that a failed run left pending in the state are reconciled too. A pipeline
            leaves them to its next run, which begins with them: it may have to end within seconds.
        say: Gets each line of the reconciliation.

    Raises:
        LockedError: The lock was lost.
        UserError: The engine cannot be started.
    """
    mark = mark or secrets.token_hex(16)
    environment = {**engine.environment, MARK: mark}
    if held_lock is not None:
        held_lock.look()  # it was not watched so far
        held_lock.check()
        environment |= held_lock.environment
    begin()
    marked = replace(engine, environment=environment)
    run = marked.run(operation, packs=packs, plan=plan, meanwhile=held_lock.watch(on_loss) if held_lock else None)
    if held_lock is not None:
        held_lock.check()
    if other := other_engine(run):
        return LockedRun(run, other=other)  # what the state has pending is the other engine's
    if not run.unfinished and (not with_pending or run.ok or not has_pending(engine.export())):
        return LockedRun(run)
    # Only this run's events name the changes of a plugin that died: what exists is entered into the state now.
    try:
        return LockedRun(run, recover(engine, say, run.unfinished, mark=mark))
    except UserError as error:
        return LockedRun(run, problem=one_line(error))


def other_engine(run: EngineRun) -> str:
    """The owner of the lock by which the engine refused to run, as the engine names it; "" where it did not refuse."""
    text = "\n".join([run.text, *run.errors])
    if not run.end.code or _LOCKED not in text:
        return ""
    match = _OWNER.search(text)
    return match.group(1) if match else "another user"
