"""How much of a quota Cloud Monitoring has counted as used, and how long ago.

Owns one question and the reading of its answer. Leaves out what follows from it (`stacks.quota`), and the quota's own
value: Monitoring's `quota/limit` is a sample as well, and Cloud Quotas tells what holds now.

Sources, November 2026:
- Google's discovery document monitoring.v3, projects.timeSeries.list: the filter names one metric type, the interval
  leaves out its start, points come newest first, and with the view FULL `pageSize` counts points.
- Google's list of metrics, serviceruntime: `quota/allocation/usage` is a gauge of int64 of the resource consumer_quota
  (labels project_id, service and location) with the label quota_metric. At most one point a minute; a value that does
  not change is repeated at least every 24 hours. How soon a point can be read is not said.
- Measured on Cloud Run by one of its users in 2026: a point within a minute of each change, none in between. So the
  newest point holds, however old it is within that day.
- A quota whose use is not reported, or never was any, has no series: that is not 0.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from bezel.rest import endpoint

if TYPE_CHECKING:
    from bezel.rest import GoogleClient
    from bezel.rest.cloud_quotas import Limit

_METRIC = "serviceruntime.googleapis.com/quota/allocation/usage"
_REPEATED = timedelta(hours=25)  # a day, and an hour for a repetition that comes late


class Counted(NamedTuple):
    """What was in use, as the quota counts, `age` seconds ago; the asker's own use is among it."""

    used: int
    age: float


def counted_of(client: GoogleClient, project: str, limit: Limit, metric: str, now: datetime) -> Counted | None:
    """The newest point of a quota's use; None where there is none of the last day.

    Args:
        client: Who asks.
        project: Id of the project.
        limit: The quota in its place.
        metric: What it counts, e.g. `run.googleapis.com/cpu_allocation`.
        now: The time, with its zone.

    Raises:
        RestError: It could not be asked.
        ValueError: What stands in the answer is no number or no time.
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
