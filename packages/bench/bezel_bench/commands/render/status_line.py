"""Progress line: redrawn on a terminal, printed at intervals elsewhere."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

_EVERY_SECONDS = 10.0
_COLUMNS = 119


class StatusLine:
    """Progress line in which each message replaces the last; several threads may write.

    Args:
        out: Stream to write to.
        clock: Monotonic clock in seconds.
    """

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self.prefix = ""
        self._out = out
        self._clock = clock
        self._terminal = out.isatty()
        self._lock = threading.Lock()
        self._drawn = 0
        self._due = 0.0

    def __call__(self, text: str) -> None:
        """Show a message."""
        with self._lock:
            if self._terminal:
                text = f"{self.prefix}{text}"[:_COLUMNS]
                self._out.write(f"\r{text:<{self._drawn}}")
                self._drawn = len(text)
            elif self._clock() >= self._due:
                self._due = self._clock() + _EVERY_SECONDS
                self._out.write(f"  {self.prefix}{text}\n")
            self._out.flush()

    def end(self) -> None:
        """Remove the line."""
        with self._lock:
            if self._drawn:
                self._out.write(f"\r{'':<{self._drawn}}\r")
                self._out.flush()
            self._drawn = 0
