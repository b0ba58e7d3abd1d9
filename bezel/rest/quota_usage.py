"""Quota usage of a project as Cloud Monitoring last counted it, with the age of that count.

Owns one request and the parsing of its response. Leaves out the conclusions (`stacks.quota`), and the quota's own
value: Monitoring's `quota/limit` is a sample as well, and Cloud Quotas returns the value that is in force.

Sources, November 2026:
- Google's discovery document monitoring.v3, projects.timeSeries.list: the filter names one metric type, the interval
  excludes its start, points come newest first, and with the view FULL `pageSize` counts points.
- Google's list of metrics, serviceruntime: `quota/allocation/usage` is a gauge of int64 of the resource consumer_quota
  (labels project_id, service and location) with the label quota_metric. At most one point a minute; a value that does
  not change is repeated at least every 24 hours. The delay until a point can be read is not documented.
- Measured on Cloud Run by one of its users in 2026: a point within a minute of each change, none in between. So the
  newest point is valid, however old it is within that day.
- A quota whose usage is not reported, or that was never used, has no series: that is not the same as 0.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from bezel.rest import GoogleClient, endpoint
from bezel.rest.cloud_quotas import Limit

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
    terms = {
        "metric.type": _METRIC,
        "metric.labels.quota_metric": metric,
        "resource.type": "consumer_quota",
        # A project may show the series of others that it monitors.
        "resource.labels.project_id": project,
        "resource.labels.service": limit.service,
        "resource.labels.location": limit.place,
    }
    params: dict[str, str | int] = {
        "filter": " AND ".join(f'{name} = "{value}"' for name, value in terms.items()),
        "interval.startTime": (now - _REPEATED).isoformat(),
        "interval.endTime": now.isoformat(),
        "view": "FULL",
        "pageSize": 1,  # these labels are one series, and its newest point is the first
    }
    url = f"{endpoint('MONITORING')}v3/projects/{project}/timeSeries"
    for series in client.pages(url, "timeSeries", params=params):
        try:
            if (newest := _newest(series, now)) is not None:
                return newest
        except (AttributeError, KeyError, TypeError):
            raise ValueError("an answer of another form") from None
    return None


def _newest(series: dict[str, Any], now: datetime) -> Counted | None:
    for point in series.get("points") or ():
        used, at = point["value"].get("int64Value"), point["interval"].get("endTime")
        if used is not None and at is not None:
            return Counted(int(used), max(0.0, (now - datetime.fromisoformat(at)).total_seconds()))
    return None
