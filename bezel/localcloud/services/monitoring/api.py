"""Monitoring v3: projects.timeSeries.list, for the use of quotas.

The shape is that of Google's discovery document; filters compare labels for equality, joined by AND. Other metrics,
comparisons and aggregations are refused with 501: no response is made up.
"""

import re
from datetime import datetime

from bezel.localcloud.core.errors import ApiError, invalid, unserved
from bezel.localcloud.core.json_types import Json, timestamp
from bezel.localcloud.core.paths import PROJECT
from bezel.localcloud.routing.context import Point, Series
from bezel.localcloud.routing.router import Api, Call

api = Api("monitoring.googleapis.com", "Cloud Monitoring API")
METRIC, RESOURCE = "serviceruntime.googleapis.com/quota/allocation/usage", "consumer_quota"
_TERM = re.compile(r'\s*([a-z_.]+)\s*=\s*"((?:[^"\\]|\\.)*)"\s*')
_AND = re.compile(r"\bAND\b")
# Parts of Google's filter grammar that are not served.
_BEYOND = re.compile(r"\b(OR|NOT)\b|!=|[:<>()]|=\s*[a-z_]+\s*\(|^\s*-")
_KNOWN = ("metric.type", "resource.type", "metric.labels.quota_metric")
_LABELS = ("resource.labels.project_id", "resource.labels.service", "resource.labels.location")
_MOST = 100_000
_QUERY = "filter interval.startTime interval.endTime view pageSize pageToken"


@api.route("GET", "/monitoring/v3/projects/{project:id}/timeSeries", needs="monitoring.timeSeries.list", query=_QUERY)
def list_time_series(call: Call) -> Json:
    """Return the series that match a filter, with their points of an interval, newest first."""
    required = required_labels(call.query("filter"))
    since, until = _interval(call)
    found = sorted(
        (series, chosen)
        for series, all_points in call.cloud.quota_use.series().items()
        if required.items() <= _labels_of(series).items()
        if (chosen := [point for point in reversed(all_points) if since < point.time <= until])
    )
    if call.query("view") == "HEADERS":
        return call.page([(" ".join(series), _shown(series, [])) for series, _ in found], "timeSeries", max_size=_MOST)
    # The page size counts points: a series may continue on the next page.
    points = [(series, point) for series, chosen in found for point in chosen]
    numbered = [(f"{' '.join(series)} {1e11 - point.time:.6f}", (series, point)) for series, point in points]
    shown, token = call.paged(numbered, default=_MOST, max_size=_MOST)
    by_series: dict[Series, list[Point]] = {}
    for _, (series, point) in shown:
        by_series.setdefault(series, []).append(point)
    response: Json = {"timeSeries": [_shown(series, points) for series, points in by_series.items()]} if shown else {}
    return response | ({"nextPageToken": token} if token else {}) | ({"unit": "1"} if shown else {})


def _labels_of(series: Series) -> dict[str, str]:
    service = series.metric.partition("/")[0]
    values = (METRIC, RESOURCE, series.metric, PROJECT, service, series.location)
    return dict(zip((*_KNOWN, *_LABELS), values, strict=True))


def _shown(series: Series, points: list[Point]) -> Json:
    labels = {name.rpartition(".")[2]: value for name, value in _labels_of(series).items() if name in _LABELS}
    shown: Json = {
        "metric": {"type": METRIC, "labels": {"quota_metric": series.metric}},
        "resource": {"type": RESOURCE, "labels": labels},
        "metricKind": "GAUGE",
        "valueType": "INT64",
    }
    stamps = [(timestamp(point.time), point.used) for point in points]
    values = [
        {"interval": {"startTime": time, "endTime": time}, "value": {"int64Value": str(used)}} for time, used in stamps
    ]
    return shown | ({"points": values} if values else {})


def required_labels(text: str) -> dict[str, str]:
    """Return the labels and values that a filter requires.

    Raises:
        ApiError: INVALID_ARGUMENT for a malformed filter, UNIMPLEMENTED for one that is not served.
    """
    required: dict[str, str] = {}
    for term in _AND.split(text):
        match = _TERM.fullmatch(term)
        if match is None:
            if _BEYOND.search(re.sub(r'"(?:[^"\\]|\\.)*"', '""', term)):
                raise unserved(f"the filter {term.strip()[:200]!r}", 'give LABEL = "value", joined by AND')
            raise _refused(f"could not parse {term.strip()[:200]!r}")
        name = re.sub(r"^(metric|resource)\.label\.", r"\1.labels.", match[1])
        if name not in {*_KNOWN, *_LABELS}:
            raise _refused(f"{match[1]!r} is not a label of {METRIC} and {RESOURCE}")
        if name in required:
            raise _refused(f"{match[1]!r} is given twice")
        required[name] = re.sub(r"\\(.)", r"\1", match[2])
    if "metric.type" not in required:
        raise _refused("it must specify a single metric type")
    if required["metric.type"] != METRIC:
        raise unserved(f"the metric {required['metric.type']}", f"use {METRIC}")
    if required.get("resource.type", RESOURCE) != RESOURCE:
        raise _refused(f"the metric {METRIC} is of the resource {RESOURCE}")
    return required


def _refused(why: str) -> ApiError:
    return invalid(f"Field filter had an invalid value: {why}.", ("filter", why))


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
