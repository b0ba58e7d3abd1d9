"""Clock of waits that end when the caller gives the operation up."""

from dataclasses import replace

from bezel.leases.clock import PlatformClock
from bezel.operations.changes.stack_lock import CancelledError
from bezel.operations.context import Context

_LOOK_SECONDS = 0.25


def stoppable(context: Context) -> PlatformClock:
    """The context's clock; a wait raises `CancelledError` once the caller has given up."""
    clock = context.clock

    def pause(seconds: float) -> None:
        while seconds > 0:
            if context.cancelled.is_set():
                raise CancelledError("cancelled: what was sent to Google continues; `bezel tpu list` shows it")
            clock.pause(min(seconds, _LOOK_SECONDS))
            seconds -= _LOOK_SECONDS

    return replace(clock, pause=pause)
