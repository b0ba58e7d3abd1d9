"""Lock of a stack during a change, on any backend: its own in a bucket, the engine's elsewhere.

Owns the wait with its deadline, and who is waited for. In a bucket the lock is that of the pipelines; elsewhere the
engine alone locks, so the whole step is tried again once its lock is free, with another look at the state.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from bezel.engine.locks.held import HeldLock
from bezel.engine.locks.stale_locks import present_lock
from bezel.engine.locks.taker import Surroundings, hold, surroundings
from bezel.engine.outcomes import LockedError
from bezel.engine.state.backend import local_folder
from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel.operations.context import Context
from bezel_base.ending_signals import INTERRUPTED
from bezel_base.errors import Problem, UserError, WrongValueError
from bezel_base.text.shell import shell_word
from bezel_catalog.quantities import duration_text, parse_duration

_LOOK_SECONDS = 3.0
_SAY_SECONDS = 60.0
_Done = TypeVar("_Done")


class CancelledError(UserError):
    """The caller gave the operation up."""

    exit_code = INTERRUPTED


class EngineLockedError(Exception):
    """The engine refused because another engine works on the stack; the text says which."""


@dataclass(frozen=True)
class Wait:
    """How long a change waits for another one, and by which clock; a test passes its own.

    Attributes:
        seconds: The longest wait.
        clock: A monotonic clock in seconds.
    """

    seconds: float
    clock: Callable[[], float] = field(default=time.monotonic)


def wait_of(text: str) -> Wait:
    """The wait that an argument names, e.g. `15m`.

    Raises:
        WrongValueError: It is not a duration.
    """
    if (seconds := parse_duration(text)) is None:
        raise WrongValueError(Problem("--wait", text, "expected a duration.", "write e.g. 15m, or 0s to fail at once."))
    return Wait(seconds)


def under_lock(context: Context, stack: str, wait: Wait, step: Callable[[HeldLock | None], _Done]) -> _Done:
    """Do a step under the stack's lock.

    Args:
        context: The context.
        stack: The stack's name.
        wait: The longest wait for another owner.
        step: Gets the lock in the bucket, None where the engine alone locks. It is called again after a wait for the
            engine's lock, so it changes nothing before its first run of the engine.

    Raises:
        LockedError: Another run holds the lock beyond the wait.
        CancelledError: The caller gave up.
        UserError: The step failed, or the backend cannot be used.
    """
    backend = context.environ.get(BACKEND, "")
    if backend.startswith("gs://"):
        with (
            StateBucket.of(backend, context.environ) as states,
            hold(states, context.project.name, stack, wait.seconds, _around(context)) as lock,
        ):
            return step(lock)
    end, last_shown = wait.clock() + wait.seconds, ("", 0.0)
    while True:
        check_cancelled(context)
        try:
            return step(None)
        except EngineLockedError as error:
            now, owner = wait.clock(), str(error)
            if now >= end:
                raise _locked_error(stack, owner) from None
            if last_shown[0] != owner or now - last_shown[1] >= _SAY_SECONDS:
                left = duration_text(end - now)
                context.show(f"waiting for the lock of {stack}, {left} at most: the engine of {owner}")
                last_shown = (owner, now)
            context.cancelled.wait(min(_LOOK_SECONDS, end - now))


def check_engine(context: Context, stack: str) -> None:
    """End a step that runs no engine itself, where another engine works on the stack of a folder's backend.

    Any other backend without a lock of Bezel's own shows its lock to the engine alone.

    Raises:
        EngineLockedError: One does.
    """
    backend = context.environ.get(BACKEND, "")
    if not backend.startswith("file://"):
        return
    if (owner := present_lock(local_folder(backend), context.project.name, stack)) is not None:
        raise EngineLockedError(owner)


def check_cancelled(context: Context) -> None:
    """End an operation that the caller gave up.

    Raises:
        CancelledError: The caller did.
    """
    if context.cancelled.is_set():
        raise CancelledError("cancelled: nothing was changed")


def _around(context: Context) -> Surroundings:
    """The taker's surroundings; a cancelled caller ends the wait."""
    around = surroundings(context.environ)

    def sleep(seconds: float) -> None:
        context.cancelled.wait(seconds)
        check_cancelled(context)

    return replace(around, say=context.show, sleep=sleep)


def _locked_error(stack: str, owner: str) -> LockedError:
    consequence = f"it is locked by the engine of {owner}; nothing was changed."
    command = f"pulumi cancel --yes --stack {shell_word(stack)}"
    repair = (
        f"wait for its end. If it has ended for certain, remove its lock: `{command}`, then `bezel recover "
        f"{shell_word(stack)}`."
    )
    return LockedError(Problem(f"stack {stack}", None, consequence, repair))
