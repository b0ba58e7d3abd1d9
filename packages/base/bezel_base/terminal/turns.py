"""Turns of texts on the terminal of this process: a line that is redrawn makes room before another text is written.

Owns which line is drawn, and the lock that every one of them takes. Leaves out the lines themselves (`status_line`).
"""

from __future__ import annotations

import threading
from typing import Protocol


class Drawn(Protocol):
    """A line that is redrawn."""

    def settle(self) -> None:
        """Make room: another text begins at the left edge."""


LOCK = threading.RLock()
_drawn: list[Drawn] = []  # at most one: a process has one terminal


def settle() -> None:
    """Make room for a text: the line that is drawn ends."""
    if _drawn:
        with LOCK:
            for line in [*_drawn]:
                line.settle()


def take_terminal(line: Drawn) -> None:
    """Draw a line from now on, in place of another one."""
    settle()
    _drawn.append(line)


def leave_terminal(line: Drawn) -> None:
    """Draw a line no longer."""
    if line in _drawn:
        _drawn.remove(line)
