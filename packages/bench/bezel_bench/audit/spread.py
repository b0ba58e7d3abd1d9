"""Spread of one figure over the requests of a load, as far as a report states it, and what it bounds.

Every bound holds for any set of values with these statistics (Popoviciu, Bhatia-Davis, Cantelli), so that nothing is
concluded from an assumed shape. Leaves out which figures must fit each other: bezel_bench.audit.checks.figures.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_TOLERANCE = 0.02  # of the larger figure: printed digits, and quantiles that are interpolated in few values
_MEDIAN = 0.5
_UNKNOWN_COUNT = 0.05  # of the largest value: as for twenty values
_LEAST_MEAN, _MOST_MEAN = "the least mean that the percentiles allow", "the largest mean that the percentiles allow"


@dataclass(frozen=True, slots=True)
class Spread:
    """Statistics of one figure, all in one unit.

    Attributes:
        mean: None where it is not stated; likewise `deviation` (standard), `least` and `most`.
        quantiles: Share of the values (0 to 1) -> the value that they do not exceed.
        half: Half a unit of the last printed digit, of the coarsest of the statistics.
    """

    mean: float | None = None
    deviation: float | None = None
    least: float | None = None
    most: float | None = None
    quantiles: Mapping[float, float] = field(default_factory=dict)
    half: float = 0.0

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """Return all shares with their values, in the order of the shares; the ends where they are stated."""
        ends = ([(0.0, self.least)] if self.least is not None else []) + (
            [(1.0, self.most)] if self.most is not None else []
        )
        return tuple(sorted((*ends, *self.quantiles.items())))

    def widest(self) -> float | None:
        """Return the largest standard deviation that the statistics allow; None where they bound none."""
        if self.deviation is not None:
            return self.deviation
        if self.mean is None or self.least is None or self.most is None:
            return None
        mean, bands = self.mean, itertools.pairwise(self.points)
        by_bands = sum((high - low) * max((a - mean) ** 2, (b - mean) ** 2) for (low, a), (high, b) in bands)
        by_ends = max(0.0, (self.most - mean) * (mean - self.least))
        return math.sqrt(min(by_bands, by_ends))

    def contradictions(self, count: int | None) -> Iterator[tuple[str, float, str, float]]:
        """Yield pairs of statistics that no set of values has: name, value, name, value; the first must be smaller.

        Args:
            count: Number of the values, which bounds what interpolation between them may move; None if unknown.
        """
        pairs = [*self._adjacent_points(), *self._beside_quantiles(), *self._beside_deviation()]
        largest = max((abs(value) for _, value in self.points), default=0.0)
        moved = largest / count if count else _UNKNOWN_COUNT * largest
        for low, a, high, b in pairs:
            named = {low, high} & {_LEAST_MEAN, _MOST_MEAN}
            if a - b > _TOLERANCE * max(abs(a), abs(b)) + 2 * self.half + (moved if named else 0.0):
                yield low, a, high, b

    def _adjacent_points(self) -> Iterator[tuple[str, float, str, float]]:
        """Yield each statistic with the next larger one."""
        for (low, a), (high, b) in itertools.pairwise(self.points):
            yield _name(low), a, _name(high), b

    def _beside_quantiles(self) -> Iterator[tuple[str, float, str, float]]:
        """Yield the mean with the least and the largest that the percentiles allow, of values that are not negative."""
        points = self.points
        if self.mean is None or not points:
            return
        if points[-1][0] == 1.0:
            most = sum((high - low) * b for (low, _), (high, b) in itertools.pairwise(((0.0, 0.0), *points)))
            yield "mean", self.mean, _MOST_MEAN, most
        least = sum((high - low) * a for (low, a), (high, _) in itertools.pairwise((*points, (1.0, math.inf))))
        yield _LEAST_MEAN, least, "mean", self.mean

    def _beside_deviation(self) -> Iterator[tuple[str, float, str, float]]:
        """Yield each percentile with what the mean and the standard deviation allow for it (Cantelli)."""
        if self.deviation is None or self.mean is None:
            return
        for share, value in self.quantiles.items():
            if 0 < share < 1:
                above = self.mean + self.deviation * math.sqrt(share / (1 - share))
                below = self.mean - self.deviation * math.sqrt((1 - share) / share)
                yield _name(share), value, "the largest that mean and standard deviation allow", above
                yield "the least that mean and standard deviation allow", below, _name(share), value


def _name(share: float) -> str:
    if share in (0.0, 1.0):
        return "min" if share == 0.0 else "max"
    return "median" if share == _MEDIAN else f"p{100 * share:g}"
