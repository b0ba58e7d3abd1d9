"""Retry policy for REST calls: retryable statuses and waits. Pure, with the dice passed in."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})

# The server did not act on these requests, whatever their method.
_REFUSED = frozenset({429})
_SERVER_FAULTS = frozenset({500, 502, 503, 504})


@dataclass(frozen=True)
class Backoff:
    """Exponential waits with jitter, in seconds: many clients that failed together do not retry together."""

    first: float = 0.5
    factor: float = 2.0
    longest: float = 16.0

    def delays(self, dice: Callable[[], float]) -> Iterator[float]:
        """Endless waits, each between half and the whole of its step; ``dice`` yields numbers in [0, 1)."""
        step = self.first
        while True:
            yield step * (0.5 + dice() / 2)
            step = min(step * self.factor, self.longest)


def is_retryable(status: int, *, idempotent: bool) -> bool:
    """Whether the same request may succeed later and may safely be sent again."""
    return status in _REFUSED or (idempotent and status in _SERVER_FAULTS)


def retry_delay(retry_after: str | None) -> float:
    """Return the seconds of a ``Retry-After`` header; 0 where there is none, or it names a date."""
    if retry_after is None or not retry_after.strip().isdecimal():
        return 0.0
    return float(retry_after)
