"""Monitoring v3: projects.timeSeries.list, for the use of quotas and the instances of Cloud Run services.

The shape is that of Google's discovery document; filters compare labels for equality, joined by AND. The only served
aggregation is ALIGN_SUM, which Google has for GAUGE and DELTA metrics. Other metrics, comparisons and aggregations are
refused as not served: no response is made up.
"""

import math
import re
from collections.abc import Sequence
from datetime import datetime

from bezel_localcloud.core.errors import ApiError, invalid, unserved_error
from bezel_localcloud.core.json_types import Json, seconds_of, timestamp
from bezel_localcloud.routing.context import Sample
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.monitoring.metrics import METRICS, Labels, Metric, series_of

api = Api("monitoring.googleapis.com", "Cloud Monitoring API")
_TERM = re.compile(r'\s*([a-z_.]+)\s*=\s*"((?:[^"\\]|\\.)*)"\s*')
_AND = re.compile(r"\bAND\b")
# Parts of Google's filter grammar that are not served.
_BEYOND = re.compile(r"\b(OR|NOT)\b|!=|[:<>()]|^-")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"?')
_MOST = 100_000
_QUERY = (
    "filter interval.startTime interval.endTime view pageSize pageToken "
    "aggregation.alignmentPeriod aggregation.perSeriesAligner"
)
_SHORTEST = 60.0  # seconds of an alignment period


@api.route("GET", "/monitoring/v3/projects/{project:id}/timeSeries", needs="monitoring.timeSeries.list", query=_QUERY)
def list_time_series(call: Call) -> Json:
    """Return the series that match a filter, with their points of an interval, newest first."""
    required = required_labels(call.query("filter"))
    metric = METRICS[required["metric.type"]]
    since, until = _interval(call)
    period = _period(call, metric)
    selected: list[tuple[str, Labels, list[Sample]]] = []
    for labels, samples in series_of(call.cloud, metric):
        chosen = [sample for sample in reversed(samples) if since < sample.end <= until]
        if chosen and required.items() <= labels.items():
            name = " ".join(labels[key] for key in sorted(labels))
            selected.append((name, labels, chosen if period is None else _sums(metric, chosen, period, until)))
    selected.sort(key=lambda item: item[0])
    if call.query("view") == "HEADERS":
        headers = [(name, _series_json(metric, labels, [])) for name, labels, _ in selected]
        return call.page(headers, "timeSeries", max_size=_MOST)
    # The page size counts points: a series may continue on the next page.
    points = [(name, labels, sample) for name, labels, chosen in selected for sample in chosen]
    numbered = [(f"{name} {1e11 - sample.end:.6f}", (name, labels, sample)) for name, labels, sample in points]
    shown, token = call.page_items(numbered, default=_MOST, max_size=_MOST)
    by_series: dict[str, tuple[Labels, list[Sample]]] = {}
    for _, (name, labels, sample) in shown:
        by_series.setdefault(name, (labels, []))[1].append(sample)
    response: Json = {"timeSeries": [_series_json(metric, *series) for series in by_series.values()]} if shown else {}
    return response | ({"nextPageToken": token} if token else {}) | ({"unit": metric.unit} if shown else {})


def _period(call: Call, metric: Metric) -> float | None:
    """Seconds of the alignment period; None without an aggregation.

    Raises:
        ApiError: INVALID_ARGUMENT for an aggregation that cannot be; NotServedError for another one.
    """
    aligner, period = call.query("aggregation.perSeriesAligner"), call.query("aggregation.alignmentPeriod")
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
    metric = METRICS.get(required["metric.type"])
    if metric is None:
        raise unserved_error(f"the metric {required['metric.type']}", f"use {', '.join(METRICS)}")
    for name in required:
        if name not in metric.filters():
            raise _wrong_field(f"{name!r} is not a label of {metric.type} and {metric.resource}")
    if required.get("resource.type", metric.resource) != metric.resource:
        raise _wrong_field(f"the metric {metric.type} is of the resource {metric.resource}")
    return required


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
