"""Axes of a chart: mapping from values to pixels, and positions of ticks. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bezel_bench.report.format import rounded_up

_FEWEST, _TIMES, _ROOM = 3, 3.0, 1.25
_LEAST = 1e-300  # no time, count or share is as small: what is below it is zero


@dataclass(frozen=True)
class Axis:
    """One axis of a chart.

    Attributes:
        title: Title, with the unit.
        log: Whether equal distances are equal factors.
        low: Lower end; None fits it to the values.
        high: Upper end; None fits it to the values.
        ticks: Possible values of its labels; None is round numbers.
        as_percent: Whether its labels are per cent.
    """

    title: str
    log: bool = False
    low: float | None = None
    high: float | None = None
    ticks: Sequence[float] | None = None
    as_percent: bool = False


@dataclass(frozen=True)
class Scale:
    """Axis with known ends, drawn from `begin` to `end`."""

    axis: Axis
    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the position of a value; one beyond the ends is placed at the end."""
        turn = math.log if self.axis.log else float
        low, high = turn(self.low), turn(self.high)
        share = (turn(max(value, self.low) if self.axis.log else value) - low) / (high - low)
        return self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin)

    def ticks(self, room: float) -> list[float]:
        """Return tick values whose positions are at least `room` apart."""
        ticks: list[float] = []
        for value in _round_values(self) if self.axis.ticks is None else self.axis.ticks:
            inside = self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)
            if inside and (not ticks or abs(self(value) - self(ticks[-1])) >= room):
                ticks.append(value)
        return ticks


def scale(axis: Axis, values: Sequence[float], begin: float, end: float) -> Scale:
    """Return the scale that fits all `values`; a logarithmic one leaves out values that are not above 0."""
    usable = [value for value in values if value > _LEAST] if axis.log else list(values)
    low = axis.low if axis.low is not None else min(usable, default=1.0)
    high = axis.high if axis.high is not None else max(usable, default=1.0)
    if axis.log:
        low, high = (low, high) if high > low * 1.01 else (low / 2, high * 2)
        return Scale(axis, low / 1.12, high * 1.12, begin, end)
    if axis.low is None:
        low = min(low, 0.0)
    if axis.high is None:
        high = _upper(high if high > low else low + 1.0)
    return Scale(axis, low, high, begin, end)


def without_outlier(values: Sequence[Sequence[float]]) -> tuple[float | None, float | None]:
    """Return the ends of a logarithmic axis that one value does not take over; None for an end that fits all.

    An outlier is one dot, or the end of its bar, that would take more than half of the axis for itself, and is at least
    three times beyond all others.

    Args:
        values: The values of each dot, its own first, then the end of its bar; all above 0.
    """
    if len(values) < _FEWEST:
        return None, None
    high = _beyond(values)
    low = _beyond([[1 / value for value in dot] for dot in values])
    return (None if low is None else 1 / low), high


def _beyond(values: Sequence[Sequence[float]]) -> float | None:
    """Return the upper end of an axis that leaves its one outlier out; None where there is none."""
    largest = max(range(len(values)), key=lambda place: max(values[place]))
    others = [value for place, dot in enumerate(values) if place != largest for value in dot]
    for beyond, rest in ((values[largest][0], others), (max(values[largest]), [*others, values[largest][0]])):
        gap, span = math.log(beyond / max(rest)), math.log(max(rest) / min(rest))
        if gap > max(math.log(_TIMES), span):
            return max(rest) * _ROOM
    return None


def _upper(value: float) -> float:
    # A histogram of zeros ends at the least float above 0, which has no sixth.
    step = rounded_up(value / 6) if value > _LEAST else 1.0
    return step * math.ceil(value * 1.02 / step)


def _round_values(scale: Scale) -> list[float]:
    if not scale.axis.log:
        step = rounded_up((scale.high - scale.low) / 6)
        first = math.ceil(scale.low / step - 1e-9)
        return [step * place for place in range(first, math.floor(scale.high / step + 1e-9) + 1)]
    factor = scale.high / scale.low
    steps = range(1, 10) if factor < 10 else (1, 2, 5) if factor < 200 else (1,)
    powers = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    return [step * 10.0**power for power in powers for step in steps]
