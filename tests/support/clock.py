"""Clock of a test: it passes only in its own waits, and what a test plans happens at its moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock:
    """Seconds from 0.

    Attributes:
        now: The time.
        slept: The waits, in their order.
        events: What happens in a wait that reaches its moment, once.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.events: list[tuple[float, Callable[[], object]]] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.slept.append(seconds)
        self.now += seconds
        for planned in [each for each in self.events if each[0] <= self.now]:
            self.events.remove(planned)
            planned[1]()
