"""Shapes of Prometheus metrics: a sample as it is scraped or written, and a stored series with its samples.

Owns the shapes alone. Leaves the storage to `bezel_localcloud.services.monitoring.prometheus_series`.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]
KINDS: tuple[Kind, ...] = ("counter", "gauge", "histogram")


class Buckets(NamedTuple):
    """The value of a histogram, as its series `_bucket` and `_sum` have it.

    Attributes:
        bounds: Upper bounds in ascending order, without infinity.
        counts: Observations up to each bound, and last those up to infinity: one number more than bounds.
        total: Sum of all observations.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float


class ScrapedSample(NamedTuple):
    """A sample of one series at the time of its scrape.

    Attributes:
        family: Name of its samples, for a counter with `_total`, for a histogram without `_bucket`.
        kind: Kind of the metric.
        labels: Its labels, without `le`.
        value: A number, or the buckets of a histogram.
    """

    family: str
    kind: Kind
    labels: Mapping[str, str]
    value: float | Buckets


@dataclass
class StoredSeries:
    """A series with its samples in the order of their times; the arrays have one entry a sample.

    Attributes:
        family: As of a sample.
        kind: As of a sample.
        labels: As of a sample.
        resource: Labels of its monitored resource.
        bounds: Upper bounds of a histogram's buckets; () for other kinds.
        times: Unix seconds.
        starts: Unix seconds since which a counter or histogram counts; of a gauge, its times.
        columns: One column of values, or for a histogram one for each number of its counts and one for its sum.
    """

    family: str
    kind: Kind
    labels: Mapping[str, str]
    resource: Mapping[str, str]
    bounds: tuple[float, ...] = ()
    times: "array[float]" = field(default_factory=lambda: array("d"))
    starts: "array[float]" = field(default_factory=lambda: array("d"))
    columns: list["array[float]"] = field(default_factory=list)

    @property
    def type(self) -> str:
        """The name of its metric in Cloud Monitoring."""
        return f"prometheus.googleapis.com/{self.family}/{self.kind}"

    def add(self, start: float, time: float, numbers: tuple[float, ...]) -> None:
        """Append a sample."""
        self.columns = self.columns or [array("d") for _ in numbers]
        self.times.append(time)
        self.starts.append(start)
        for column, number in zip(self.columns, numbers, strict=True):
            column.append(number)

    def keep(self, indices: list[int]) -> None:
        """Drop every sample but those at some indices."""
        self.times, self.starts = (array("d", [each[i] for i in indices]) for each in (self.times, self.starts))
        self.columns = [array("d", [column[i] for i in indices]) for column in self.columns]
