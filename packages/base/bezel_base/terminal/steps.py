"""Steps of a command: on a terminal the present one with the time that it has taken, elsewhere a line each.

A step that took a second or more stays on the terminal with its time, so that a reader sees where a command waited.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self, TextIO

from bezel_base.terminal.screen import show_message
from bezel_base.terminal.status_line import StatusLine
from bezel_base.terminal.turns import LOCK

if TYPE_CHECKING:
    from collections.abc import Callable

_TICK_SECONDS = 1.0


class Steps:
    """The steps of a command, each a sentence; a context manager that ends the last one."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the stream and a monotonic clock in seconds."""
        self._line = StepLine(out, clock)
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="steps", daemon=True)

    def __enter__(self) -> Self:
        if self._line.on_terminal:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._line.on_terminal:
            self._ticker.join()
        self._line.settle()

    def __call__(self, text: str) -> None:
        """Begin a step."""
        from bezel_base.text.redaction import redact  # late, as in bezel_base.errors

        self._line.begin(redact(text))

    def _tick(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            self._line.tick()


class StepLine(StatusLine):
    """The line of the present step; it stays when another text follows."""

    def __init__(self, out: TextIO, clock: Callable[[], float]) -> None:
        super().__init__(out, clock, log_seconds=0)
        self._text = ""
        self._began = 0.0

    def begin(self, text: str) -> None:
        """Show a step in place of the last one, which stays above."""
        with LOCK:
            self.settle()
            if not self.on_terminal or not self.fits(text):
                show_message(text, self._out)
                return
            self._text, self._began = text, self._clock()
            self.draw(text)

    def tick(self) -> None:
        """Show the time that the step has taken."""
        with LOCK:
            if self._text:
                self.draw(self._text_with_time())

    def settle(self) -> None:
        """End the step: its line stays, with its time."""
        with LOCK:
            text, self._text = self._text_with_time(), ""
            self.end(text)

    def _text_with_time(self) -> str:
        seconds = self._clock() - self._began
        return f"{self._text} ({seconds:.0f} s)" if self._text and seconds >= _TICK_SECONDS else self._text
