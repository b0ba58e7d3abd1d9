"""Counters as Google's build of Prometheus exports them: from the first scrape on, which itself is not written. Pure.

It knows no window over which the first value was counted, so later ones are written without it; a counter that falls
began again at 0. Source: GoogleCloudPlatform/prometheus, google/export/series_cache.go (`getResetAdjusted`).
"""

from collections.abc import Iterable

from bezel_localcloud.routing.prometheus_samples import Buckets, ScrapedSample

_Key = tuple[str, tuple[tuple[str, str], ...]]


class CountedFromFirst:
    """The first and the last numbers of each counter and histogram of a target."""

    def __init__(self) -> None:
        self._first: dict[_Key, tuple[float, ...]] = {}
        self._last: dict[_Key, tuple[float, ...]] = {}

    def adjust(self, samples: Iterable[ScrapedSample]) -> list[ScrapedSample]:
        """The samples of a scrape as they are written."""
        adjusted = []
        for sample in samples:
            if sample.kind == "gauge":
                adjusted.append(sample)
                continue
            key, numbers = (sample.family, tuple(sorted(sample.labels.items()))), _numbers(sample)
            last = self._last.get(key)
            self._last[key] = numbers
            if last is None or len(last) != len(numbers):
                self._first[key] = numbers
                continue
            if numbers[_COUNT[sample.kind]] < last[_COUNT[sample.kind]]:
                self._first[key] = tuple(0.0 for _ in numbers)
            adjusted.append(_with(sample, [now - first for now, first in zip(numbers, self._first[key], strict=True)]))
        return adjusted


_COUNT = {"counter": 0, "histogram": -2}  # place of the number that only grows


def _numbers(sample: ScrapedSample) -> tuple[float, ...]:
    return (*sample.value.counts, sample.value.total) if isinstance(sample.value, Buckets) else (sample.value,)


def _with(sample: ScrapedSample, numbers: list[float]) -> ScrapedSample:
    if isinstance(sample.value, Buckets):
        return sample._replace(value=Buckets(sample.value.bounds, tuple(numbers[:-1]), numbers[-1]))
    return sample._replace(value=numbers[0])
