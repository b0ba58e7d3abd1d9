"""Clock of the engine: real seconds times a speed; a test passes in a clock of its own."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class EngineClock(Protocol):
    """Monotonic seconds, and a wait until a given time."""

    def now(self) -> float:
        """Return the present time in seconds from an arbitrary start."""

    async def sleep_until(self, when: float) -> None:
        """Return once `now()` has reached `when`."""


class RealClock:
    """Wall time x speed: at speed 2 the engine's second lasts half a real one."""

    def __init__(self, speed: float = 1.0) -> None:
        self._speed = speed
        self._start = time.monotonic()

    def now(self) -> float:
        """Return the engine's seconds since this clock was created."""
        return (time.monotonic() - self._start) * self._speed

    async def sleep_until(self, when: float) -> None:
        """Wait; let other tasks run even if the time has passed."""
        await asyncio.sleep(max(0.0, (when - self.now()) / self._speed))
