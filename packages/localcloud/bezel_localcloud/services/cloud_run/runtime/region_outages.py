"""Regions that a fault has taken down: no service there answers, and requests under way there end.

Owns when a region is down. Leaves out what a request does then (ingress.py, and the balancer's front).
"""

import asyncio

from bezel_localcloud.core.patterns import shell_pattern_fits
from bezel_localcloud.faults.registry import Fault, Faults


class RegionDownError(ConnectionError):
    """The region gives no answer; none of the response has been sent."""


class RegionOutages:
    """The regions of a project, as the active faults have them."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._outages: dict[str, asyncio.Future[None]] = {}
        faults.listen(self._heed)

    def is_down(self, region: str) -> bool:
        """Whether a region answers nothing."""
        return self._find("region-down", region) is not None

    def is_drained(self, region: str) -> bool:
        """Whether a balancer sends a region no further requests."""
        return self._find("region-drain", region) is not None

    def exhaustion(self, region: str) -> Fault | None:
        """The fault by which a region has no GPU for a further instance, if any."""
        return self._find("gpu-exhausted", region)

    def outage(self, region: str) -> "asyncio.Future[None]":
        """A future that is done once a region goes down, the same one for all requests of the region."""
        if region not in self._outages:
            self._outages[region] = asyncio.get_running_loop().create_future()
        return self._outages[region]

    def _find(self, kind: str, region: str) -> Fault | None:
        fault = self._faults.find(kind)
        return fault if fault is not None and shell_pattern_fits(fault.text("region"), region) else None

    def _heed(self) -> None:
        for region in [region for region in self._outages if self.is_down(region)]:
            outage = self._outages.pop(region)
            if not outage.done():
                outage.set_result(None)
