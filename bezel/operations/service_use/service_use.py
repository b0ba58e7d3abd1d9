"""Use of a Cloud Run service with a GPU: instances now, and what its instances have cost so far.

Owns the price of billed time. Leaves out the questions to Cloud Monitoring
(bezel.operations.service_use.service_metrics).
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from typing import Any

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService
from bezel.operations.results import Result, Usd, utc
from bezel.operations.service_use.service_metrics import Billed, SampledInstances, billed_time, running_instances
from bezel.planner.base.money import Amount, Priced, Unpriced
from bezel.resource_cost.inputs import InputError, Inputs
from bezel.resource_cost.prices.gpu_service import GpuService
from bezel.resource_cost.stack_cost import plain
from bezel_base.errors import one_line


class InstancesNow(Result):
    """Instances of a service at the newest sample of Cloud Monitoring."""

    count: int | None = Field(description="all instances; None if Monitoring has no answer")
    active: int | None = Field(description="instances that start or handle requests")
    idle: int | None = Field(description="instances that handle no request; they cost as much")
    sampled_at: datetime | None
    age_seconds: int | None = Field(
        description="age of the sample: it is taken once a minute and shown up to two later"
    )
    unknown_because: str | None = Field(description="why the count is unknown; None if it is known")

    def line(self) -> str:
        """The count for people."""
        if self.count is None:
            return f"unknown ({self.unknown_because})"
        return f"{self.count} ({self.active} active, {self.idle} idle), sampled {self.age_seconds} s ago"


class ServiceCost(Result):
    """What the instances of a service have cost so far, at the price of its present instances."""

    usd: Usd | None = Field(description="billed time of all instances times their price; None if unknown")
    instance_seconds: float | None = Field(
        description="billed time of all instances together, as Cloud Monitoring has it"
    )
    since: datetime = Field(description="begin of that time: the service's creation, at most six weeks ago")
    is_partial: bool = Field(description="whether the service is older than that: Monitoring keeps six weeks")
    unknown_because: str | None = Field(description="why the cost is unknown; None if it is known")


def service_use(
    context: Context, service: DeployedService, created: float | None, inputs: Mapping[str, Any] | None = None
) -> tuple[InstancesNow, ServiceCost]:
    """The instances of a service now, and its cost since its creation.

    Args:
        context: The context.
        service: The service.
        created: Its creation, unix seconds.
        inputs: Its inputs as they are in force, for the price of an instance; by default the declared ones.
    """
    with ThreadPoolExecutor(1) as beside:
        counted = beside.submit(running_instances, context, service)
        billed = billed_time(context, service, created or 0.0)
        return _instances(context, counted.result()), _cost(
            billed, _price(service.inputs if inputs is None else inputs), created
        )


def _instances(context: Context, instances: SampledInstances) -> InstancesNow:
    at = instances.sampled_at
    return InstancesNow(
        count=instances.count,
        active=instances.active,
        idle=instances.idle,
        sampled_at=utc(at),
        age_seconds=None if at is None else max(0, int(context.clock.now() - at)),
        unknown_because=instances.unknown_because or None,
    )


def _price(inputs: Mapping[str, Any]) -> Amount:
    try:
        return GpuService(Inputs(plain(inputs))).instance_hourly
    except InputError as error:
        return Unpriced(one_line(error))


def _cost(billed: Billed, hourly: Amount, created: float | None) -> ServiceCost:
    usd, because = None, billed.unknown_because
    if billed.seconds is not None:
        if isinstance(hourly, Priced):
            usd = hourly.usd * Decimal(repr(billed.seconds)) / 3600
        else:
            because = f"no price of an instance: {hourly.reason}"
    since = utc(billed.since)
    if since is None:
        raise AssertionError("billed time always has a begin")
    return ServiceCost(
        usd=usd,
        instance_seconds=billed.seconds,
        since=since,
        is_partial=created is None or billed.since > created,
        unknown_because=because or None,
    )
