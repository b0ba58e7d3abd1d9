"""Series as a query sees them: each number of a histogram is one, with the labels of metric and resource. Pure."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

from bezel_localcloud.core.patterns import PatternError, regular_expression
from bezel_localcloud.core.work import Work
from bezel_localcloud.routing.prometheus_samples import StoredSeries
from bezel_localcloud.services.monitoring.promql.syntax import Matcher, QueryError, Selector
from bezel_localcloud.services.monitoring.promql.values import NAME, Labels, Window

LOOKBACK = 300.0
"""Seconds for which the last sample of a series stands for it."""
HALF_MOMENT = 0.0005  # seconds: times have milliseconds, and floats are not exact


class Line(NamedTuple):
    """A series of numbers.

    Attributes:
        labels: Its labels with the name.
        stored: What it is a part of.
        column: Number of its column there.
    """

    labels: Labels
    stored: StoredSeries
    column: int

    def last(self, time: float) -> tuple[float, float] | None:
        """(Time, value) of the last sample at a time, None where it is older than the lookback."""
        times = self.stored.times
        index = bisect_right(times, time + HALF_MOMENT) - 1
        if index < 0 or times[index] <= time - LOOKBACK + HALF_MOMENT:
            return None
        return times[index], self.stored.columns[self.column][index]

    def window(self, after: float, until: float) -> Window | None:
        """The samples after a time and up to another one, None for none."""
        times = self.stored.times
        first, end = bisect_right(times, after + HALF_MOMENT), bisect_right(times, until + HALF_MOMENT)
        if first >= end:
            return None
        values = self.stored.columns[self.column][first:end]
        starts = None if self.stored.kind == "gauge" else self.stored.starts[first:end]
        return Window(self.labels, times[first:end], values, starts, after, until)


def lines_of(series: Iterable[StoredSeries]) -> Iterable[Line]:
    """Every line of some series."""
    for one in series:
        labels = {**one.labels, **one.resource}
        if one.kind != "histogram":
            yield Line(_line_labels(labels, one.family), one, 0)
            continue
        for column, bound in enumerate((*one.bounds, float("inf"))):
            yield Line(_line_labels(labels | {"le": bound_text(bound)}, f"{one.family}_bucket"), one, column)
        yield Line(_line_labels(labels, f"{one.family}_count"), one, len(one.bounds))
        yield Line(_line_labels(labels, f"{one.family}_sum"), one, len(one.bounds) + 1)


def line_names(series: Iterable[StoredSeries]) -> frozenset[str]:
    """The names of the lines of some series."""
    names = {(one.family, one.kind) for one in series}
    parts = {name + part for name, kind in names if kind == "histogram" for part in ("_bucket", "_count", "_sum")}
    return frozenset(parts | {name for name, kind in names if kind != "histogram"})


def selected_lines(series: Iterable[StoredSeries], selector: Selector, work: Work) -> list[Line]:
    """The lines that a selector selects, in the order of their labels.

    Raises:
        QueryError: A pattern is none.
        TooMuchWorkError: There are too many to look at.
    """
    tests = [(matcher.label, _test_of(matcher, work)) for matcher in selector.matchers]
    families = {selector.name} | {selector.name.removesuffix(f"_{part}") for part in ("bucket", "count", "sum")}
    lines = list[Line]()
    for one in series:
        work.spend()
        if one.family not in families:
            continue
        for line in lines_of([one]):
            work.spend()
            labels = dict(line.labels)
            if labels[NAME] == selector.name and all(test(labels.get(label, "")) for label, test in tests):
                lines.append(line)
    return sorted(lines, key=lambda line: line.labels)


def bound_text(bound: float) -> str:
    """A bound as the label `le` has it: the shortest form."""
    if bound == float("inf"):
        return "+Inf"
    return repr(bound).removesuffix(".0")


def _line_labels(labels: dict[str, str], name: str) -> Labels:
    return tuple(sorted({**labels, NAME: name}.items()))


def _test_of(matcher: Matcher, work: Work) -> Callable[[str], bool]:
    wanted, denied = matcher.value, matcher.operator.startswith("!")
    if "~" not in matcher.operator:
        return lambda value: (value == wanted) is not denied
    try:
        pattern = regular_expression(f"(?s:{wanted})", work)
    except PatternError as error:
        raise QueryError(f"parse error: error parsing regexp: {error}: `{wanted[:200]}`") from None
    return lambda value: pattern.fits(value, work) is not denied
