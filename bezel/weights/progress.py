"""Progress of a copy: a bar on a terminal, otherwise a line every 30 s.

Leaves out the source of the byte counts, and the line that is redrawn. Several threads may report.
"""

import threading
import time
from collections.abc import Callable
from typing import TextIO

from bezel_base.terminal.status_line import StatusLine

_BAR = 30
_REDRAW_SECONDS = 0.2
_LINE_SECONDS = 30.0


class Progress:
    """Progress of one copy, in bytes.

    Args:
        out: The stream to write to.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._status = StatusLine(out, clock, log_seconds=0)
        self._clock = clock
        self._lock = threading.Lock()
        self.begin(0)

    def begin(self, total: int) -> None:
        """Starts the count at 0 of `total` bytes."""
        self._total, self._done, self._new = total, 0, 0
        self._started = self._last = self._clock()

    def advance(self, count: int, *, moved: bool = True) -> None:
        """Adds bytes that are done; `moved` is false for those already in the bucket, which do not count as speed."""
        with self._lock:
            self._done += count
            self._new += count if moved else 0
            now = self._clock()
            if now - self._last >= (_REDRAW_SECONDS if self._status.on_terminal else _LINE_SECONDS):
                self._last = now
                self._status(self._text(now))

    def line(self, text: str) -> None:
        """Writes a line that is not overwritten by the bar."""
        self._status.line(text)

    def end(self) -> None:
        """Clears the bar."""
        self._status.end()

    def _text(self, now: float) -> str:
        share = min(1.0, self._done / self._total) if self._total else 1.0  # bytes that are sent again count twice
        speed = self._new / max(now - self._started, 1e-6)
        left = f", {max(0, self._total - self._done) / speed:.0f} s left" if speed else ""
        text = f"{share:4.0%} {size(self._done)} of {size(self._total)}, {size(int(speed))}/s{left}"
        return f"[{'=' * int(share * _BAR):<{_BAR}}] {text}" if self._status.on_terminal else text


def size(count: int) -> str:
    """Return a number of bytes as text, in decimal units as the hub shows them."""
    number = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    raise AssertionError("the last unit takes any number")
