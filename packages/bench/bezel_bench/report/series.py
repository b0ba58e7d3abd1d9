"""Series of a report: each server of each result, its loads, and the figures of a load over its repeats. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from bezel_bench.report.charts.html import plain
from bezel_bench.report.format import number, shorten
from bezel_bench.result.document import Cell, Result, State

T = TypeVar("T")
_LABEL = 40


@dataclass(frozen=True)
class SpotFigure:
    """A figure of one load: the mean of its repeats with the least and the most, or of one run with its interval."""

    value: float
    low: float | None
    high: float | None
    unit: str
    repeats: int


@dataclass(frozen=True)
class Spot:
    """One load on one server, over its repeats of one state only, so that none is mixed with a failed one.

    Attributes:
        cells: Its repeats of that state; of a load in stages, the stage of each.
        every: All of its repeats.
        stage: Number of the stage, from 1, which is a load of its own; 0 for a load of one level.
    """

    context: int | None
    load: float | None
    unit: str
    state: State
    cells: tuple[Cell, ...]
    every: tuple[Cell, ...]
    stage: int = 0

    def figure(self, metric: str) -> SpotFigure | None:
        """Return the figure, or None where unknown."""
        figures = [figure for cell in self.cells if (figure := cell.metrics.get(metric)) and figure.value is not None]
        values = [figure.value for figure in figures if figure.value is not None]
        if not values:
            return None
        ends = (min(values), max(values)) if len(values) > 1 else (figures[0].low, figures[0].high)
        return SpotFigure(fmean(values), *ends, figures[0].unit, len(values))

    def value(self, metric: str) -> float | None:
        """Return the figure's value."""
        figure = self.figure(metric)
        return figure.value if figure else None

    @property
    def load_text(self) -> str:
        """Return the load as text."""
        stage = f"stage {self.stage}: " if self.stage else ""
        if self.load is None:
            return stage + plain(self.every[0].pattern)
        return stage + ("1 user" if self.load == 1 and self.unit == "users" else f"{number(self.load)} {self.unit}")

    @property
    def output(self) -> int | None:
        """Return the requested tokens of a response."""
        return self.every[0].output_tokens

    @property
    def requests(self) -> int:
        """Return the requests sent, over all repeats."""
        return sum(cell.requests for cell in self.every)

    @property
    def failed_requests(self) -> int:
        """Return the failed requests among them; those that the client cancelled did not fail."""
        return sum(sum(cell.failures.values()) - cell.cancellations for cell in self.every)


@dataclass(frozen=True)
class Subject:
    """One server of one result.

    Attributes:
        cells: All of its cells; a load in stages is one.
        spots: Its loads; each stage is one.
    """

    label: str
    result: Result
    variant: str
    cells: tuple[Cell, ...]
    spots: tuple[Spot, ...]

    @property
    def is_simulated(self) -> bool:
        """Whether its figures are simulated and no evidence about hardware."""
        return self.result.nature == "simulated"

    @property
    def contexts(self) -> list[int]:
        """Return the contexts of its loads, rising."""
        return sorted({spot.context for spot in self.spots if spot.context is not None})


def subjects_of(results: Sequence[Result]) -> list[Subject]:
    """Return every server of every result, each with a unique name."""
    subjects: list[Subject] = []
    for result in results:
        for variant in result.variants or ("",):
            cells = tuple(cell for cell in result.cells if cell.variant == variant)
            label = _unique(_label(result, variant, len(results)), [subject.label for subject in subjects])
            subjects.append(Subject(label, result, variant, cells, _spots(cells)))
    return subjects


def evenly(items: Sequence[T], count: int) -> Sequence[T]:
    """Return up to `count` items, evenly spread from the first to the last."""
    if len(items) <= count:
        return items
    return [items[round(place * (len(items) - 1) / (count - 1))] for place in range(count)]


def nature(subjects: Iterable[Subject]) -> str:
    """Return the nature of the subjects' figures: "measured", "simulated", or both."""
    return " and ".join(sorted({subject.result.nature for subject in subjects}))


def _label(result: Result, variant: str, results: int) -> str:
    title = shorten(plain(result.manifest.title).strip() or "untitled", _LABEL)
    if not variant:
        return title
    return plain(variant) if results == 1 else f"{title}: {plain(variant)}"


def _unique(label: str, taken: list[str]) -> str:
    names = (label, *(f"{label} ({place})" for place in range(2, len(taken) + 2)))
    return next(name for name in names if name not in taken)


def _spots(cells: Iterable[Cell]) -> tuple[Spot, ...]:
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        for stage, part in enumerate(cell.parts(), 1 if cell.stages else 0):
            key = (part.context_tokens, part.output_tokens, part.pattern, part.prompts, part.users, part.rate)
            groups.setdefault((stage, *key), []).append(part)
    return tuple(_spot(tuple(group), int(str(key[0]))) for key, group in groups.items())


def _spot(every: tuple[Cell, ...], stage: int) -> Spot:
    states: list[State] = [cell.state for cell in every]
    state: State = "ok" if "ok" in states else states[0]
    first = every[0]
    load, unit = (first.users, "users") if first.users is not None else (first.rate, "requests/s")
    cells = tuple(cell for cell in every if cell.state == state)
    return Spot(first.context_tokens, load, unit, state, cells, every, stage)
