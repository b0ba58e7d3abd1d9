"""Written series as `timeSeries.list` shows them: those of a filter, within an interval, aggregated or not."""

from typing import NamedTuple

from bezel_localcloud.core.errors import ApiError, invalid, unserved_error
from bezel_localcloud.core.json_types import Json, seconds_of
from bezel_localcloud.routing.context import Context
from bezel_localcloud.routing.prometheus_samples import KINDS, Kind, StoredSeries
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.monitoring.written_metrics.aggregation import (
    ALIGNERS,
    REDUCERS,
    SHORTEST,
    Labels,
    SeriesAggregation,
    align,
    reduce_series,
)
from bezel_localcloud.services.monitoring.written_metrics.points import Distribution, WrittenPoint, points_of

PREFIX, RESOURCE = "prometheus.googleapis.com/", "prometheus_target"
RESOURCE_LABELS = ("project_id", "location", "cluster", "namespace", "job", "instance")
_ALWAYS = frozenset({"metric.type", "resource.type", "resource.labels.project_id"})


class Listed(NamedTuple):
    """A series as it is shown: its labels by their names in a filter, kind, type of values, and points."""

    labels: Labels
    kind: str
    value_type: str
    points: list[WrittenPoint]

    @property
    def name(self) -> str:
        """Its key in the order of a list."""
        return " ".join(f"{key}={self.labels[key]}" for key in sorted(self.labels))

    def json(self, points: list[WrittenPoint]) -> Json:
        """The series with some of its points."""

        def part(prefix: str) -> Json:
            return {key.removeprefix(prefix): value for key, value in self.labels.items() if key.startswith(prefix)}

        metric_labels = part("metric.labels.")
        shown: Json = {
            "metric": {"type": self.labels["metric.type"]} | ({"labels": metric_labels} if metric_labels else {}),
            "resource": {"type": RESOURCE, "labels": part("resource.labels.")},
            "metricKind": self.kind,
            "valueType": self.value_type,
        }
        return shown | ({"points": [point.json() for point in points]} if points else {})


def metric_name(metric_type: str) -> tuple[str, Kind] | None:
    """(Family, kind) of a written metric's type; None where it is none."""
    family, _, suffix = metric_type.removeprefix(PREFIX).rpartition("/")
    kind = next((kind for kind in KINDS if kind == suffix), None)
    return (family, kind) if kind and family and metric_type.startswith(PREFIX) else None


def written_series(cloud: Context, metric_type: str) -> list[StoredSeries]:
    """The series of a written metric.

    Raises:
        ApiError: NOT_FOUND where nothing has written it.
    """
    name = metric_name(metric_type)
    series = [one for one in cloud.prometheus_series.series() if (one.family, one.kind) == name]
    if not series:
        again = "If a metric was created recently, it could take up to 10 minutes to become available. "
        text = f'Cannot find metric(s) that match type = "{metric_type}". {again}Please try again soon.'
        raise ApiError("NOT_FOUND", text)
    return series


def label_names(series: list[StoredSeries]) -> frozenset[str]:
    """Labels that a filter of a written metric may name."""
    names = {f"metric.labels.{name}" for one in series for name in one.labels}
    return frozenset(names | {f"resource.labels.{name}" for name in RESOURCE_LABELS} | _ALWAYS)


def labels_of(series: StoredSeries) -> dict[str, str]:
    """Labels of a series by their names in a filter."""
    labels = {"metric.type": series.type, "resource.type": RESOURCE}
    labels |= {f"metric.labels.{name}": value for name, value in series.labels.items()}
    return labels | {f"resource.labels.{name}": value for name, value in series.resource.items()}


def listed_series(
    series: list[StoredSeries], required: Labels, since: float, until: float, aggregation: SeriesAggregation | None
) -> list[Listed]:
    """The series that a filter selects, with their points of an interval, newest first, in the order of their names."""
    kind = series[0].kind
    metric_kind, value_type = "GAUGE" if kind == "gauge" else "CUMULATIVE", "DOUBLE"
    value_type = "DISTRIBUTION" if kind == "histogram" else value_type
    selected = [(labels_of(one), points_of(one)) for one in series]
    selected = [(labels, points) for labels, points in selected if required.items() <= labels.items()]
    if aggregation is None:
        chosen = [(labels, [each for each in points if since < each.end <= until]) for labels, points in selected]
        listed = [Listed(labels, metric_kind, value_type, points[::-1]) for labels, points in chosen if points]
        return sorted(listed, key=lambda one: one.name)
    aligned = [(labels, align(points, kind, aggregation, since, until)) for labels, points in selected]
    aligned = [(labels, points) for labels, points in aligned if points]
    sums = aggregation.reducer in {"", "REDUCE_SUM"}
    metric_kind = "DELTA" if aggregation.aligner == "ALIGN_DELTA" and sums else "GAUGE"
    rows: list[tuple[Labels, list[WrittenPoint]]] = list(aligned)
    if aggregation.reducer:
        rows = reduce_series(rows, aggregation, _ALWAYS)
    listed = [
        Listed(labels, metric_kind, "DISTRIBUTION" if isinstance(points[0].value, Distribution) else "DOUBLE", points)
        for labels, points in rows
    ]
    return sorted(listed, key=lambda one: one.name)


def aggregation_of(call: Call, kind: Kind) -> SeriesAggregation | None:
    """The aggregation of a request; None without one.

    Raises:
        ApiError: INVALID_ARGUMENT for one that cannot be; NotServedError for another one.
    """
    aligner = call.query("aggregation.perSeriesAligner", "ALIGN_NONE") or "ALIGN_NONE"
    reducer = call.query("aggregation.crossSeriesReducer", "REDUCE_NONE") or "REDUCE_NONE"
    if aligner == "ALIGN_NONE":
        if reducer != "REDUCE_NONE" or call.query("aggregation.alignmentPeriod"):
            raise unserved_error("an aggregation without an aligner", "name aggregation.perSeriesAligner")
        return None
    if aligner not in ALIGNERS[kind]:
        raise unserved_error(f"{aligner} of a {kind}", f"use {', '.join(sorted(ALIGNERS[kind]))}")
    try:
        period = seconds_of(call.query("aggregation.alignmentPeriod"), 0.0)
    except ValueError as error:
        raise _wrong_period(str(error)) from None
    if period < SHORTEST:
        raise _wrong_period("the alignment period must be at least 60 seconds")
    if reducer == "REDUCE_NONE":
        return SeriesAggregation(aligner, period)
    served = REDUCERS[kind == "histogram" and aligner == "ALIGN_DELTA"]
    if reducer not in served:
        raise unserved_error(f"{reducer} of {aligner} of a {kind}", f"use {', '.join(sorted(served))}")
    fields = call.request.query_params.multi_items()
    groups = [value for name, value in fields if name.replace("_", "") == "aggregation.groupByFields" and value]
    names = [each.replace(".label.", ".labels.", 1) for each in groups]
    return SeriesAggregation(aligner, period, reducer, tuple(names))


def _wrong_period(why: str) -> ApiError:
    field = "aggregation.alignmentPeriod"
    return invalid(f"Field {field} had an invalid value: {why}.", (field, why))
