"""Runs of the engine for a confirmed plan: what it may do, how it is ended, and what became of it.

Owns the outcome of a run: done, failed, cancelled, and what an unfinished change needs. Leaves out the lock
(`stack_lock`) and what is planned.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bezel.engine.changes.locked_run import run_locked
from bezel.engine.events.values import Change
from bezel.engine.locks.held import HeldLock
from bezel.engine.run.engine import Engine, EngineRun, Operation
from bezel.engine.run.stack import StackEngine
from bezel.engine.state.exported import has_pending
from bezel.operations.changes.plan import PlannedChange, Verdict, plain, plain_all
from bezel.operations.changes.stack_lock import CancelledError, EngineLockedError, check_cancelled
from bezel.operations.context import Context
from bezel_base.text.shell import shell_word

_OPS = ("create", "update", "replace", "delete")


def quiet(context: Context, engine: Engine) -> Engine:
    """An engine whose steps go to the context's progress, and which ends when the caller gives up."""
    return replace(engine, show=context.show, cancelled=context.cancelled)


def run_changes(
    context: Context,
    engine: Engine,
    operation: Operation,
    lock: HeldLock | None,
    *,
    packs: Sequence[Path] = (),
    plan: Path | None = None,
) -> tuple[EngineRun, tuple[str, ...]]:
    """Run the engine, and reconcile what it left open; the run, and what is still open.

    Args:
        context: The context.
        engine: The stack's engine.
        operation: `up` or `destroy`.
        lock: The lock in the bucket; None where the engine alone locks.
        packs: Policy packs.
        plan: The engine's plan that an `up` keeps to.

    Raises:
        EngineLockedError: Another engine works on the stack.
        LockedError: The lock was lost.
        CancelledError: The caller gave up before it began.
    """
    check_cancelled(context)
    done = run_locked(
        quiet(context, engine),
        operation,
        lock,
        packs=packs,
        plan=plan,
        on_loss=context.cancelled.set,
        with_pending=True,
        say=context.show,
    )
    if done.other:
        raise EngineLockedError(plain(done.other))
    repair = f"reconcile it: `bezel recover {shell_word(engine.stack)}`"
    return done.run, (done.problem, repair) if done.problem else ()


def verdict_of(run: EngineRun, problems: Sequence[str]) -> Verdict:
    """What became of a run."""
    if run.ok:
        return "failed" if problems else "done"
    return "cancelled" if run.end.interrupted else "failed"


def problems_of(run: EngineRun) -> tuple[str, ...]:
    """What failed in a run, bounded."""
    if run.ok:
        return ()
    failed = [f"{change.name}: {change.op} failed" for change in run.changes if change.failed]
    return plain_all([*failed, *(run.errors or [f"the engine ended with exit code {run.end.code}"])])


def check_run(run: EngineRun) -> None:
    """End an operation whose preview was interrupted.

    Raises:
        CancelledError: It was.
    """
    if run.end.interrupted:
        raise CancelledError("cancelled: nothing was changed")


def planned_changes(changes: Sequence[Change]) -> tuple[PlannedChange, ...]:
    """Changes in the cloud: no components, no default providers; an import is a new resource."""
    listed = [change for change in changes if change.custom and not change.is_default_provider]
    ops = ["create" if change.op == "import" else change.op for change in listed]
    rows = [
        PlannedChange.model_validate(
            {"op": op, "name": change.name, "type": change.type, "properties": change.properties}
        )
        for change, op in zip(listed, ops, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: _OPS.index(row.op)))


def is_pending(prepared: StackEngine) -> bool:
    """Whether a run ended in the middle of an operation."""
    return has_pending(prepared.state)
