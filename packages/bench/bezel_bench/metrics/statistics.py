"""Statistics on plain numbers: exact percentiles, distributions, and intervals for dependent values.

Owns the arithmetic. Leaves the meaning of the numbers to bezel_bench.metrics.definitions.

Requests of one run wait for each other, so their latencies are not independent draws, and the textbook interval over
them is far too narrow. Two methods are valid and used here: repeats of a run are independent (`of_repeats`), and long
consecutive sections of one run nearly so (`of_sections`: Asmussen and Glynn, Stochastic Simulation, 2007, III.5a).
"""

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from bezel_bench.result.columns import Floats
from bezel_bench.result.records import Distribution, Histogram

CONFIDENCE = 0.95
SECTIONS = 10
TRIMMED_FROM = 6
_BINS = 40
_DRAWS = 200_000
# Fewer values are sorted at once, which takes less than a merge.
_SORTED_WHOLE = 10_000
Interval = tuple[float, float]


class Series:
    """Values in time order, with what several statistics of them share, each computed once.

    Attributes:
        values: The values.
    """

    def __init__(self, values: Floats) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    @functools.cached_property
    def sections(self) -> "list[Series]":
        """Return its consecutive sections."""
        return [Series(part) for part in np.array_split(self.values, SECTIONS)]

    @functools.cached_property
    def sorted_values(self) -> Floats:
        """Return the values in rising order."""
        if len(self) < _SORTED_WHOLE:
            return np.sort(self.values)
        # The order of each section is needed, too, and this sort (Timsort) only merges what is in order.
        values = np.concatenate([section.sorted_values for section in self.sections])
        values.sort(kind="stable")
        return values

    @functools.cached_property
    def mean(self) -> float:
        """Return the mean of at least one value."""
        return float(self.values.mean())

    def percentile(self, share: float) -> float:
        """Return the percentile of at least one value, as `percentile` defines it."""
        return _between(self.sorted_values, share)


def percentile(values: Floats, share: float) -> float:
    """Return the value below which `share` (0 to 1) of `values` is, interpolated between its two neighbours.

    Raises:
        ValueError: There are no values.
    """
    if len(values) == 0:
        raise ValueError("a percentile needs at least one value")
    below = int((len(values) - 1) * share)
    return _between(np.partition(values, (below, min(below + 1, len(values) - 1))), share)


def _between(sorted_values: Floats, share: float) -> float:
    """Return a percentile of values of which at least its two neighbours are at their place in the order.

    The arithmetic is that of `numpy.quantile`, whose call takes a hundred times as long for few values.
    """
    place = (len(sorted_values) - 1) * share
    below = int(place)
    low, high = float(sorted_values[below]), float(sorted_values[min(below + 1, len(sorted_values) - 1)])
    part = place - below
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part


def values_needed(share: float) -> int:
    """Return the values that a percentile needs so that at least one is above it: 100 for p99. A median needs one."""
    return round(1 / (1 - share)) if share > 0.5 else 1


def distribution(series: Series, unit: str) -> Distribution:
    """Summarise at least one value; a percentile without a value above it is left out."""
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
    percentiles = {
        name: series.percentile(share) if len(series) >= values_needed(share) else None
        for name, share in shares.items()
    }
    sorted_values = series.sorted_values
    return Distribution(
        unit=unit,
        n=len(series),
        mean=series.mean,
        min=float(sorted_values[0]),
        max=float(sorted_values[-1]),
        **percentiles,
        histogram=_histogram(sorted_values),
    )


def of_repeats(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Return the interval of the mean of independent repeats, by Student's t; None for fewer than two."""
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
    half = t_quantile((1 + confidence) / 2, len(values) - 1) * deviation / math.sqrt(len(values))
    return mean - half, mean + half


def of_trimmed(values: Sequence[float], share: float) -> tuple[float, float, float]:
    """Return the trimmed mean of independent values, and its interval: a few outliers move neither far.

    A quarter of the values is trimmed at each end. Fewer than TRIMMED_FROM have none to spare: that is their mean, and
    Student's interval.

    Args:
        values: At least two.
        share: The probability that each end of the interval is on its side of the true middle.
    """
    sample = np.asarray(values, float)
    (middle,), (error,) = _trimmed_means(sample[None, :])
    trimmed = len(sample) >= TRIMMED_FROM
    half = (_trimmed_quantile(share, len(sample)) if trimmed else t_quantile(share, len(sample) - 1)) * float(error)
    return float(middle), float(middle) - half, float(middle) + half


def _trimmed_means(samples: Floats) -> tuple[Floats, Floats]:
    """Return the trimmed mean of each row and its standard error, from the winsorized values (Yuen 1974)."""
    count = samples.shape[1]
    cut = count // 4 if count >= TRIMMED_FROM else 0
    inner = np.sort(samples, axis=1)[:, cut : count - cut]
    winsorized = np.concatenate([inner, *[inner[:, [0, -1]]] * cut], axis=1)
    left = inner.shape[1]
    return inner.mean(axis=1), winsorized.std(axis=1) * math.sqrt(count / left / (left - 1))


@functools.cache
def _trimmed_quantile(share: float, count: int) -> float:
    """Return the quantile of (trimmed mean / standard error) of normal samples: of draws, always the same ones.

    Student's t is an approximation of it that shows a difference of equal servers too often in ten values.
    """
    middles, errors = _trimmed_means(np.random.default_rng(1).standard_normal((_DRAWS, count)))
    return float(np.quantile(np.abs(middles / errors), 2 * share - 1))


def of_sections(
    series: Series, figure: Callable[[Series], float], min_values: int = 2, confidence: float = CONFIDENCE
) -> Interval | None:
    """Return the interval of a figure of values in time order, from its variation between consecutive sections.

    Args:
        series: The values.
        figure: The function computed on all of them, and on each section.
        min_values: The values that a section needs for the figure; with fewer there is no interval.
        confidence: The probability that the interval holds the figure.
    """
    if len(series) < SECTIONS * max(min_values, 2):
        return None
    return around(figure(series), [figure(section) for section in series.sections], confidence)


def around(value: float, sections: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the interval of a figure whose values in equal sections of the run are known."""
    deviation = math.sqrt(math.fsum((section - value) ** 2 for section in sections) / (len(sections) - 1))
    half = t_quantile((1 + confidence) / 2, len(sections) - 1) * deviation / math.sqrt(len(sections))
    return value - half, value + half


@functools.cache
def t_quantile(share: float, degrees: int) -> float:
    """Return the quantile of Student's t with `degrees` degrees of freedom at probability `share` (0.5 to 1).

    Raises:
        ValueError: `share` or `degrees` is out of range.
    """
    if not 0.5 <= share < 1 or degrees < 1:
        raise ValueError(f"no t quantile at {share} with {degrees} degrees of freedom")
    low, high = 0.0, 1.0
    while _t_share(high, degrees) < share:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_share(middle, degrees) < share else (low, middle)
    return (low + high) / 2


def _t_share(t: float, degrees: int) -> float:
    """Return Student's distribution function for t >= 0: Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine = math.cos(angle)
    term = cosine if degrees % 2 else 1.0
    total = 0.0
    for step in range(1 + degrees % 2, degrees, 2):
        total += term
        term *= cosine * cosine * step / (step + 1)
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if degrees % 2 else math.sin(angle) * total
    return (1 + inside) / 2


def _histogram(sorted_values: Floats) -> Histogram:
    """Return bins that grow by a constant factor where all values are above 0, else of equal width."""
    low, high = float(sorted_values[0]), float(sorted_values[-1])
    if low == high:
        return Histogram(edges=[low, math.nextafter(high, math.inf)], counts=[len(sorted_values)])
    places = np.geomspace(low, high, _BINS + 1) if low > 0 else np.linspace(low, high, _BINS + 1)
    places[0], places[-1] = low, high
    edges = sorted(set(places.tolist()))
    begins = np.searchsorted(sorted_values, edges[:-1])
    return Histogram(edges=edges, counts=np.diff(begins, append=len(sorted_values)).tolist())
