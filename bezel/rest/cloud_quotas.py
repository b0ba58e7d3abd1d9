"""Quota values of a project, read from Cloud Quotas.

Owns the request and the parsing of its response. Leaves out the amounts that a plan needs
(`bezel.planner.assemble.quota`) and when the request is sent.

Source: Cloud Quotas v1, quotaInfos.get, November 2026: one entry for each set of dimensions that has a value of its
own, with the places that it holds for; a value of 0 may be left out, as any zero in Google's JSON; -1 is no limit.
`metric` is the metric under which Cloud Monitoring counts the quota.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

from bezel.rest import ApiError, GoogleClient, endpoint

_UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class Limit:
    """A quota in a place.

    Attributes:
        service: the service that owns the quota, e.g. `run.googleapis.com`.
        quota_id: id of the quota.
        place: a region, or a zone (the quota of its region holds for it too).
        dimensions: the dimensions beside the place, e.g. `(("tpu_family", "CT6E"),)`.
    """

    service: str
    quota_id: str
    place: str
    dimensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Allowed:
    """The value of a quota, in its own unit (infinity without a limit), and the metric that counts it."""

    value: float
    metric: str


def quota_of(client: GoogleClient, project: str, limit: Limit) -> Allowed | None:
    """Return the quota of a project; None where the API returns no value.

    Raises:
        RestError: The request failed.
    """
    quota = info_of(client, project, limit.service, limit.quota_id)
    return None if quota is None else value_in(quota, limit)


def info_of(client: GoogleClient, project: str, service: str, quota_id: str) -> dict[str, Any] | None:
    """Return a quota with its values in all places, as the API describes it; None where it does not know it.

    Raises:
        RestError: The request failed.
    """
    name = f"services/{service}/quotaInfos/{quote(quota_id, safe='')}"
    try:
        return client.get(f"{endpoint('CLOUD_QUOTAS')}projects/{project}/locations/global/{name}")
    except ApiError as error:
        if error.status == 404:
            return None
        raise


def value_in(quota: Mapping[str, Any], limit: Limit) -> Allowed | None:
    """The value of a described quota in a place; None where the description has none. Pure."""
    places = {limit.place, limit.place.rpartition("-")[0]}
    for info in quota.get("dimensionsInfos") or []:
        dimensions = info.get("dimensions") or {}
        if any(dimensions.get(name, required) != required for name, required in limit.dimensions):
            continue
        if places & {*dimensions.values(), *(info.get("applicableLocations") or [])}:
            value = int((info.get("details") or {}).get("value") or 0)
            return Allowed(math.inf if value == _UNLIMITED else value, str(quota.get("metric") or ""))
    return None


_METRIC = "serviceruntime.googleapis.com/quota/allocation/usage"
_REPEATED = timedelta(hours=25)  # a day, and an hour for a repetition that comes late


class Counted(NamedTuple):
    """The usage `age` seconds ago, in the quota's own unit; it includes what the caller itself uses."""

    used: int
    age: float


def counted_of(client: GoogleClient, project: str, limit: Limit, metric: str, now: datetime) -> Counted | None:
    """Return the newest point of a quota's usage; None where there is none of the last day.

    Args:
        client: The client that sends the request.
        project: Id of the project.
        limit: The quota in its place.
        metric: The metric that counts it, e.g. `run.googleapis.com/cpu_allocation`.
        now: The time, with its zone.

    Raises:
        RestError: The request failed.
        ValueError: The response holds something else than numbers and times.
    """
    for _, counted in _series(client, project, (limit.service, metric, limit.place), now):
        return counted
    return None


def counted_everywhere(
    client: GoogleClient, project: str, service: str, metric: str, now: datetime
) -> dict[str, Counted]:
    """Return the newest point of a quota's usage of the last day by place; a place that it never had is missing.

    Raises:
        RestError: The request failed.
        ValueError: The response holds something else than numbers and times.
    """
    counted_by_place: dict[str, Counted] = {}
    for place, counted in _series(client, project, (service, metric, ""), now):
        counted_by_place.setdefault(place, counted)  # the newest one of a series is the first
    return counted_by_place


def _series(
    client: GoogleClient, project: str, quota: tuple[str, str, str], now: datetime
) -> Iterator[tuple[str, Counted]]:
    """(place, newest point) of each series of a quota: its service, its metric, and a place or "" for all."""
    service, metric, place = quota
    terms = {
        "metric.type": _METRIC,
        "metric.labels.quota_metric": metric,
        "resource.type": "consumer_quota",
        # A project may show the series of others that it monitors.
        "resource.labels.project_id": project,
        "resource.labels.service": service,
        **({"resource.labels.location": place} if place else {}),
    }
    params: dict[str, str | int] = {
        "filter": " AND ".join(f'{name} = "{value}"' for name, value in terms.items()),
        "interval.startTime": (now - _REPEATED).isoformat(),
        "interval.endTime": now.isoformat(),
        "view": "FULL",
        # With a place these labels are one series, and its newest point is the first.
        **({"pageSize": 1} if place else {}),
    }
    url = f"{endpoint('MONITORING')}v3/projects/{project}/timeSeries"
    for series in client.pages(url, "timeSeries", params=params):
        try:
            newest = _newest(series, now)
            where = place or str(series["resource"]["labels"]["location"])
        except (AttributeError, KeyError, TypeError):
            raise ValueError("an answer of another form") from None
        if newest is not None:
            yield where, newest


def _newest(series: dict[str, Any], now: datetime) -> Counted | None:
    for point in series.get("points") or ():
        used, at = point["value"].get("int64Value"), point["interval"].get("endTime")
        if used is not None and at is not None:
            return Counted(int(used), max(0.0, (now - datetime.fromisoformat(at)).total_seconds()))
    return None
