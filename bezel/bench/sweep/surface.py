"""Figures for cells of a sweep that were not measured, each with a range where enough is known. Pure.

In logarithms throughput is linear between measured contexts at the same number of users, else between measured numbers
of users at the same context. A cell that lacks a neighbour on one side has no figure: nothing is carried beyond what
was measured.

A range is conformal: each measured cell is inferred from the others in the same way, and a range reaches as far as nine
in ten of these figures were off. No law of saturation and no constant of other grids is in it (docs/sweeps.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, log, log1p
from typing import Literal

from bezel.bench.sweep.grid import Place
from bezel.bench.sweep.repeats import REPEATABLE

CONFIDENCE = 0.9
LEAST = ceil(CONFIDENCE / (1 - CONFIDENCE) - 1e-9)
"""The fewest errors that give a range: of nine, the largest is exceeded by one figure in ten."""
NARROWEST = log1p(REPEATABLE)
Axis = Literal["contexts", "users"]


@dataclass(frozen=True)
class Line:
    """Line through two measured cells, at the place between them.

    Attributes:
        axis: What differs between the cells.
        below: The cell with the smaller context or fewer users; `above` is the other.
        steps: Steps of the grid to the nearer and to the farther of them.
        log: Its logarithm at the place.
    """

    axis: Axis
    below: Place
    above: Place
    steps: tuple[int, int]
    log: float


@dataclass(frozen=True)
class Estimate:
    """Inferred throughput of a cell.

    Attributes:
        value: In the unit of the measured ones.
        low: Lower end of the range that holds 90 of 100 measurements; None where there is no range.
        high: Its upper end.
        line: The line that it lies on.
        errors: The number of measured cells whose errors give the range, or that do not suffice for one.
    """

    value: float
    low: float | None
    high: float | None
    line: Line
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
        errors = self._errors_like(line)
        value = exp(line.log)
        if len(errors) < LEAST:
            return Estimate(value, None, None, line, len(errors))
        reach = max(quantile(errors), NARROWEST)
        return Estimate(value, value * exp(-reach), value * exp(reach), line, len(errors))

    def line(self, place: Place) -> Line | None:
        """Return the line through the nearest measured cells on both sides, the place itself left out."""
        return self._line(place, "contexts") or self._line(place, "users")

    @cached_property
    def errors(self) -> list[tuple[Line, float]]:
        """Return for each measured cell between others its line and how far it is from it, in ln."""
        lines = ((place, self.line(place)) for place in sorted(self.values))
        return [(line, abs(log(self.values[place]) - line.log)) for place, line in lines if line]

    def _errors_like(self, line: Line) -> list[float]:
        """Return the errors over the same steps, or over these and longer ones where those are too few."""
        along = [(other.steps, error) for other, error in self.errors if other.axis == line.axis]
        same = [error for steps, error in along if steps == line.steps]
        if len(same) >= LEAST:
            return same
        return [error for steps, error in along if steps[0] >= line.steps[0] and steps[1] >= line.steps[1]]

    def _line(self, place: Place, axis: Axis) -> Line | None:
        moving, scale = (0, self.contexts) if axis == "contexts" else (1, self.users)
        at = place[moving]
        along = [other for other in self.values if other[1 - moving] == place[1 - moving]]
        below = max((other for other in along if other[moving] < at), default=None)
        above = min((other for other in along if other[moving] > at), default=None)
        if below is None or above is None:
            return None
        start, end = log(scale[below[moving]]), log(scale[above[moving]])
        share = (log(scale[at]) - start) / (end - start)
        near, far = sorted((at - below[moving], above[moving] - at))
        level = (1 - share) * log(self.values[below]) + share * log(self.values[above])
        return Line(axis, below, above, (near, far), level)


def quantile(errors: Sequence[float]) -> float:
    """Return the least error that the next one stays within nine times in ten, if it is as the others."""
    rank = ceil(CONFIDENCE * (len(errors) + 1) - 1e-9)
    return sorted(errors)[min(rank, len(errors)) - 1]
