"""Choice of the region that gets a request: the nearest in use, with a share of the traffic while it comes back. Pure.

A region is out of use while its health signal says so, while it is ejected or drained. Google returns traffic gradually
to a region whose health is back and names no time: here its share grows evenly over a minute of the platform's time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

RETURN_SECONDS = 60.0
_LEAST = 0.01  # of the traffic at the moment of the return
HEALTHY_SHARE = 0.6
"""Share of a service's instances that are ready while it is healthy. Source: Cloud Run's page on service health."""


@dataclass
class HealthRecord:
    """Health of a region's service as its balancer sees it.

    Attributes:
        is_healthy: Whether it was, when it was last looked at.
        since: When that last became true; minus infinity where it always was.
    """

    is_healthy: bool = True
    since: float = float("-inf")

    def observe(self, ready: float | None, now: float) -> float:
        """The share of the traffic that the region gets, from 0 to 1.

        Args:
            ready: Share of the instances that are ready; None where the service sends no signal.
            now: Seconds of the platform.
        """
        is_healthy = ready is None or ready >= HEALTHY_SHARE
        if is_healthy and not self.is_healthy:
            self.since = now
        self.is_healthy = is_healthy
        if not is_healthy:
            return 0.0
        return min(1.0, max(_LEAST, (now - self.since) / RETURN_SECONDS))


def choose(order: Sequence[str], shares: Mapping[str, float], chance: Callable[[], float]) -> str:
    """The region of a request; "" where none is in use.

    Args:
        order: The regions, nearest first.
        shares: Region -> share of the traffic that it may get: 0 for one out of use.
        chance: Returns a number in [0, 1).
    """
    usable = [region for region in order if shares[region] > 0]
    for region in usable[:-1]:
        if shares[region] >= 1 or chance() < shares[region]:
            return region
    return usable[-1] if usable else ""
