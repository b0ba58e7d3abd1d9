"""Monitoring v3: projects.timeSeries.list, for quotas, instances of Cloud Run services, and what collectors write.

The shape is that of Google's discovery document; filters compare labels for equality, joined by AND. Of the platform's
metrics the only served aggregation is ALIGN_SUM, which Google has for GAUGE and DELTA metrics, of written ones those of
`written_metrics`. Other metrics, comparisons and aggregations are refused as not served: no response is made up.
"""

import math
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from bezel_localcloud.core.errors import ApiError, invalid, unserved_error
from bezel_localcloud.core.json_types import Json, seconds_of, timestamp
from bezel_localcloud.routing.context import Sample
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.monitoring.metrics import METRICS, Labels, Metric, series_of
from bezel_localcloud.services.monitoring.written_metrics.listing import (
    RESOURCE,
    aggregation_of,
    label_names,
    listed_series,
    metric_name,
    written_series,
)

api = Api("monitoring.googleapis.com", "Cloud Monitoring API")
_TERM = re.compile(r'\s*([a-z_.]+)\s*=\s*"((?:[^"\\]|\\.)*)"\s*')
_AND = re.compile(r"\bAND\b")
# Parts of Google's filter grammar that are not served.
_BEYOND = re.compile(r"\b(OR|NOT)\b|!=|[:<>()]|^-")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"?')
_OF_GPUS = "run.googleapis.com/container/gpu/"
_MOST = 100_000
_QUERY = (
    "filter interval.startTime interval.endTime view pageSize pageToken aggregation.alignmentPeriod "
    "aggregation.perSeriesAligner aggregation.crossSeriesReducer aggregation.groupByFields"
)
_SHORTEST = 60.0  # seconds of an alignment period


@api.route("GET", "/monitoring/v3/projects/{project:id}/timeSeries", needs="monitoring.timeSeries.list", query=_QUERY)
def list_time_series(call: Call) -> Json:
    """Return the series that match a filter, with their points of an interval, newest first."""
    required = required_labels(call.query("filter"))
    since, until = _interval(call)
    if metric_name(required["metric.type"]) is not None:
        return _page(call, _written_rows(call, required, since, until), "")
    metric = METRICS[required["metric.type"]]
    period = _period(call, metric)
    rows: list[Row] = []
    for labels, samples in series_of(call.cloud, metric):
        chosen = [sample for sample in reversed(samples) if since < sample.end <= until]
        if chosen and required.items() <= labels.items():
            name = " ".join(labels[key] for key in sorted(labels))
            points = chosen if period is None else _sums(metric, chosen, period, until)
            rows.append((name, partial(_series_json, metric, labels), points))
    return _page(call, sorted(rows, key=lambda row: row[0]), metric.unit)


Row = tuple[str, Callable[[list[Any]], Json], list[Any]]
"""A series: its name in the order of the list, its JSON with some of its points, and its points."""


def _written_rows(call: Call, required: dict[str, str], since: float, until: float) -> list[Row]:
    series = written_series(call.cloud, required["metric.type"])
    _check_names(required, label_names(series), RESOURCE)
    aggregation = aggregation_of(call, series[0].kind)
    return [(one.name, one.json, one.points) for one in listed_series(series, required, since, until, aggregation)]


def _page(call: Call, rows: list[Row], unit: str) -> Json:
    """One page of a list; its size counts points, and a series may continue on the next page."""
    if call.query("view") == "HEADERS":
        return call.page([(name, show([])) for name, show, _ in rows], "timeSeries", max_size=_MOST)
    numbered = [
        (f"{name} {1e11 - point.end:.6f}", (name, show, point)) for name, show, points in rows for point in points
    ]
    shown, token = call.page_items(numbered, default=_MOST, max_size=_MOST)
    by_series: dict[str, tuple[Callable[[list[Any]], Json], list[Any]]] = {}
    for _, (name, show, point) in shown:
        by_series.setdefault(name, (show, []))[1].append(point)
    response: Json = {"timeSeries": [show(points) for show, points in by_series.values()]} if shown else {}
    return response | ({"nextPageToken": token} if token else {}) | ({"unit": unit} if shown and unit else {})


def _period(call: Call, metric: Metric) -> float | None:
    """Seconds of the alignment period; None without an aggregation.

    Raises:
        ApiError: INVALID_ARGUMENT for an aggregation that cannot be; NotServedError for another one.
    """
    aligner, period = call.query("aggregation.perSeriesAligner"), call.query("aggregation.alignmentPeriod")
    reducer = call.query("aggregation.crossSeriesReducer")
    if reducer not in {"", "REDUCE_NONE"}:
        raise unserved_error(f"aggregation.crossSeriesReducer={reducer} of {metric.type}", "sum the series yourself")
    if aligner in ("", "ALIGN_NONE"):
        if period:
            raise unserved_error("aggregation.alignmentPeriod without an aligner", "name aggregation.perSeriesAligner")
        return None
    if aligner != "ALIGN_SUM":
        raise unserved_error(f"{aligner} of the metric {metric.type}", "use ALIGN_SUM, or no aligner")
    try:
        seconds = seconds_of(period, 0.0)
    except ValueError as error:
        raise _wrong_field(str(error), "aggregation.alignmentPeriod") from None
    if seconds < _SHORTEST:
        raise _wrong_field("the alignment period must be at least 60 seconds", "aggregation.alignmentPeriod")
    return seconds


def _sums(metric: Metric, samples: Sequence[Sample], period: float, until: float) -> list[Sample]:
    """The sum of each alignment period that has samples, newest first; the last period ends with the interval.

    The point of a gauge is at the end of its period.
    """
    sums: dict[int, float] = {}
    for sample in samples:
        ago = math.floor((until - sample.end) / period)
        sums[ago] = sums.get(ago, 0.0) + sample.value
    length = 0.0 if metric.kind == "GAUGE" else period
    return [Sample(until - ago * period - length, until - ago * period, value) for ago, value in sorted(sums.items())]


def _series_json(metric: Metric, labels: Labels, samples: Sequence[Sample]) -> Json:
    def part(prefix: str) -> Json:
        return {name.removeprefix(prefix): value for name, value in labels.items() if name.startswith(prefix)}

    metric_labels = part("metric.labels.")
    shown: Json = {
        "metric": {"type": metric.type} | ({"labels": metric_labels} if metric_labels else {}),
        "resource": {"type": metric.resource, "labels": part("resource.labels.")},
        "metricKind": metric.kind,
        "valueType": metric.value,
    }
    return shown | ({"points": [_point(metric, sample) for sample in samples]} if samples else {})


def _point(metric: Metric, sample: Sample) -> Json:
    value: Json = {"doubleValue": sample.value} if metric.value == "DOUBLE" else {"int64Value": str(int(sample.value))}
    interval = {"startTime": timestamp(sample.start), "endTime": timestamp(sample.end)}
    return {"interval": interval, "value": value}


def required_labels(text: str) -> dict[str, str]:
    """Return the labels and values that a filter requires.

    Raises:
        ApiError: INVALID_ARGUMENT for a malformed filter; NotServedError for another one.
    """
    required: dict[str, str] = {}
    for term in _AND.split(text):
        match = _TERM.fullmatch(term)
        if match is None:
            if _BEYOND.search(_QUOTED.sub('""', term).lstrip()):
                raise unserved_error(f"the filter {term.strip()[:200]!r}", 'give LABEL = "value", joined by AND')
            raise _wrong_field(f"could not parse {term.strip()[:200]!r}")
        name = re.sub(r"^(metric|resource)\.label\.", r"\1.labels.", match[1])
        if name in required:
            raise _wrong_field(f"{match[1]!r} is given twice")
        required[name] = re.sub(r"\\(.)", r"\1", match[2])
    if "metric.type" not in required:
        raise _wrong_field("it must specify a single metric type")
    if metric_name(required["metric.type"]) is not None:
        return required  # its labels are those that were written
    if required["metric.type"].startswith(_OF_GPUS):
        raise unserved_error(f"the metrics {_OF_GPUS}*", "no instance of localcloud has a GPU")
    metric = METRICS.get(required["metric.type"])
    if metric is None:
        raise unserved_error(f"the metric {required['metric.type']}", f"use {', '.join(METRICS)}")
    _check_names(required, metric.filters(), metric.resource)
    return required


def _check_names(required: dict[str, str], names: frozenset[str], resource: str) -> None:
    """Check that a filter names the labels and the resource of its metric."""
    metric_type = required["metric.type"]
    for name in required:
        if name not in names:
            raise _wrong_field(f"{name!r} is not a label of {metric_type} and {resource}")
    if required.get("resource.type", resource) != resource:
        raise _wrong_field(f"the metric {metric_type} is of the resource {resource}")


def _wrong_field(why: str, field: str = "filter") -> ApiError:
    return invalid(f"Field {field} had an invalid value: {why}.", (field, why))


def _interval(call: Call) -> tuple[float, float]:
    """The interval's (start, end) in Unix seconds: points come after the start and not after the end."""
    end = call.query("interval.endTime")
    if not end:
        raise invalid("Field interval.endTime is required.", ("interval.end_time", "is required"))
    until = _seconds(end)
    start = call.query("interval.startTime")
    since = _seconds(start) if start else until
    if since > until:
        raise invalid("Field interval.startTime is after interval.endTime.", ("interval.start_time", "is too late"))
    return since if start else since - 1e-6, until


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.upper()).timestamp()
