"""Counts of log entries: the series of each metric of the project, by what the log has had since it was made.

Owns the series. A metric counts the entries that come after it, by the minute of their time; a changed one counts on
with its new filter. The log is read when a query comes, a slice at a time. A daemon that starts counts the entries
again that the log still has. Leaves out the definitions (`log_metrics`) and who reads the series (Monitoring).
"""

import asyncio
import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.store import Store
from bezel_localcloud.core.work import TooMuchWorkError
from bezel_localcloud.routing.prometheus_samples import Kind, StoredSeries
from bezel_localcloud.services.logging.filters import Filter, parse_filter
from bezel_localcloud.services.logging.log_metrics import KIND, bounds_of, is_distribution, labels_of, value_of

_SLICE = 500  # entries read at once
_MINUTE = 60.0
_MOST_SAMPLES, _MOST_SERIES = 4096, 10_000  # of a series, and of a metric: further combinations of labels count nowhere


@dataclass
class _Counted:
    """A metric, and its counts so far.

    Attributes:
        metric: Its definition.
        filter: Its filter.
        position: (Unix seconds, id) of the last entry that was read.
        series: Its series by their labels.
    """

    metric: Json
    filter: Filter
    position: tuple[float, int]
    series: dict[tuple[tuple[str, str], ...], StoredSeries] = field(default_factory=dict)


class LogEntryCounter:
    """The series of all metrics of log entries."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counted: dict[str, _Counted] = {}

    async def count(self) -> None:
        """Count the entries that are new; other requests are served between the slices."""
        self._read_metrics()
        for name in list(self._counted):
            more = True
            while more and (counted := self._counted.get(name)):
                more = self._count_slice(counted)
                await asyncio.sleep(0)

    def series(self) -> Iterator[StoredSeries]:
        """The series as they were counted last."""
        for counted in self._counted.values():
            yield from counted.series.values()

    def _read_metrics(self) -> None:
        before, self._counted = self._counted, {}
        for name, metric in self._store.rows(KIND):
            counted = before.get(name)
            if counted is None or counted.metric["createTime"] != metric["createTime"]:
                made = datetime.fromisoformat(metric["createTime"]).timestamp()
                counted = _Counted(metric, parse_filter(metric["filter"]), (made, 0))
            elif counted.metric != metric:
                counted.metric, counted.filter = metric, parse_filter(metric["filter"])
            self._counted[name] = counted

    def _count_slice(self, counted: _Counted) -> bool:
        """Count the next entries; return whether there may be more."""
        rows = self._store.log_slice(newest_first=False, after=counted.position, limit=_SLICE)
        for position, entry in rows:
            counted.position = position
            if not counted.metric.get("disabled") and _holds(counted.filter, entry):
                _count(counted, position[0], entry)
        return len(rows) == _SLICE


def _holds(chosen: Filter, entry: Json) -> bool:
    try:
        return chosen.holds(entry)
    except TooMuchWorkError:
        return False


def _count(counted: _Counted, time: float, entry: Json) -> None:
    """Add an entry to its series, at the end of its minute."""
    metric, value = counted.metric, value_of(counted.metric, entry)
    if value is None:
        return
    labels, monitored = labels_of(metric, entry), entry["resource"]
    resource = {"monitored_resource": monitored["type"], **monitored.get("labels", {})}
    key = tuple(sorted({**resource, **{f"metric.{name}": text for name, text in labels.items()}}.items()))
    series = counted.series.get(key)
    if series is None:
        if len(counted.series) >= _MOST_SERIES:
            return
        kind: Kind = "histogram" if is_distribution(metric) else "counter"
        series = StoredSeries(metric["metricDescriptor"]["type"], kind, labels, resource, bounds_of(metric))
        counted.series[key] = series
    end = math.floor(time / _MINUTE) * _MINUTE + _MINUTE
    numbers = array("d", [column[-1] for column in series.columns] or [0.0] * _columns(series))
    for index in range(bisect_left(series.bounds, value), len(series.bounds)) if series.bounds else ():
        numbers[index] += 1
    if series.kind == "histogram":
        numbers[-2] += 1
    numbers[-1] += value
    if series.times and series.times[-1] >= end:
        for column, number in zip(series.columns, numbers, strict=True):
            column[-1] = number
        return
    series.add(series.starts[0] if series.starts else end - _MINUTE, end, tuple(numbers))
    if len(series.times) > _MOST_SAMPLES:
        series.keep(list(range(_MOST_SAMPLES // 2, len(series.times))))


def _columns(series: StoredSeries) -> int:
    return len(series.bounds) + 2 if series.kind == "histogram" else 1
