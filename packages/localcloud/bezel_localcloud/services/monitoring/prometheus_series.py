"""Store of Prometheus series: what collectors have written, in memory and in the project's file.

Owns the samples, the start of a counter's count, and their bounds. Leaves out who writes them (a scraper,
`timeSeries.create`) and who reads them (`timeSeries.list`, PromQL).

A scrape of a target is one row of the file, so a daemon that starts knows the samples of those before it; it reads them
when they are first asked for. Without a time since when a target counts, a new series counts since the scrape before,
and a counter that has fallen since its last sample. A target keeps its last 2,048 scrapes and more: beyond them every
second one of the older half is dropped, but no last one before a counter began again, so that no increase is lost. All
targets together keep 4,096 scrapes and 4 million numbers: beyond them the target goes that was written to least
recently.
"""

import hashlib
import json
import logging
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bezel_localcloud.core.store import Store, is_full
from bezel_localcloud.routing.prometheus_samples import Buckets, ScrapedSample, StoredSeries

__all__ = ["Buckets", "PrometheusSeries", "ScrapedSample", "StoredSeries"]

log = logging.getLogger(__name__)
_MOST_OF_TARGET, _MOST_SCRAPES, _MOST_NUMBERS = 2048, 4096, 4_000_000
_SERIES_COST = 128  # what a series takes without samples, in numbers
_MOMENT = 0.001  # seconds: the shortest interval of a count


@dataclass
class _Target:
    """A monitored resource.

    Attributes:
        resource: Its labels.
        times: The times of its scrapes in order.
        series: Its series by their keys.
        size: What its series take, in numbers.
    """

    resource: Mapping[str, str]
    times: list[float] = field(default_factory=list)
    series: dict[tuple[object, ...], StoredSeries] = field(default_factory=dict)
    size: int = 0


class PrometheusSeries:
    """The samples of all targets."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._targets: dict[str, _Target] | None = None
        self._scrapes = self._size = 0

    def write(
        self, time: float, resource: Mapping[str, str], samples: Iterable[ScrapedSample], since: float | None = None
    ) -> list[ScrapedSample]:
        """Add the samples of a scrape; return those that are not newer than the last one of their series.

        Args:
            time: Unix seconds of the scrape.
            resource: Labels of the monitored resource: project_id, location, cluster, namespace, job, instance.
            samples: Its samples.
            since: Unix seconds since which the target's counters and histograms count; None where that is not known.
        """
        added, refused = list[ScrapedSample](), list[ScrapedSample]()
        target, name = self._target(resource), _target_name(resource)
        for sample in samples:
            (added if self._add(target, time, sample, since) else refused).append(sample)
        if not added:
            return refused
        self._note_scrape(target, time)
        self._store_scrape(name, target, time, added, since)
        self._limit(name)
        return refused

    def series(self) -> Iterator[StoredSeries]:
        """Every series."""
        for target in self._read().values():
            yield from target.series.values()

    def _target(self, resource: Mapping[str, str]) -> _Target:
        """The target of a resource, as the one that was written to last."""
        targets, name = self._read(), _target_name(resource)
        target = targets.pop(name, None) or _Target(dict(resource))
        targets[name] = target
        return target

    def _read(self) -> dict[str, _Target]:
        if self._targets is None:
            self._targets = {}
            for time, body in self._store.scrapes():
                scrape = json.loads(zlib.decompress(body))
                target = self._target(scrape["resource"])
                for row in scrape["samples"]:
                    self._add(target, time, _sample(row), scrape["since"])
                self._note_scrape(target, time)
        return self._targets

    def _note_scrape(self, target: _Target, time: float) -> None:
        if not target.times or target.times[-1] < time:
            target.times.append(time)
            self._scrapes += 1

    def _add(self, target: _Target, time: float, sample: ScrapedSample, since: float | None) -> bool:
        """Add a sample, unless its series has one that is as new."""
        bounds = sample.value.bounds if isinstance(sample.value, Buckets) else ()
        key = (sample.family, sample.kind, tuple(sorted(sample.labels.items())), bounds)
        series, size = target.series.get(key), 0
        if series is None:
            series = StoredSeries(sample.family, sample.kind, dict(sample.labels), target.resource, bounds)
            size = _SERIES_COST
        elif series.times[-1] >= time:
            return False
        numbers = _numbers(sample)
        earlier = next((one for one in reversed(target.times) if one < time), None) if not series.times else None
        series.add(_start(series, time, numbers, since, earlier), time, numbers)
        target.series[key] = series
        size += len(numbers) + 2
        target.size += size
        self._size += size
        return True

    def _store_scrape(
        self, name: str, target: _Target, time: float, samples: list[ScrapedSample], since: float | None
    ) -> None:
        """Write a scrape to the file; a daemon that starts after a full disk does not know it."""
        scrape = {"resource": target.resource, "since": since, "samples": [_row(sample) for sample in samples]}
        try:
            self._store.add_scrape(name, time, zlib.compress(json.dumps(scrape).encode(), 1))
        except sqlite3.Error as error:
            if not is_full(error):
                raise
            log.warning("a scrape is not in the file, whose disk is full")

    def _limit(self, written: str) -> None:
        """Drop samples beyond the bounds: of the target itself, then of the targets that were written to before it."""
        targets = self._read()
        if len(targets[written].times) > _MOST_OF_TARGET:
            self._thin(written)
        while self._scrapes > _MOST_SCRAPES or self._size > _MOST_NUMBERS:
            oldest = next(iter(targets))
            if oldest == written:
                if not self._thin(written):
                    return
            else:
                target = targets.pop(oldest)
                self._scrapes -= len(target.times)
                self._size -= target.size
                self._store.delete_scrapes(oldest, target.times)

    def _thin(self, name: str) -> bool:
        """Drop every second scrape of a target's older half; return whether there was one to drop."""
        target = self._read()[name]
        half = target.times[: len(target.times) // 2]
        dropped = set(half[1::2]) - _last_times(target)
        if not dropped:
            return False
        target.times = [time for time in target.times if time not in dropped]
        self._scrapes -= len(dropped)
        self._size -= target.size
        target.size = 0
        for key, series in list(target.series.items()):
            series.keep([index for index, time in enumerate(series.times) if time not in dropped])
            if not series.times:
                del target.series[key]
                continue
            target.size += _SERIES_COST + len(series.times) * (len(series.columns) + 2)
        self._size += target.size
        self._store.delete_scrapes(name, sorted(dropped))
        return True


def _last_times(target: _Target) -> set[float]:
    """Times of the last samples before a count began again."""
    last = set[float]()
    for series in target.series.values():
        if series.kind != "gauge":
            changes = zip(series.times, series.starts, series.starts[1:], strict=False)
            last |= {time for time, start, following in changes if following > start}
    return last


def _start(
    series: StoredSeries, time: float, numbers: tuple[float, ...], since: float | None, earlier: float | None
) -> float:
    """Unix seconds since which a new sample of a series counts.

    Args:
        series: The series without the sample.
        time: Time of the sample.
        numbers: Its numbers.
        since: When its target says that it began to count.
        earlier: Time of the target's scrape before.
    """
    if series.kind == "gauge":
        return time
    if not series.times:
        begin = earlier if since is None or (earlier is not None and earlier > since) else since
        return min(time - _MOMENT, time if begin is None else begin)
    last = series.times[-1]
    if since is not None and last < since < time:
        return since
    count = -2 if series.kind == "histogram" else -1  # all observations, or the value
    return last if numbers[count] < series.columns[count][-1] else series.starts[-1]


def _numbers(sample: ScrapedSample) -> tuple[float, ...]:
    if isinstance(sample.value, Buckets):
        return (*map(float, sample.value.counts), float(sample.value.total))
    return (float(sample.value),)


def _target_name(resource: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(dict(resource), sort_keys=True).encode()).hexdigest()[:16]


def _row(sample: ScrapedSample) -> list[Any]:
    bounds = list(sample.value.bounds) if isinstance(sample.value, Buckets) else None
    return [sample.family, sample.kind, dict(sample.labels), bounds, list(_numbers(sample))]


def _sample(row: list[Any]) -> ScrapedSample:
    family, kind, labels, bounds, numbers = row
    value = numbers[0] if bounds is None else Buckets(tuple(bounds), tuple(numbers[:-1]), numbers[-1])
    return ScrapedSample(family, kind, labels, value)
