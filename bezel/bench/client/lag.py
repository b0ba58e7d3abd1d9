"""Lateness of the client's own timer: the sign of a client that cannot keep up."""

from array import array
from typing import Final

TICK_NS: Final = 10_000_000
"""How often the loop wakes for nothing else (10 ms): the lateness of each is one observation."""


class Lag:
    """Lateness of the loop's ticks."""

    def __init__(self) -> None:
        self._late = array("q")

    def tick(self, due: int, now: int) -> None:
        """Take one observation: when the loop should have woken and when it did (ns)."""
        self._late.append(max(0, now - due))

    def clear(self) -> None:
        """Discard the observations before the clock started."""
        del self._late[:]

    @property
    def p99_ms(self) -> float:
        """Return the 99th percentile (nearest rank); 0 before the first tick."""
        late = sorted(self._late)
        return late[-(-len(late) * 99 // 100) - 1] / 1e6 if late else 0.0

    @property
    def max_ms(self) -> float:
        """Return the largest lateness; 0 before the first tick."""
        return max(self._late, default=0) / 1e6
