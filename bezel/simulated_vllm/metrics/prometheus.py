"""Counters, gauges and histograms in the text form that Prometheus scrapes, written as by vLLM's library.

Each counter and histogram has a second family `..._created`, a gauge with the Unix time of its creation. Labels are in
alphabetical order.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Labels = tuple[tuple[str, str], ...]


def labels(values: Mapping[str, str]) -> Labels:
    """Return labels in the order in which they are written."""
    return tuple(sorted(values.items()))


def number(value: float) -> str:
    """Return a number as the client library writes it: 1.79e+09 with all its digits instead of 1790000000.0."""
    if math.isinf(value):
        return "+Inf"
    text = repr(float(value))
    point = text.find(".")
    if value > 0 and point > len("999999"):
        digits = f"{text[0]}.{text[1:point]}{text[point + 1 :]}".rstrip("0.")
        return f"{digits}e+{point - 1:02d}"
    return text


def _line(name: str, pairs: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{text}"' for key, text in pairs)
    return f"{name}{{{inside}}} {number(value)}" if inside else f"{name} {number(value)}"


class Family:
    """A counter, gauge or summary: one number for each set of labels (a summary has two)."""

    kind = "gauge"

    def __init__(self, name: str, text: str, clock: Callable[[], float]) -> None:
        self.name = name
        self.text = text
        self._clock = clock
        self.values: dict[Labels, float] = {}
        self.created: dict[Labels, float] = {}

    def start(self, pairs: Labels) -> None:
        """Create a series with the value 0, unless it exists."""
        if pairs not in self.created:
            self.created[pairs] = self._clock()
            self.values[pairs] = 0.0

    def set(self, pairs: Labels, value: float) -> None:
        """Set a series."""
        self.start(pairs)
        self.values[pairs] = value

    def add(self, pairs: Labels, value: float = 1.0) -> None:
        """Add to a series."""
        self.start(pairs)
        self.values[pairs] += value

    def lines(self) -> Iterator[str]:
        """Yield the family's text."""
        yield f"# HELP {self.name} {self.text}"
        yield f"# TYPE {self.name} {self.kind}"
        yield from self._samples()
        if self.kind != "gauge" and self.created:
            name = self.name.removesuffix("_total") if self.kind == "counter" else self.name
            yield f"# HELP {name}_created {self.text}"
            yield f"# TYPE {name}_created gauge"
            for pairs, time in self.created.items():
                yield _line(f"{name}_created", pairs, time)

    def _samples(self) -> Iterator[str]:
        for pairs, value in self.values.items():
            yield _line(self.name, pairs, value)


class Counter(Family):
    """A number that only grows; its name ends in `_total`."""

    kind = "counter"


class Summary(Family):
    """A count and a sum."""

    kind = "summary"

    def __init__(self, name: str, text: str, clock: Callable[[], float]) -> None:
        super().__init__(name, text, clock)
        self._counts: dict[Labels, int] = {}

    def observe(self, pairs: Labels, value: float) -> None:
        """Count one observation."""
        self.add(pairs, value)
        self._counts[pairs] = self._counts.get(pairs, 0) + 1

    def _samples(self) -> Iterator[str]:
        for pairs, total in self.values.items():
            yield _line(f"{self.name}_count", pairs, self._counts.get(pairs, 0))
            yield _line(f"{self.name}_sum", pairs, total)


class Histogram(Family):
    """Observations in buckets with upper bounds."""

    kind = "histogram"

    def __init__(self, name: str, text: str, clock: Callable[[], float], bounds: Sequence[float]) -> None:
        super().__init__(name, text, clock)
        self._bounds = tuple(bounds)
        self._buckets: dict[Labels, list[int]] = {}

    def observe(self, pairs: Labels, value: float, times: int = 1) -> None:
        """Count `times` observations of a value."""
        self.add(pairs, value * times)
        buckets = self._buckets.get(pairs)
        if buckets is None:
            buckets = self._buckets[pairs] = [0] * (len(self._bounds) + 1)
        buckets[bisect_left(self._bounds, value)] += times

    def _samples(self) -> Iterator[str]:
        for pairs, total in self.values.items():
            count = 0
            counts = self._buckets.get(pairs) or [0] * (len(self._bounds) + 1)
            for bound, here in zip((*self._bounds, math.inf), counts, strict=True):
                count += here
                yield _line(f"{self.name}_bucket", labels({**dict(pairs), "le": number(bound)}), count)
            yield _line(f"{self.name}_count", pairs, count)
            yield _line(f"{self.name}_sum", pairs, total)
