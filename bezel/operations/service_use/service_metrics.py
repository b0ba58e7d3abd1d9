"""Metrics of a Cloud Run service in Cloud Monitoring: instances now, time that was billed, and requests by status.

Owns the questions and what counts as no answer. Sends no request to the service: one would start an instance.
Source: Google's list of metrics, `run.googleapis.com/container/instance_count`, `.../billable_instance_time` and
`run.googleapis.com/request_count`, November 2026: sampled every 60 s, readable up to 120 s later, kept for six weeks.
A request counts only where it reached an instance.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bezel.leases.clock import unix
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService
from bezel.operations.redaction import clean_text
from bezel.rest import ApiError, GoogleClient, RestError
from bezel_base.errors import one_line

KEPT = timedelta(weeks=6)
INSTANCE_COUNT = "run.googleapis.com/container/instance_count"
_REQUESTS = "run.googleapis.com/request_count"
_BILLABLE = "run.googleapis.com/container/billable_instance_time"
_LOOK_BACK = 360.0  # seconds: a sample is at most three minutes old, and may be late
_SAME_SAMPLE = 180.0  # a series whose newest point is older than the others' by more belongs to a revision that ended
_PERIOD = 60  # an alignment period is a multiple of it
_SECONDS = 5.0  # of a request, with its retries: Monitoring must not keep a status from being shown


@dataclass(frozen=True)
class SampledInstances:
    """Instances of a service at its newest sample.

    Attributes:
        active: Those that start or handle requests; None if Monitoring has no answer.
        idle: Those that handle none; None if Monitoring has no answer.
        sampled_at: Time of the sample, unix seconds; None without one.
        unknown_because: Why there is no answer, "" if there is one.
    """

    active: int | None = None
    idle: int | None = None
    sampled_at: float | None = None
    unknown_because: str = ""

    @property
    def count(self) -> int | None:
        """All instances; None if Monitoring has no answer."""
        return None if self.active is None or self.idle is None else self.active + self.idle

    @property
    def is_running(self) -> bool:
        """Whether an instance surely ran at the sample; otherwise a request may start one, which costs money."""
        return bool(self.count)


@dataclass(frozen=True)
class Billed:
    """Time of instances that a service was billed for.

    Attributes:
        seconds: Of all instances together; None if Monitoring has no answer.
        since: Begin of the measured time, unix seconds.
        unknown_because: Why there is no answer, "" if there is one.
    """

    seconds: float | None
    since: float
    unknown_because: str = ""


@dataclass(frozen=True)
class InstanceTime:
    """Time of a service's instances by what they did.

    Attributes:
        idle_share: Share of it in which an instance neither started nor handled a request, from 0 to 1; None if
            Monitoring has no answer.
        unknown_because: Why there is no answer, "" if there is one.
    """

    idle_share: float | None
    unknown_because: str = ""


@dataclass(frozen=True)
class RequestTotal:
    """Requests that reached a service's instances; `number` is None if Monitoring has no answer, for a reason."""

    number: int | None
    unknown_because: str = ""


@dataclass(frozen=True)
class RequestSample:
    """Requests of one revision that ended with one status between two moments, unix seconds."""

    revision: str
    status: int
    start: float
    end: float
    number: int


def running_instances(context: Context, service: DeployedService, revision: str = "") -> SampledInstances:
    """The instances of a service as of the newest sample. Never raises for Monitoring's refusals.

    Args:
        context: The context.
        service: The service.
        revision: Short name of the revision whose instances alone count; "" for all.
    """
    now = context.clock.now()
    try:
        series = list(metric_series(context, service, INSTANCE_COUNT, now - _LOOK_BACK, now))
    except RestError as error:
        return SampledInstances(unknown_because=reason(error))
    points_by_key: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for each in series:
        if points := points_of(each):
            points_by_key[_key(each)] = sorted((*points_by_key.get(_key(each), ()), *points), reverse=True)
    if not points_by_key:
        return SampledInstances(
            unknown_because=f"Cloud Monitoring has no sample of the last {_LOOK_BACK / 60:.0f} minutes"
        )
    newest = max(points[0][0] for points in points_by_key.values())
    current = {key: points for key, points in points_by_key.items() if newest - points[0][0] <= _SAME_SAMPLE}
    # States are sampled together but can be read one after the other: the newest moment that all of them have.
    moment = min(points[0][0] for points in current.values())
    counts = [
        (state, next((int(value) for at, value in points if at <= moment), int(points[-1][1])))
        for (name, state), points in current.items()
        if revision in ("", name)
    ]
    idle = sum(value for state, value in counts if state == "idle")
    return SampledInstances(sum(value for _, value in counts) - idle, idle, moment)


def billed_time(context: Context, service: DeployedService, since: float) -> Billed:
    """The time that a service was billed for since a moment, at most that of the last six weeks."""
    begin = max(since, context.clock.now() - KEPT.total_seconds())
    try:
        points = [value for _, value in _sums(context, service, _BILLABLE, begin)]
    except RestError as error:
        return Billed(None, begin, reason(error))
    if not points:
        return Billed(None, begin, "Cloud Monitoring has no billable time of it yet")
    return Billed(sum(points), begin)


def billed_by_revision(context: Context, service: DeployedService, since: float) -> dict[str, float]:
    """The time that each revision of a service was billed for since a moment, by its short name, in seconds.

    Raises:
        RestError: Cloud Monitoring refused, or did not answer.
    """
    seconds: dict[str, float] = {}
    for labels, value in _sums(context, service, _BILLABLE, since):
        revision = labels.get("revision_name", "")
        seconds[revision] = seconds.get(revision, 0.0) + value
    return seconds


def instance_time(context: Context, service: DeployedService, since: float) -> InstanceTime:
    """The time of a service's instances since a moment, by their samples. Never raises for Monitoring's refusals."""
    try:
        sums = _sums(context, service, INSTANCE_COUNT, since)
    except RestError as error:
        return InstanceTime(None, reason(error))
    whole = sum(value for _, value in sums)
    if not whole:
        return InstanceTime(None, "Cloud Monitoring has no sample of its instances")
    return InstanceTime(sum(value for labels, value in sums if labels.get("state") == "idle") / whole)


def request_total(context: Context, service: DeployedService, since: float) -> RequestTotal:
    """The requests that reached a service since a moment. Never raises for Monitoring's refusals."""
    try:
        return RequestTotal(int(sum(value for _, value in _sums(context, service, _REQUESTS, since))))
    except RestError as error:
        return RequestTotal(None, reason(error))


def _sums(
    context: Context, service: DeployedService, metric: str, since: float
) -> list[tuple[Mapping[str, str], float]]:
    """Labels, of the metric and the resource, and sum of each of its series since a moment.

    Raises:
        RestError: Cloud Monitoring refused, or did not answer.
    """
    now = context.clock.now()
    period = max(1, math.ceil((now - since) / _PERIOD)) * _PERIOD
    aligned = {"aggregation.perSeriesAligner": "ALIGN_SUM", "aggregation.alignmentPeriod": f"{period}s"}
    series = metric_series(context, service, metric, now - period, now, aligned)
    return [
        (
            {**((each.get("resource") or {}).get("labels") or {}), **((each.get("metric") or {}).get("labels") or {})},
            value,
        )
        for each in series
        for _, value in points_of(each)
    ]


def request_samples(context: Context, service: DeployedService, start: float, end: float) -> list[RequestSample]:
    """The requests that reached an instance between two moments, unix seconds; a sample that begins before is left out.

    Raises:
        RestError: Cloud Monitoring refused, or did not answer.
    """
    samples = []
    for series in metric_series(context, service, _REQUESTS, start, end):
        metric, resource = ((series.get(part) or {}).get("labels") or {} for part in ("metric", "resource"))
        code = str(metric.get("response_code") or "")
        if not code.isdecimal():
            continue
        for point in series.get("points") or ():
            interval, value = point.get("interval") or {}, (point.get("value") or {}).get("int64Value")
            began, ended = unix(interval.get("startTime")), unix(interval.get("endTime"))
            if value is None or began is None or ended is None or began < start:
                continue
            samples.append(RequestSample(str(resource.get("revision_name") or ""), int(code), began, ended, int(value)))
    return samples


def metric_series(
    context: Context,
    service: DeployedService,
    metric: str,
    start: float,
    end: float,
    more: Mapping[str, str] | None = None,
) -> Iterator[dict[str, Any]]:
    """The series of a metric of a service between two moments, unix seconds; `more` are further parameters.

    Raises:
        RestError: Cloud Monitoring refused, or did not answer.
    """
    terms = {
        "metric.type": metric,
        "resource.type": "cloud_run_revision",
        # A project may show the series of others that it monitors.
        "resource.labels.project_id": service.project,
        "resource.labels.location": service.location,
        "resource.labels.service_name": service.name,
    }
    params: dict[str, str | int] = {
        "filter": " AND ".join(f'{name} = "{value}"' for name, value in terms.items()),
        "interval.startTime": _rfc3339(start),
        "interval.endTime": _rfc3339(end),
        "view": "FULL",
        "pageSize": 10_000,
        **(more or {}),
    }
    url = f"{context.address('MONITORING')}v3/projects/{service.project}/timeSeries"
    with GoogleClient(context.credentials, deadline_seconds=_SECONDS, timeout_seconds=_SECONDS) as client:
        yield from client.pages(url, "timeSeries", params=params)


def points_of(series: Mapping[str, Any]) -> list[tuple[float, float]]:
    """(time, value) of each point, newest first."""
    pairs = []
    for point in series.get("points") or ():
        value = point.get("value") or {}
        number, at = (
            value.get("int64Value", value.get("doubleValue")),
            unix((point.get("interval") or {}).get("endTime")),
        )
        if number is not None and at is not None:
            pairs.append((at, float(number)))
    return sorted(pairs, reverse=True)


def _key(series: Mapping[str, Any]) -> tuple[str, str]:
    """Revision and state of a series."""
    metric, resource = ((series.get(part) or {}).get("labels") or {} for part in ("metric", "resource"))
    return str(resource.get("revision_name") or ""), str(metric.get("state") or "")


def reason(error: RestError) -> str:
    """Why Cloud Monitoring gave no answer, in Google's words; of a disabled API with the command that enables it."""
    text = error.because if isinstance(error, ApiError) else one_line(error)
    return f"Cloud Monitoring: {clean_text(text.partition('. ')[0].rstrip('.'), 300)}"


def _rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")
