"""The clock, and how fast the platform's own waits go by."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """Waits of the platform (operations, probes) divided by a factor; traffic is never sped up.

    Attributes:
        speed: Simulated seconds of platform time in one second.
    """

    speed: float

    def seconds(self, simulated: float) -> float:
        """Real seconds for some seconds of the platform's time."""
        return simulated / self.speed

    @staticmethod
    def now() -> float:
        """Unix seconds."""
        return time.time()
