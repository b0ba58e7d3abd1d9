"""Outlier detection of a backend service: which regions are ejected, by the answers that they gave. Pure.

Source: the discovery document of Compute v1, schema OutlierDetection (rules and defaults). The success rate is left
out: the document says that a serverless group has none. Times are seconds of the platform.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from bezel_localcloud.core.json_types import Json

_GATEWAY = frozenset({502, 503, 504})


@dataclass(frozen=True)
class OutlierSettings:
    """What ejects a region, and for how long.

    Attributes:
        consecutive_errors: Answers 5xx in a row.
        consecutive_gateway_failure: Answers 502, 503, 504 in a row; an answer that never came is one of them.
        enforcing_consecutive_errors: Percentage of the cases in which the former ejects.
        enforcing_consecutive_gateway_failure: That of the latter.
        interval: Seconds between two sweeps, which return regions.
        base_ejection_time: Seconds out of use, times the number of ejections.
        max_ejection_percent: Share of the regions that may be out of use at a time.
    """

    consecutive_errors: int = 5
    consecutive_gateway_failure: int = 3
    enforcing_consecutive_errors: int = 0
    enforcing_consecutive_gateway_failure: int = 100
    interval: float = 1.0
    base_ejection_time: float = 30.0
    max_ejection_percent: int = 50

    @classmethod
    def of(cls, row: Json) -> "OutlierSettings | None":
        """The settings of a backend service; None for one that ejects nothing."""
        body = row.get("outlierDetection")
        if not body:
            return None
        return cls(
            body.get("consecutiveErrors", cls.consecutive_errors),
            body.get("consecutiveGatewayFailure", cls.consecutive_gateway_failure),
            body.get("enforcingConsecutiveErrors", cls.enforcing_consecutive_errors),
            body.get("enforcingConsecutiveGatewayFailure", cls.enforcing_consecutive_gateway_failure),
            _duration(body.get("interval"), cls.interval),
            _duration(body.get("baseEjectionTime"), cls.base_ejection_time),
            body.get("maxEjectionPercent", cls.max_ejection_percent),
        )


@dataclass
class _Record:
    errors: int = 0
    gateway_failures: int = 0
    ejections: int = 0
    returns_at: float = -math.inf


@dataclass
class Outliers:
    """The regions of one backend service.

    Attributes:
        settings: What ejects; a new value applies from the next answer on.
        chance: Returns a number in [0, 1).
    """

    settings: OutlierSettings
    chance: Callable[[], float]
    _records: dict[str, _Record] = field(default_factory=dict)

    def ejected_regions(self, now: float) -> frozenset[str]:
        """The regions that are out of use."""
        return frozenset(region for region, record in self._records.items() if now < record.returns_at)

    def report(self, region: str, status: int, now: float, regions: int) -> bool:
        """Count an answer of a region; return whether it is ejected by it.

        Args:
            region: The region.
            status: Status of the answer.
            now: The time.
            regions: Number of the backend service's regions.
        """
        record = self._records.setdefault(region, _Record())
        if now < record.returns_at:
            return False  # an answer to a request of before
        record.errors = record.errors + 1 if status >= 500 else 0
        record.gateway_failures = record.gateway_failures + 1 if status in _GATEWAY else 0
        settings = self.settings
        enforcing = []
        if record.gateway_failures >= settings.consecutive_gateway_failure:
            enforcing.append(settings.enforcing_consecutive_gateway_failure)
            record.gateway_failures = 0
        if record.errors >= settings.consecutive_errors:
            enforcing.append(settings.enforcing_consecutive_errors)
            record.errors = 0
        if not any(self.chance() * 100 < percentage for percentage in enforcing):
            return False
        if (len(self.ejected_regions(now)) + 1) * 100 > settings.max_ejection_percent * regions:
            return False
        record.ejections += 1
        seconds = settings.base_ejection_time * record.ejections
        record.returns_at = now + math.ceil(seconds / settings.interval) * settings.interval
        record.errors = record.gateway_failures = 0
        return True


def _duration(body: Json | None, default: float) -> float:
    """Seconds of a Duration of Compute Engine, whose seconds may be a text."""
    seconds = int((body or {}).get("seconds") or 0) + int((body or {}).get("nanos") or 0) / 1e9
    return seconds or default
