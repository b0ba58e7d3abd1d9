"""Growth of counters and histograms between samples, over servers that begin, end and count from 0 again. Pure.

A server that appears counts from 0: a sample of it before the first window is known, or there was none. A count that
falls began again. What a server counted between its last sample and its end is in no sample.
"""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Column = Sequence[float | None]
"""Values of one series: at the begin of the first window, then at the end of each; None without a sample."""
Standing = Literal["at most", "between", "at least"]
"""Whether a percentile lies between two bounds, or only one of them is known."""
Samples = Sequence[tuple[float | None, bool]]
"""Every sample of a series in a window: its value, and whether it is the first one of another process.

The value is None for a process that began in the window and has no sample of the series there.
"""


def increases(
    values: Column, finer: Mapping[int, Samples] | None = None, restarted: Container[int] = frozenset()
) -> list[float]:
    """The growth of a counter in each window.

    A counter may have its first sample of a next process in a later window than its server: before the first request
    some do not exist.

    Args:
        values: Its values.
        finer: Window -> its samples, for windows in which the server was restarted.
        restarted: The windows in which the server was restarted.
    """
    last = values[0] or 0.0
    begins = False
    growth = []
    for number, value in enumerate(values[1:]):
        is_restarted = number in restarted
        samples = (finer or {}).get(number) or ([] if value is None else [(value, is_restarted)])
        grown = 0.0
        for sample, is_new in samples:
            if sample is None:
                begins = True
                continue
            grown += sample if is_new or begins or sample < last else sample - last
            last, begins = sample, False
        begins = begins or (is_restarted and not any(is_new for _, is_new in samples))
        growth.append(grown)
    return growth


@dataclass(frozen=True)
class Buckets:
    """Observations of a histogram.

    Attributes:
        bounds: Upper bounds in ascending order, infinity last.
        counts: Observations up to each bound.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def count(self) -> float:
        """All observations."""
        return self.counts[-1] if self.counts else 0.0

    def up_to(self, bound: float) -> float | None:
        """Observations up to a bound; None where it is none of this histogram's."""
        return next((count for at, count in zip(self.bounds, self.counts, strict=True) if at == bound), None)

    def without_zeros(self, number: float) -> "Buckets":
        """The same without that many observations of the value 0."""
        return Buckets(self.bounds, tuple(max(0.0, count - number) for count in self.counts))

    def quantile(self, share: float) -> tuple[float, Standing] | None:
        """The value below which a share of the observations is; None without an observation.

        Between two bounds it is interpolated as by Prometheus' `histogram_quantile`. Below the lowest bound and above
        the highest one only that bound is known: the lowest of vLLM's queue times is 0.3 s, where most are near 0.
        """
        finite = [bound for bound in self.bounds if math.isfinite(bound)]
        if self.count <= 0 or not finite:
            return None
        rank = share * self.count
        below, low = 0.0, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            if count >= rank and count > below:
                if math.isinf(bound):
                    break
                if bound == self.bounds[0]:
                    return bound, "at most"
                return low + (bound - low) * max(0.0, rank - below) / (count - below), "between"
            below, low = count, bound
        return finite[-1], "at least"


def sum_buckets(parts: Iterable[Buckets]) -> Buckets:
    """The observations of several histograms together; where their bounds differ, those that all of them have."""
    histograms = [part for part in parts if part.bounds]
    if not histograms:
        return Buckets((), ())
    common = set.intersection(*({*part.bounds} for part in histograms))
    bounds = tuple(sorted(common))
    return Buckets(bounds, tuple(sum(part.up_to(bound) or 0.0 for part in histograms) for bound in bounds))


def fill_buckets(columns: Mapping[float, Column]) -> dict[float, list[float | None]]:
    """Columns of a histogram's buckets by their bounds, where a bucket without a sample has the count below it.

    Cloud Monitoring stores no empty bucket, so that one may appear late, or be missing between two others.
    """
    bounds = sorted(columns)
    length = max((len(column) for column in columns.values()), default=0)
    rows: dict[float, list[float | None]] = {bound: [] for bound in bounds}
    for place in range(length):
        is_sampled = any(columns[bound][place] is not None for bound in bounds)
        below = 0.0
        for bound in bounds:
            value = columns[bound][place]
            below = below if value is None else value
            rows[bound].append(below if is_sampled else None)
    return rows
