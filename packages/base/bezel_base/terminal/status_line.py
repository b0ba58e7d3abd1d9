"""The line of progress: redrawn on a terminal, a line now and then elsewhere.

Owns the line itself: it is never wider than the terminal, and other text that this process writes ends it (`turns`).
Leaves out the steps of a command with their times (`steps`). Several threads may write.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TextIO

from bezel_base.terminal.display_width import cut, display_width
from bezel_base.terminal.screen import is_redrawn, screen_of
from bezel_base.terminal.turns import LOCK, leave_terminal, settle, take_terminal
from bezel_base.text.printable import encodable

if TYPE_CHECKING:
    from collections.abc import Callable

LOG_SECONDS = 10.0
"""Time from one line to the next where no terminal is."""
_CLEAR = "\r\x1b[K"


class StatusLine:
    """Line of progress in which each message replaces the last.

    Attributes:
        prefix: What each message begins with.
    """

    def __init__(
        self, out: TextIO, clock: Callable[[], float] = time.monotonic, *, log_seconds: float = LOG_SECONDS
    ) -> None:
        """A line that is not shown yet.

        Args:
            out: The stream.
            clock: A monotonic clock, in seconds.
            log_seconds: Time from one line to the next where the stream is no terminal; 0 for every message.
        """
        self.prefix = ""
        self.on_terminal = is_redrawn(out)
        self._out, self._clock, self._log_seconds = out, clock, log_seconds
        self._is_drawn = False
        self._due = 0.0

    def __call__(self, text: str) -> None:
        """Show a message."""
        with LOCK:
            if self.on_terminal:
                self.draw(f"{self.prefix}{text}")
            elif self._clock() >= self._due:
                self._due = self._clock() + self._log_seconds
                self._write(f"  {self.prefix}{text}\n")

    def draw(self, text: str) -> None:
        """Replace what the terminal shows, cut to its width."""
        with LOCK:
            if not self._is_drawn:
                take_terminal(self)
            self._is_drawn = True
            self._write(f"{_CLEAR}{cut(text, screen_of(self._out).width - 1)}")

    def fits(self, text: str) -> bool:
        """Whether a text can be redrawn: it is one row of the terminal."""
        return "\n" not in text and display_width(text) < screen_of(self._out).width

    def line(self, text: str) -> None:
        """Write a line that stays."""
        with LOCK:
            self.end()
            settle()
            self._write(f"{text}\n")

    def end(self, last: str = "") -> None:
        """Remove the line; a last text of it stays."""
        with LOCK:
            if self._is_drawn:
                self._is_drawn = False
                self._write(f"{_CLEAR}{last}\n" if last else _CLEAR)
                leave_terminal(self)

    def settle(self) -> None:
        """Make room for other text: the line is removed, and its next message draws it below."""
        self.end()

    def _write(self, text: str) -> None:
        self._out.write(encodable(text))
        self._out.flush()
