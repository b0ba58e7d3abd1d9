"""Quantiles of values, and of the buckets of histograms. Pure.

Source: prometheus/prometheus, promql/quantile.go (v0.316.0). A histogram without observations has no value, as in
Google's service (cloud.google.com/stackdriver/docs/managed-prometheus/promql-differences, November 2026); Prometheus
has NaN there.
"""

import math
import sys
from bisect import bisect_left
from collections.abc import Sequence

from bezel_localcloud.services.monitoring.promql.values import Element, Labels, Vector, without_labels

_TOLERANCE = 1e-12  # of two counts that are the same but for rounding


def quantile(q: float, values: Sequence[float]) -> float:
    """A quantile by linear interpolation between the two values beside it."""
    if not values or math.isnan(q):
        return math.nan
    if not 0 <= q <= 1:
        return -math.inf if q < 0 else math.inf
    # NaN is less than every number.
    ordered = sorted(values, key=lambda value: (not math.isnan(value), value if not math.isnan(value) else 0.0))
    rank = q * (len(ordered) - 1)
    lower = math.floor(rank)
    weight = rank - lower
    if not weight:
        return ordered[lower]
    return ordered[lower] * (1 - weight) + ordered[min(lower + 1, len(ordered) - 1)] * weight


def histogram_quantile(q: float, vector: Vector) -> Vector:
    """The quantile of each histogram whose buckets are in a vector."""
    histograms: dict[Labels, list[tuple[float, float]]] = {}
    for labels, count in vector:
        try:
            bound = float(dict(labels).get("le", ""))
        except ValueError:
            continue
        if not math.isnan(bound):
            histograms.setdefault(without_labels(labels, ["le"]), []).append((bound, count))
    values = [(labels, _of_buckets(q, buckets)) for labels, buckets in histograms.items()]
    return [Element(without_labels(labels, ["__name__"]), value) for labels, value in values if value is not None]


def _of_buckets(q: float, buckets: list[tuple[float, float]]) -> float | None:
    """The quantile by buckets (bound, observations up to it), None where there are no observations."""
    if math.isnan(q):
        return math.nan
    if not 0 <= q <= 1:
        return -math.inf if q < 0 else math.inf
    bounds, counts = _monotonic(buckets)
    if bounds[-1] != math.inf or len(bounds) < 2:
        return math.nan
    if not counts[-1]:
        return None
    rank = q * counts[-1]
    index = bisect_left(counts, rank, hi=len(counts) - 1)
    if index == len(counts) - 1:
        return bounds[-2]
    if index == 0 and bounds[0] <= 0:
        return bounds[0]
    below, start = (counts[index - 1], bounds[index - 1]) if index else (0.0, 0.0)
    # Of a bucket without observations there is no quantile: NaN, as by Go's 0 / 0.
    share = (rank - below) / (counts[index] - below) if counts[index] != below else math.nan
    return start + (bounds[index] - start) * share


def _monotonic(buckets: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Bounds in order, each once, and counts that never fall."""
    bounds, counts = list[float](), list[float]()
    for bound, count in sorted(buckets, key=lambda bucket: bucket[0]):
        if bounds and bounds[-1] == bound:
            counts[-1] += count
        else:
            bounds.append(bound)
            counts.append(count)
    for index in range(1, len(counts)):
        before = counts[index - 1]
        if counts[index] < before or _almost_equal(before, counts[index]):
            counts[index] = before
    return bounds, counts


def _almost_equal(one: float, two: float) -> bool:
    if one == two or (math.isnan(one) and math.isnan(two)):
        return True
    size, difference = abs(one) + abs(two), abs(one - two)
    if not one or not two or size < sys.float_info.min:
        return difference < _TOLERANCE * sys.float_info.min
    return difference / min(size, sys.float_info.max) < _TOLERANCE
