"""Reach of a range: how far a figure between measured cells may be off, from the errors of the measured ones. Pure.

A part of an error grows with the distance to both neighbours: the bend of the surface, of which a line between two
cells misses half the bend times the product of both distances. The rest, noise and stalled cells, does not. The line
over this product with nine of ten errors below it gives the scale of every error, so that errors over any distance
count together. Nearer neighbours than those of any error promise no less than the nearest of these.

The reach is conformal: relative to this line, as far as nine in ten of the errors. Errors of neighbours share cells,
two of three, so that about half of them count as independent: of n the rank is nine tenths of n + 2, not of n + 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil

CONFIDENCE = 0.9
LEAST = ceil(CONFIDENCE / (1 - CONFIDENCE) - 1e-9)
"""The fewest errors that give a range: of nine, the largest is exceeded by one figure in ten."""
_TINY = 1e-12  # where nearly all errors are 0 the scale is this


@dataclass(frozen=True)
class Error:
    """How far a measured cell is from the line through its neighbours.

    Attributes:
        product: Of the distances to both neighbours, each in ln of contexts or users.
        size: In ln of throughput, at least 0.
    """

    product: float
    size: float


@dataclass(frozen=True)
class Reach:
    """Reach of ranges by the errors of a grid along one axis."""

    errors: Sequence[Error]

    def at(self, product: float) -> float | None:
        """Return the reach in ln at a product of distances; None where there are fewer than LEAST errors."""
        if len(self.errors) < LEAST:
            return None
        return self._times * self._scale(product)

    @cached_property
    def _times(self) -> float:
        return quantile([error.size / self._scale(error.product) for error in self.errors])

    def _scale(self, product: float) -> float:
        level, slope = self._line
        return max(level + slope * max(product, self._nearest), _TINY)

    @cached_property
    def _nearest(self) -> float:
        return min(error.product for error in self.errors)

    @cached_property
    def _line(self) -> tuple[float, float]:
        return quantile_line(self.errors)


def quantile_line(errors: Sequence[Error]) -> tuple[float, float]:
    """Return level and slope of the line over the products with nine of ten sizes below it, neither below 0.

    The least pinball loss. A best line passes through two errors, through one with no slope, or through one and zero.
    """
    lines = {(error.size, 0.0) for error in errors} | {(0.0, error.size / error.product) for error in errors}
    for index, one in enumerate(errors):
        for other in errors[:index]:
            if one.product != other.product:
                slope = (one.size - other.size) / (one.product - other.product)
                lines.add((one.size - slope * one.product, slope))
    within = [line for line in lines if min(line) >= 0]
    return min(sorted(within), key=lambda line: _pinball(errors, *line))


def _pinball(errors: Sequence[Error], level: float, slope: float) -> float:
    above = [error.size - level - slope * error.product for error in errors]
    return sum(CONFIDENCE * each if each > 0 else (CONFIDENCE - 1) * each for each in above)


def quantile(errors: Sequence[float]) -> float:
    """Return the error that the next one stays within nine times in ten, if half of the errors are independent."""
    rank = ceil(CONFIDENCE * (len(errors) + 2) - 1e-9)
    return sorted(errors)[min(rank, len(errors)) - 1]
