"""SeriesAggregation of written series: alignment to periods, and one series for each group. Pure.

Source: the descriptions of Aligner and Reducer in the discovery document of Monitoring v3. A count that grew between
two points grew at the time of the second one: Google interpolates between them. A cumulative distribution has
percentiles of what it grew by.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bezel_localcloud.services.monitoring.written_metrics.points import Distribution, WrittenPoint

Labels = Mapping[str, str]
SHORTEST = 60.0
"""Seconds of the shortest alignment period."""
_OF_GAUGES: dict[str, Callable[[Sequence[float]], float]] = {
    "ALIGN_MEAN": lambda values: math.fsum(values) / len(values),
    "ALIGN_MIN": min,
    "ALIGN_MAX": max,
    "ALIGN_SUM": math.fsum,
    "ALIGN_COUNT": len,
    "ALIGN_NEXT_OLDER": lambda values: values[-1],
}
_OF_COUNTS = ("ALIGN_DELTA", "ALIGN_RATE")
_PERCENTILES = {f"PERCENTILE_{text}": int(text) for text in ("99", "95", "50", "05")}
ALIGNERS = {
    "gauge": frozenset(_OF_GAUGES),
    "counter": frozenset(_OF_COUNTS),
    "histogram": frozenset({"ALIGN_DELTA", *(f"ALIGN_{name}" for name in _PERCENTILES)}),
}
"""Served aligners by the kind of a metric."""
_REDUCE: dict[str, Callable[[Sequence[float]], float]] = {
    "REDUCE_MEAN": lambda values: math.fsum(values) / len(values),
    "REDUCE_MIN": min,
    "REDUCE_MAX": max,
    "REDUCE_SUM": math.fsum,
    "REDUCE_COUNT": len,
}
REDUCERS = {
    False: frozenset(_REDUCE),
    True: frozenset({"REDUCE_SUM", "REDUCE_COUNT", *(f"REDUCE_{name}" for name in _PERCENTILES)}),
}
"""Served reducers, by whether the aligned values are distributions."""


class SeriesAggregation(NamedTuple):
    """An aggregation.

    Attributes:
        aligner: One of `ALIGNERS`.
        period: Seconds of a period.
        reducer: One of `REDUCERS`, or "" for none.
        groups: Labels of the groups, such as "metric.labels.model_name".
    """

    aligner: str
    period: float
    reducer: str = ""
    groups: tuple[str, ...] = ()


def align(
    points: Sequence[WrittenPoint], kind: str, aggregation: SeriesAggregation, since: float, until: float
) -> list[WrittenPoint]:
    """One point for each period that has some, newest first; the last period ends with the interval.

    Args:
        points: The points of a series, oldest first, those before the interval too.
        kind: "counter", "gauge" or "histogram".
        aggregation: The aligner and its period.
        since: Start of the interval in Unix seconds, which is not part of it.
        until: Its end, which is.
    """
    periods: dict[int, list[float | Distribution]] = {}
    for before, point in zip([None, *points], points, strict=False):
        if since < point.end <= until:
            ago = math.floor((until - point.end) / aggregation.period)
            value = point.value if kind == "gauge" else _growth(before, point)
            periods.setdefault(ago, []).append(value)
    length = aggregation.period
    return [
        WrittenPoint(until - (ago + 1) * length, until - ago * length, _aligned_value(aggregation, values))
        for ago, values in sorted(periods.items())
    ]


def _growth(before: WrittenPoint | None, point: WrittenPoint) -> float | Distribution:
    """By how much a count grew since the point before, or since it began."""
    if before is None or point.start >= before.end:
        return point.value
    if isinstance(point.value, Distribution) and isinstance(before.value, Distribution):
        return point.value.plus(before.value, -1)
    return _number(point.value) - _number(before.value)


def _aligned_value(aggregation: SeriesAggregation, values: list[float | Distribution]) -> float | Distribution:
    aligner, first = aggregation.aligner, values[0]
    if isinstance(first, Distribution):
        whole = _sum([value for value in values if isinstance(value, Distribution)])
        return whole if aligner == "ALIGN_DELTA" else whole.percentile(_PERCENTILES[aligner.removeprefix("ALIGN_")])
    numbers = [_number(value) for value in values]
    if aligner in _OF_COUNTS:
        return math.fsum(numbers) / (aggregation.period if aligner == "ALIGN_RATE" else 1.0)
    return float(_OF_GAUGES[aligner](numbers))


def reduce_series(
    series: Sequence[tuple[Labels, list[WrittenPoint]]], aggregation: SeriesAggregation, kept: frozenset[str]
) -> list[tuple[Labels, list[WrittenPoint]]]:
    """One series for each group.

    Args:
        series: Labels by their names in a filter, and aligned points, newest first.
        aggregation: The reducer and the labels of the groups.
        kept: Labels that every group has.
    """
    groups: dict[tuple[tuple[str, str], ...], dict[float, list[WrittenPoint]]] = {}
    for labels, points in series:
        key = tuple(sorted((name, labels[name]) for name in {*aggregation.groups, *kept} & labels.keys()))
        for point in points:
            groups.setdefault(key, {}).setdefault(point.end, []).append(point)
    return [
        (dict(key), [_reduced_point(aggregation.reducer, group) for _, group in sorted(by_end.items(), reverse=True)])
        for key, by_end in groups.items()
    ]


def _reduced_point(reducer: str, points: list[WrittenPoint]) -> WrittenPoint:
    start, end, first = points[0]
    if isinstance(first, Distribution) and reducer != "REDUCE_COUNT":
        whole = _sum([point.value for point in points if isinstance(point.value, Distribution)])
        percent = _PERCENTILES.get(reducer.removeprefix("REDUCE_"))
        return WrittenPoint(start, end, whole if percent is None else whole.percentile(percent))
    if reducer == "REDUCE_COUNT":
        return WrittenPoint(start, end, float(len(points)))
    return WrittenPoint(start, end, float(_REDUCE[reducer]([_number(point.value) for point in points])))


def _sum(distributions: list[Distribution]) -> Distribution:
    """The sum of those with the bounds of the first one."""
    whole = distributions[0]
    for other in distributions[1:]:
        whole = whole.plus(other) if other.bounds == whole.bounds else whole
    return whole


def _number(value: float | Distribution) -> float:
    return value.observations if isinstance(value, Distribution) else value
