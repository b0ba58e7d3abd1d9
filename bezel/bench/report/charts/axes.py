"""From values to places on a chart, and where its ticks stand. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.bench.report.format import rounded_up

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Axis:
    """One axis of a chart.

    Attributes:
        title: With the unit.
        log: Whether equal distances are equal factors.
        low: Where it begins; None is as the values want.
        high: Where it ends; None is as the values want.
        ticks: Where its labels may stand; None is at round numbers.
        as_percent: Its labels are per cent.
    """

    title: str
    log: bool = False
    low: float | None = None
    high: float | None = None
    ticks: Sequence[float] | None = None
    as_percent: bool = False


@dataclass(frozen=True)
class Scale:
    """An axis of known ends, drawn from `begin` to `end`."""

    axis: Axis
    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """Where a value stands; one beyond the ends stands at the end."""
        turn = math.log if self.axis.log else float
        low, high = turn(self.low), turn(self.high)
        share = (turn(max(value, self.low) if self.axis.log else value) - low) / (high - low)
        return self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin)

    def ticks(self, room: float) -> list[float]:
        """Values of ticks that stand at least `room` apart."""
        wanted = self.axis.ticks if self.axis.ticks is not None else _round_values(self)
        kept: list[float] = []
        for value in wanted:
            inside = self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)
            if inside and (not kept or abs(self(value) - self(kept[-1])) >= room):
                kept.append(value)
        return kept


def scale(axis: Axis, values: Sequence[float], begin: float, end: float) -> Scale:
    """The scale on which all of `values` have a place; a logarithmic one leaves out what is not above 0."""
    known = [value for value in values if value > 0] if axis.log else list(values)
    low = axis.low if axis.low is not None else min(known, default=1.0)
    high = axis.high if axis.high is not None else max(known, default=1.0)
    if axis.log:
        low, high = (low, high) if high > low * 1.01 else (low / 2, high * 2)
        return Scale(axis, low / 1.12, high * 1.12, begin, end)
    if axis.low is None:
        low = min(low, 0.0)
    if axis.high is None:
        high = _upper(high if high > low else low + 1.0)
    return Scale(axis, low, high, begin, end)


def _upper(value: float) -> float:
    step = rounded_up(value / 6) if value > 0 else 1.0
    return step * math.ceil(value * 1.02 / step)


def _round_values(one: Scale) -> list[float]:
    if not one.axis.log:
        step = rounded_up((one.high - one.low) / 6)
        first = math.ceil(one.low / step - 1e-9)
        return [step * place for place in range(first, math.floor(one.high / step + 1e-9) + 1)]
    factor = one.high / one.low
    steps = range(1, 10) if factor < 10 else (1, 2, 5) if factor < 200 else (1,)
    powers = range(math.floor(math.log10(one.low)), math.ceil(math.log10(one.high)) + 1)
    return [step * 10.0**power for power in powers for step in steps]
