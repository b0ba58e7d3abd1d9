"""Figures for cells of a sweep that were not measured, each with a range where enough is known. Pure.

In logarithms throughput is linear between measured contexts at the same number of users, else between measured numbers
of users at the same context. A cell that lacks a neighbour on one side has no figure: nothing is carried beyond what
was measured.

A range is conformal: each measured cell is inferred from the others in the same way, and a range reaches as far as nine
in ten of these figures were off, for the distance of its own neighbours (`bezel_bench.sweep.inference.reach`). No law
of saturation and no constant of other grids is in it (docs/sweeps.md).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, log, log1p
from typing import Literal

from bezel_bench.sweep.grid import Place
from bezel_bench.sweep.inference.reach import Error, Reach
from bezel_bench.sweep.inference.repeats import REPEATABLE

NARROWEST = log1p(REPEATABLE)
Axis = Literal["contexts", "users"]
_AXES: tuple[Axis, ...] = ("contexts", "users")


@dataclass(frozen=True)
class GridLine:
    """Line through two measured cells, at the place between them.

    Attributes:
        axis: What differs between the cells.
        below: The cell with the smaller context or fewer users; `above` is the other.
        product: Of the distances to both, each in ln of contexts or users.
        log: Its logarithm at the place.
    """

    axis: Axis
    below: Place
    above: Place
    product: float
    log: float


@dataclass(frozen=True)
class Estimate:
    """Inferred throughput of a cell.

    Attributes:
        value: In the unit of the measured ones.
        low: Lower end of the range that holds 90 of 100 measurements; None where there is no range.
        high: Its upper end.
        line: The line that it lies on.
        errors: The number of measured cells between others along the same axis: their errors give the range, or are
            too few for one.
    """

    value: float
    low: float | None
    high: float | None
    line: GridLine
    errors: int


@dataclass(frozen=True)
class Surface:
    """Throughput over a grid.

    Attributes:
        contexts: Rising.
        users: Rising.
        values: Measured throughput by row and column; each above 0.
    """

    contexts: Sequence[int]
    users: Sequence[int]
    values: Mapping[Place, float]

    def estimate(self, place: Place) -> Estimate | None:
        """Return the figure of a cell from the measured cells around it; None where one is missing."""
        line = self.line(place)
        if line is None:
            return None
        value, reaches = exp(line.log), self._reaches[line.axis]
        reach, errors = reaches.at(line.product), len(reaches.errors)
        if reach is None:
            return Estimate(value, None, None, line, errors)
        reach = max(reach, NARROWEST)
        return Estimate(value, value * exp(-reach), value * exp(reach), line, errors)

    def line(self, place: Place) -> GridLine | None:
        """Return the line through the nearest measured cells on both sides, the place itself left out."""
        return self._line(place, "contexts") or self._line(place, "users")

    @cached_property
    def _reaches(self) -> dict[Axis, Reach]:
        """Return the reach along each axis, by how far each measured cell between others is from its line."""
        lines = [(place, line) for place in sorted(self.values) if (line := self.line(place))]
        errors = [(line.axis, Error(line.product, abs(log(self.values[place]) - line.log))) for place, line in lines]
        return {axis: Reach([error for along, error in errors if along == axis]) for axis in _AXES}

    @cached_property
    def _measured_along(self) -> dict[tuple[int, int], list[int]]:
        """Return the measured rows of each column and columns of each row, rising, by (what moves, what stays)."""
        along: dict[tuple[int, int], list[int]] = {}
        for place in sorted(self.values):
            for moving in (0, 1):
                along.setdefault((moving, place[1 - moving]), []).append(place[moving])
        return along

    def _line(self, place: Place, axis: Axis) -> GridLine | None:
        moving, scale = (0, self.contexts) if axis == "contexts" else (1, self.users)
        at = place[moving]
        along = self._measured_along.get((moving, place[1 - moving]), [])
        before, after = bisect_left(along, at) - 1, bisect_right(along, at)
        if before < 0 or after == len(along):
            return None
        below, above = (
            (along[index], place[1]) if moving == 0 else (place[0], along[index]) for index in (before, after)
        )
        start, end = log(scale[below[moving]]), log(scale[above[moving]])
        here = log(scale[at])
        share = (here - start) / (end - start)
        level = (1 - share) * log(self.values[below]) + share * log(self.values[above])
        return GridLine(axis, below, above, (here - start) * (end - here), level)
