"""Detection of multiplied copies: figures of two files that differ by one factor, cell by cell.

    factor of a cell = its figure in the one file / its figure in the other, as exactly as both are printed
    evidence of a cell = log2(1 / p), p = width of that factor / (2 sqrt(pi) x spread), for each new value but the first

Two systems may well differ by one factor, but the scatter of their runs does not: the spread is twice the jumps of a
file's own curves beyond their rounding, 0.3 % at least. Factors beyond a quarter are left out: tokens to requests, or
chips, are a conversion. Leaves out the conclusion from the evidence (bezel_bench.audit.checks.labels.copies).
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bezel_bench.audit.figure import StatedFigure
from bezel_bench.audit.table import LATENCIES, RATES

_Key = tuple[float | None, ...]
_QUARTER = 1.25
_LEAST, _MOST = 0.003, 0.02
_CURVES = 5
_FLAT = 1.5
_NONE = StatedFigure(0.0, 0.0)


@dataclass
class Stretch:
    """Neighbouring cells that one factor explains: from `low` to `high`."""

    spread: float
    low: float = 1 / _QUARTER
    high: float = _QUARTER
    cells: set[_Key] = field(default_factory=set)
    distinct_values: set[float] = field(default_factory=set)
    bits: float = 0.0
    example: tuple[StatedFigure, StatedFigure] = (_NONE, _NONE)

    @property
    def factor(self) -> float:
        """Return the middle of the range that all cells leave."""
        return (self.low + self.high) / 2

    @property
    def values(self) -> int:
        """Return how many distinct figures agree."""
        return len(self.distinct_values)

    def add(self, cell: _Key, figure: StatedFigure, other: StatedFigure, low: float, high: float) -> None:
        """Add one more cell, whose factor is between low and high."""
        if self.cells and figure.value not in self.distinct_values:
            self.bits += -math.log2(min(1.0, (high - low) / self.factor / (2 * math.sqrt(math.pi) * self.spread)))
        self.low, self.high = max(self.low, low), min(self.high, high)
        self.cells.add(cell)
        self.distinct_values.add(figure.value)
        if figure.value > self.example[0].value:
            self.example = figure, other


def best(
    ones: Mapping[_Key, Mapping[str, StatedFigure]], others: Mapping[_Key, Mapping[str, StatedFigure]]
) -> Stretch | None:
    """Return the stretch with most evidence; None where the files share no figure.

    It covers one figure over the cells, or one rate together with the latencies: rates of one run are all in
    proportion, so only one of them counts.
    """
    names = sorted({name for figures in ones.values() for name in figures})
    pairs_of = {name: _pairs(ones, others, name) for name in names}
    rate = next((name for name in RATES if pairs_of.get(name)), None)
    beside = [pair for name in names if name == rate or name in LATENCIES for pair in pairs_of[name]]
    stretches = [_of_figure(pairs) for pairs in (*pairs_of.values(), beside)]
    return max((stretch for stretch in stretches if stretch), key=lambda stretch: stretch.bits, default=None)


def _pairs(
    ones: Mapping[_Key, Mapping[str, StatedFigure]], others: Mapping[_Key, Mapping[str, StatedFigure]], name: str
) -> list[tuple[_Key, StatedFigure, StatedFigure]]:
    return [
        (key, figures[name], others[key][name])
        for key, figures in ones.items()
        if name in figures and name in others.get(key, {}) and figures[name].low > 0 and others[key][name].low > 0
    ]


def _of_figure(pairs: Sequence[tuple[_Key, StatedFigure, StatedFigure]]) -> Stretch | None:
    if not pairs:
        return None
    jumps = min(_jumps([(key, figure) for key, figure, _ in pairs]), _jumps([(key, other) for key, _, other in pairs]))
    spread = min(_MOST, max(_LEAST, 2 * jumps))
    longest = stretch = Stretch(spread)
    for key, figure, other in pairs:
        low, high = other.low / figure.high, other.high / figure.low
        if max(low, stretch.low) > min(high, stretch.high):
            stretch = Stretch(spread)
            if max(low, stretch.low) > min(high, stretch.high):
                continue  # a factor of more than a quarter
        stretch.add(key, figure, other, low, high)
        if stretch.bits > longest.bits:
            longest = stretch
    return longest


def _jumps(cells: Sequence[tuple[_Key, StatedFigure]]) -> float:
    """Return how far a curve's points deviate from their two neighbours, beyond rounding: the mean, as a share.

    Of white noise it is about half of the standard deviation; of a smooth curve 0.
    """
    deviations = list(_points(cells))
    return sum(deviations) / len(deviations) if len(deviations) >= _CURVES else 0.0


def _points(cells: Sequence[tuple[_Key, StatedFigure]]) -> Iterator[float]:
    for _, line in itertools.groupby(cells, key=lambda one: one[0][0]):
        figures = [figure for _, figure in line]
        for before, middle, after in zip(figures, figures[1:], figures[2:], strict=False):
            sides = (before, after)
            if any(not 1 / _FLAT < side.value / middle.value < _FLAT for side in sides):
                continue
            above, below = (middle.low > max(a.high for a in sides)), (middle.high < min(a.low for a in sides))
            out = min(abs(middle.value - side.value) for side in sides) if above or below else 0.0
            yield out / middle.value
