"""Instances of a service, as far as Google says: whether a request to it would start one, which costs money.

Owns the reading of Cloud Monitoring's instance count and the decision. Google samples the count once a minute and shows
it up to two minutes later; an instance may have ended since. Leaves out what is asked of the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bezel.errors import one_line
from bezel.operations.status import min_instances, read_service
from bezel.rest import RestError

if TYPE_CHECKING:
    from bezel.operations.context import Context
    from bezel.operations.deployment.deployment import DeployedService, Deployment

METRIC = "run.googleapis.com/container/instance_count"
_WINDOW = 360.0  # seconds: a sample a minute, and up to two minutes until it is shown


@dataclass(frozen=True)
class Instances:
    """The instances of a stack's service.

    Attributes:
        count: Running instances, idle ones included; None where unknown.
        why: How the count is known, or why it is not.
        is_awake: Whether a request meets a running server, as far as is known; False where one may have to start.
    """

    count: int | None
    why: str
    is_awake: bool


def instances_of(context: Context, deployment: Deployment) -> Instances:
    """The instances of the service that runs the model.

    Raises:
        RestError: Cloud Run could not be asked.
    """
    service = deployment.service
    if service is None:
        return Instances(None, "the stack has no Cloud Run service", is_awake=True)
    if not service.has_gpu:
        return Instances(None, "the model runs on leased machines, behind a gateway", is_awake=True)
    minimum = min_instances(read_service(context, service) or {})
    count, why = _counted(context, service)
    if count is None and minimum > 0:
        return Instances(None, f"the service keeps {minimum} instances at least; {why}", is_awake=True)
    return Instances(count, why, is_awake=bool(count) or minimum > 0)


def _counted(context: Context, service: DeployedService) -> tuple[int | None, str]:
    """The newest sample of the count, over states and revisions, and how it is known."""
    now = context.clock.now()
    labels = {
        "metric.type": METRIC,
        "resource.type": "cloud_run_revision",
        "resource.labels.service_name": service.name,
        "resource.labels.location": service.location,
    }
    query = {
        "filter": " AND ".join(f'{name} = "{value}"' for name, value in labels.items()),
        "interval.startTime": _rfc3339(now - _WINDOW),
        "interval.endTime": _rfc3339(now),
        "pageSize": "1000",
    }
    try:
        answer = context.google.get(
            f"{context.address('MONITORING')}v3/projects/{service.project}/timeSeries", params=query
        )
    except RestError as error:
        return None, f"Cloud Monitoring could not be asked for {METRIC}: {one_line(error)[:300]}"
    newest: dict[str, int] = {}
    for series in answer.get("timeSeries") or ():
        for point in series.get("points") or ():
            moment = str((point.get("interval") or {}).get("endTime") or "")
            newest[moment] = newest.get(moment, 0) + int((point.get("value") or {}).get("int64Value") or 0)
    if not newest:
        # A service without instances has no series, and a sample may not be shown yet.
        return None, f"Cloud Monitoring has no sample of {METRIC} of the last {_WINDOW / 60:.0f} minutes"
    last = max(newest)
    return newest[last], f"Cloud Monitoring, {last}"


def _rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")
