"""End of a lease's steps when the caller gives the operation up: at the next wait, and at the next line of progress.

Between two of them the controller sends at most one request.
"""

from collections.abc import Callable
from dataclasses import replace

from bezel.leases.clock import PlatformClock
from bezel.operations.changes.stack_lock import CancelledError
from bezel.operations.context import Context

_LOOK_SECONDS = 0.25


def stopping_clock(context: Context) -> PlatformClock:
    """The context's clock; a wait raises `CancelledError` once the caller has given up."""
    clock = context.clock

    def pause(seconds: float) -> None:
        while seconds > 0:
            _check(context)
            clock.pause(min(seconds, _LOOK_SECONDS))
            seconds -= _LOOK_SECONDS

    return replace(clock, pause=pause)


def stopping_show(context: Context) -> Callable[[str], None]:
    """The context's progress; a line raises `CancelledError` once the caller has given up."""

    def show(line: str) -> None:
        context.show(line)
        _check(context)

    return show


def _check(context: Context) -> None:
    if context.cancelled.is_set():
        raise CancelledError("cancelled: what was sent to Google continues; `bezel tpu list` shows it")
