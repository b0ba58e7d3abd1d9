"""Breakpoints: stop one API call at its boundary until it is released, so that a kill can be rehearsed exactly there.

A hold lives in the daemon's memory only: it ends with the daemon. Leaves out the log (request_log.py) and the routes
that place a hold (control_api/breakpoints.py).
"""

import asyncio
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

When = Literal["before", "after"]


@dataclass
class Hold:
    """The `nth` matching call from now on, stopped before it is handled, or after it with its response not sent.

    Attributes:
        method: HTTP method.
        path: The path without its query; `*` matches anything.
        nth: Counted from 1.
        when: Before the call has any effect, or after all of it.
        reached: Set when the call has stopped.
        released: Set to let it continue.
        dropped: Whether a released call is dropped instead of handled, as if its caller had died before it was sent.
    """

    method: str
    path: str
    nth: int
    when: When
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: bool = False

    def takes(self, method: str, path: str) -> bool:
        """Count a matching call and return whether it is the one to stop."""
        if method != self.method or not fnmatchcase(path, self.path):
            return False
        self.nth -= 1
        return self.nth == 0

    async def stop(self) -> None:
        """Wait at the boundary until the hold is released."""
        self.reached.set()
        await self.released.wait()


class Breakpoints:
    """At most one hold at a time."""

    def __init__(self) -> None:
        self.hold: Hold | None = None

    def place(self, hold: Hold | None, *, drop: bool = False) -> None:
        """Release the current hold, or drop its call, and put another in its place."""
        if self.hold is not None:
            self.hold.dropped = drop
            self.hold.released.set()
        self.hold = hold

    def taking(self, method: str, path: str) -> Hold | None:
        """The hold at which this call must stop, if any."""
        return self.hold if self.hold is not None and self.hold.takes(method, path) else None
