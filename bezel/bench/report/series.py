"""Series of a report: each server of each result, its loads, and the figures of a load over its repeats. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from bezel.bench.report.charts.html import plain
from bezel.bench.report.format import number, shortened
from bezel.bench.result.document import Cell, Result, State

T = TypeVar("T")
_LABEL = 40


@dataclass(frozen=True)
class Estimate:
    """A figure of one load: the mean of its repeats with the least and the most, or of one run with its interval."""

    value: float
    low: float | None
    high: float | None
    unit: str
    repeats: int


@dataclass(frozen=True)
class Spot:
    """One load on one server, over its repeats of one state only, so that none is mixed with a failed one."""

    context: int | None
    load: float | None
    unit: str
    state: State
    cells: tuple[Cell, ...]
    every: tuple[Cell, ...]

    def figure(self, metric: str) -> Estimate | None:
        """Return the figure, or None where unknown."""
        figures = [figure for cell in self.cells if (figure := cell.metrics.get(metric)) and figure.value is not None]
        values = [figure.value for figure in figures if figure.value is not None]
        if not values:
            return None
        ends = (min(values), max(values)) if len(values) > 1 else (figures[0].low, figures[0].high)
        return Estimate(fmean(values), *ends, figures[0].unit, len(values))

    def value(self, metric: str) -> float | None:
        """Return the figure's value."""
        figure = self.figure(metric)
        return figure.value if figure else None

    @property
    def load_text(self) -> str:
        """Return the load as text."""
        if self.load is None:
            return plain(self.every[0].pattern)
        return "1 user" if self.load == 1 and self.unit == "users" else f"{number(self.load)} {self.unit}"

    @property
    def output(self) -> int | None:
        """Return the requested tokens of a response."""
        return self.every[0].output_tokens

    @property
    def requests(self) -> int:
        """Return the requests sent, over all repeats."""
        return sum(cell.requests for cell in self.every)

    @property
    def failed(self) -> int:
        """Return the failed requests among them."""
        return sum(sum(cell.failures.values()) for cell in self.every)


@dataclass(frozen=True)
class Subject:
    """One server of one result."""

    label: str
    result: Result
    variant: str
    spots: tuple[Spot, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Return all of its cells."""
        return tuple(cell for spot in self.spots for cell in spot.every)

    @property
    def simulated(self) -> bool:
        """Whether its figures are simulated and no evidence about hardware."""
        return self.result.nature == "simulated"

    @property
    def contexts(self) -> list[int]:
        """Return the contexts of its loads, rising."""
        return sorted({spot.context for spot in self.spots if spot.context is not None})


def subjects_of(results: Sequence[Result]) -> list[Subject]:
    """Return every server of every result, each with a unique name."""
    found: list[Subject] = []
    for result in results:
        for variant in result.variants or ("",):
            cells = [cell for cell in result.cells if cell.variant == variant]
            label = _unique(_label(result, variant, len(results)), [subject.label for subject in found])
            found.append(Subject(label, result, variant, _spots(cells)))
    return found


def evenly(items: Sequence[T], count: int) -> Sequence[T]:
    """Return up to `count` items, evenly spread from the first to the last."""
    if len(items) <= count:
        return items
    return [items[round(place * (len(items) - 1) / (count - 1))] for place in range(count)]


def nature(subjects: Iterable[Subject]) -> str:
    """Return the nature of the subjects' figures: "measured", "simulated", or both."""
    return " and ".join(sorted({subject.result.nature for subject in subjects}))


def _label(result: Result, variant: str, results: int) -> str:
    title = shortened(plain(result.manifest.title).strip() or "untitled", _LABEL)
    if not variant:
        return title
    return plain(variant) if results == 1 else f"{title}: {plain(variant)}"


def _unique(label: str, taken: list[str]) -> str:
    names = (label, *(f"{label} ({place})" for place in range(2, len(taken) + 2)))
    return next(name for name in names if name not in taken)


def _spots(cells: Iterable[Cell]) -> tuple[Spot, ...]:
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        key = (cell.context_tokens, cell.output_tokens, cell.pattern, cell.prompts, cell.users, cell.rate)
        groups.setdefault(key, []).append(cell)
    return tuple(_spot(tuple(group)) for group in groups.values())


def _spot(every: tuple[Cell, ...]) -> Spot:
    states: list[State] = [cell.state for cell in every]
    state: State = "ok" if "ok" in states else states[0]
    first = every[0]
    load, unit = (first.users, "users") if first.users is not None else (first.rate, "requests/s")
    return Spot(first.context_tokens, load, unit, state, tuple(cell for cell in every if cell.state == state), every)
