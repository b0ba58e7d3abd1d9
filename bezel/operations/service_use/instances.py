"""Instances of a service, as far as Google says: whether a request to it would start one, which costs money.

Owns the decision. Google samples the count once a minute and shows it up to two minutes later; an instance may have
ended since. Leaves out the reading of the count (bezel.operations.service_use.service_metrics) and what is
asked of the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.leases.clock import rfc3339
from bezel.operations.service_use.service_metrics import INSTANCE_COUNT, running_instances
from bezel.operations.status.live_service import min_instances, read_service

if TYPE_CHECKING:
    from bezel.operations.context import Context
    from bezel.operations.deployment.deployment import DeployedService, Deployment

_METRIC = f"Cloud Monitoring's {INSTANCE_COUNT}"


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


def instances_of(context: Context, deployment: Deployment, fallback: DeployedService | None = None) -> Instances:
    """The instances of the service that runs the model.

    Args:
        context: The context of the operation.
        deployment: The deployed stack.
        fallback: The service that serves in the place of its leases; None while they do.

    Raises:
        RestError: Cloud Run could not be asked.
    """
    service = fallback or deployment.service
    if service is None:
        return Instances(None, "the stack has no Cloud Run service", is_awake=True)
    if not service.has_gpu:
        return Instances(None, "the model runs on leased machines, behind a gateway", is_awake=True)
    minimum = min_instances(read_service(context, service) or {})
    running = running_instances(context, service)
    count = running.count
    why = running.unknown_because or f"{_METRIC}, {rfc3339(running.sampled_at)}"
    if count is None and minimum > 0:
        return Instances(None, f"the service keeps {minimum} instances at least; {why}", is_awake=True)
    return Instances(count, why, is_awake=bool(count) or minimum > 0)
