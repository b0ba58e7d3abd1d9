"""The engine's time: real seconds, or real seconds run through faster; a test passes in a clock of its own."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class EngineClock(Protocol):
    """Seconds that only grow, and a way to wait for one of them."""

    def now(self) -> float:
        """The present in seconds from an arbitrary start."""

    async def sleep_until(self, when: float) -> None:
        """Return once `now()` has reached `when`."""


class RealClock:
    """Wall time x speed: at speed 2 the engine's second lasts half a real one."""

    def __init__(self, speed: float = 1.0) -> None:
        self._speed = speed
        self._start = time.monotonic()

    def now(self) -> float:
        """Seconds of the engine since this clock was made."""
        return (time.monotonic() - self._start) * self._speed

    async def sleep_until(self, when: float) -> None:
        """Wait, giving way to other tasks in any case."""
        await asyncio.sleep(max(0.0, (when - self.now()) / self._speed))
