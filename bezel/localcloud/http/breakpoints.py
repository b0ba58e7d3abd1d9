"""Stops one API call at its boundary until it is let go, so that a kill can be rehearsed exactly there.

A hold lives in the daemon's memory only: it ends with the daemon. Leaves out the log (`wire`) and who strikes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

When = Literal["before", "after"]


@dataclass
class Hold:
    """The `nth` call from now on that fits, stopped before it is handled, or after it with its answer not sent.

    Attributes:
        method: HTTP method.
        path: The path without its query; `*` stands for anything.
        nth: Counted from 1.
        when: Before the call has any effect, or after all of it.
        reached: Set when the call stands there.
        released: Set to let it go.
        dropped: Whether a call that is let go is forgotten instead of handled: its caller died before it was sent.
    """

    method: str
    path: str
    nth: int
    when: When
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: bool = False

    def takes(self, method: str, path: str) -> bool:
        """Whether this call is the one; counts it."""
        if method != self.method or not fnmatchcase(path, self.path):
            return False
        self.nth -= 1
        return self.nth == 0

    async def stop(self) -> None:
        """Stand at the boundary until somebody lets go."""
        self.reached.set()
        await self.released.wait()


class Breakpoints:
    """At most one hold at a time."""

    def __init__(self) -> None:
        self.hold: Hold | None = None

    def place(self, hold: Hold | None, *, drop: bool = False) -> None:
        """Let the one that stands go, or forget its call, and put another in its place."""
        if self.hold is not None:
            self.hold.dropped = drop
            self.hold.released.set()
        self.hold = hold

    def taking(self, method: str, path: str) -> Hold | None:
        """The hold that this call has to stop at."""
        return self.hold if self.hold is not None and self.hold.takes(method, path) else None
