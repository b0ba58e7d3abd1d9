"""Points of written metrics: numbers and distributions, and their JSON. Pure."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.routing.prometheus_samples import Buckets, StoredSeries


class Distribution(NamedTuple):
    """A histogram.

    Attributes:
        bounds: Upper bounds in ascending order, without infinity.
        counts: Observations in each bucket, the last one those beyond all bounds.
        total: Sum of all observations.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float

    @property
    def observations(self) -> float:
        """Number of all observations."""
        return sum(self.counts)

    def plus(self, other: "Distribution", sign: int = 1) -> "Distribution":
        """The sum, or with the sign -1 the difference, of two with the same bounds."""
        counts = tuple(one + sign * two for one, two in zip(self.counts, other.counts, strict=True))
        return Distribution(self.bounds, counts, self.total + sign * other.total)

    def percentile(self, percent: int) -> float:
        """A percentile, by linear interpolation in its bucket; of one beyond all bounds the last bound."""
        rank, below = self.observations * percent / 100, 0.0
        for index, count in enumerate(self.counts[:-1]):
            if count and below + count >= rank:
                start = self.bounds[index - 1] if index else min(0.0, self.bounds[0])
                return start + (self.bounds[index] - start) * (rank - below) / count
            below += count
        return self.bounds[-1] if self.bounds else 0.0

    def json(self) -> Json:
        """google.api.Distribution, with the deviation as if each observation were in the middle of its bucket."""
        if not self.observations:
            return {"bucketOptions": {"explicitBuckets": {"bounds": list(self.bounds)}}}
        mean, edges = self.total / self.observations, (min(0.0, *self.bounds, 0.0), *self.bounds)
        middles = [(low + high) / 2 for low, high in pairwise(edges)] + [edges[-1]]
        deviation = sum(count * (middle - mean) ** 2 for count, middle in zip(self.counts, middles, strict=True))
        return {
            "count": str(round(self.observations)),
            "mean": mean,
            "sumOfSquaredDeviation": deviation,
            "bucketOptions": {"explicitBuckets": {"bounds": list(self.bounds)}},
            "bucketCounts": [str(round(count)) for count in self.counts],
        }


class WrittenPoint(NamedTuple):
    """A point: its interval in Unix seconds, and its value."""

    start: float
    end: float
    value: float | Distribution

    def json(self) -> Json:
        """google.monitoring.v3.Point."""
        value = (
            {"distributionValue": self.value.json()}
            if isinstance(self.value, Distribution)
            else {"doubleValue": _double(self.value)}
        )
        return {"interval": {"startTime": timestamp(self.start), "endTime": timestamp(self.end)}, "value": value}


def _double(value: float) -> float | str:
    """A number in protobuf's JSON form."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def points_of(series: StoredSeries) -> list[WrittenPoint]:
    """The points of a stored series, oldest first."""
    rows = zip(series.starts, series.times, zip(*series.columns, strict=True), strict=True)
    return [WrittenPoint(start, end, _value(series, numbers)) for start, end, numbers in rows]


def _value(series: StoredSeries, numbers: Sequence[float]) -> float | Distribution:
    if series.kind != "histogram":
        return numbers[0]
    counts = tuple(two - one for one, two in pairwise((0.0, *numbers[:-1])))
    return Distribution(series.bounds, counts, numbers[-1])


def buckets_of(distribution: Json) -> Buckets:
    """The buckets of a written google.api.Distribution.

    Raises:
        ValueError: It has no explicit buckets, or numbers that do not fit; the text says why.
    """
    bounds = tuple(float(each) for each in _explicit_bounds(distribution))
    if any(one >= two for one, two in pairwise(bounds)):
        raise ValueError("bounds must be in ascending order")
    counts = [float(each) for each in distribution.get("bucketCounts") or []]
    if len(counts) > len(bounds) + 1 or any(count < 0 for count in counts):
        raise ValueError(f"bucketCounts must have at most {len(bounds) + 1} members, none below zero")
    counts += [0.0] * (len(bounds) + 1 - len(counts))
    count = float(distribution.get("count") or 0)
    if sum(counts) != count:
        raise ValueError(f"the sum of bucketCounts is {sum(counts):g}, and count is {count:g}")
    cumulative = tuple(sum(counts[: index + 1]) for index in range(len(counts)))
    return Buckets(bounds, cumulative, float(distribution.get("mean") or 0.0) * count)


def _explicit_bounds(distribution: Json) -> list[float]:
    options: Json = distribution.get("bucketOptions") or {}
    if set(options) != {"explicitBuckets"}:
        raise ValueError("bucketOptions must have explicitBuckets")
    bounds: list[float] = options["explicitBuckets"].get("bounds") or []
    return bounds
