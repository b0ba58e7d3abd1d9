"""Monitoring v3: projects.timeSeries.create, for collectors that write Prometheus metrics.

Owns the checks of a written series. Leaves out the store (`monitoring.prometheus_series`). Other metrics than
prometheus.googleapis.com/NAME/KIND on `prometheus_target` are refused as not served.
"""

from datetime import datetime

from bezel_localcloud.core.errors import invalid, unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.routing.prometheus_samples import ScrapedSample
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.monitoring.written_metrics.listing import (
    PREFIX,
    RESOURCE,
    RESOURCE_LABELS,
    metric_name,
)
from bezel_localcloud.services.monitoring.written_metrics.points import buckets_of

api = Api("monitoring.googleapis.com", "Cloud Monitoring API")
_MOST_SERIES = 200
_EARLY = 300.0  # seconds by which a point may be ahead
_VALUES = {"counter": ("doubleValue", "int64Value"), "gauge": ("doubleValue", "int64Value")}
Key = tuple[tuple[tuple[str, str], ...], float, float | None]


class _WrongSeriesError(ValueError):
    """A series that cannot be written; the text says why."""


@api.route(
    "POST", "/monitoring/v3/projects/{project:id}/timeSeries", needs="monitoring.timeSeries.create", body="request"
)
def create(call: Call) -> Json:
    """Write a point to each of several series; those that are right are written, whatever the others are."""
    written: list[Json] = call.body.get("timeSeries") or []
    if not 0 < len(written) <= _MOST_SERIES:
        raise invalid(f"Field timeSeries must have 1 to {_MOST_SERIES} members.", ("time_series", str(len(written))))
    scrapes: dict[Key, list[tuple[int, ScrapedSample]]] = {}
    problems: list[tuple[int, str]] = []
    for index, series in enumerate(written):
        try:
            key, sample = _sample(series, call.cloud.pace.now())
            scrapes.setdefault(key, []).append((index, sample))
        except _WrongSeriesError as error:
            problems.append((index, str(error)))
    for (resource, end, start), samples in scrapes.items():
        refused = call.cloud.prometheus_series.write(end, dict(resource), [sample for _, sample in samples], start)
        late = "Points must be written in order. One or more of the points specified had an older start time or end "
        late += "time than the most recent point."
        problems += [(index, late) for index, sample in samples if sample in refused]
    if problems:
        text = "; ".join(f"timeSeries[{index}]: {why}" for index, why in sorted(problems))
        fields = [(f"time_series[{index}]", why) for index, why in sorted(problems)]
        raise invalid(f"One or more TimeSeries could not be written: {text}", *fields)
    return {}


def _sample(series: Json, now: float) -> tuple[Key, ScrapedSample]:
    """(Resource, end and start of its interval), and the sample of a written series.

    Raises:
        ApiError: NotServedError for another metric or resource.
        _WrongSeriesError: It cannot be written.
    """
    metric, resource = series.get("metric") or {}, series.get("resource") or {}
    metric_type = str(metric.get("type", ""))
    name = metric_name(metric_type)
    if name is None or resource.get("type") != RESOURCE:
        what = f"the metric {metric_type or '(none)'} on the resource {resource.get('type', '(none)')}"
        raise unserved_error(what, f"write {PREFIX}NAME/KIND of a counter, gauge or histogram on {RESOURCE}")
    family, kind = name
    points = series.get("points") or []
    if len(points) != 1:
        raise _WrongSeriesError("a series must have exactly one point")
    start, end = _interval(points[0], now)
    labels = {"project_id": PROJECT} | (resource.get("labels") or {})
    if unknown := labels.keys() - set(RESOURCE_LABELS):
        raise _WrongSeriesError(f"{min(unknown)!r} is not a label of {RESOURCE}")
    cumulative = kind != "gauge"
    if series.get("metricKind", "") not in {"", "CUMULATIVE" if cumulative else "GAUGE"}:
        raise _WrongSeriesError(f"the metric kind of a {kind} cannot be {series['metricKind']}")
    if cumulative and not start < end:
        raise _WrongSeriesError("the start time of a cumulative point must be before its end time")
    key = (tuple(sorted(labels.items())), end, start if cumulative else None)
    value = points[0].get("value") or {}
    if kind == "histogram":
        if "distributionValue" not in value:
            raise _WrongSeriesError("the value of a histogram must be a distribution")
        try:
            return key, ScrapedSample(family, kind, metric.get("labels") or {}, buckets_of(value["distributionValue"]))
        except ValueError as error:
            raise _WrongSeriesError(str(error)) from None
    numbers = [value[field] for field in _VALUES[kind] if field in value]
    if len(numbers) != 1:
        raise _WrongSeriesError(f"the value of a {kind} must be a number")
    return key, ScrapedSample(family, kind, metric.get("labels") or {}, float(numbers[0]))


def _interval(point: Json, now: float) -> tuple[float, float]:
    """(Start, end) of a point's interval in Unix seconds."""
    interval = point.get("interval") or {}
    if not interval.get("endTime"):
        raise _WrongSeriesError("the interval of a point must have an end time")
    end = datetime.fromisoformat(interval["endTime"].upper()).timestamp()
    start = interval.get("startTime")
    if end > now + _EARLY:
        raise _WrongSeriesError("the end time of a point must not be more than five minutes ahead")
    return datetime.fromisoformat(start.upper()).timestamp() if start else end, end
