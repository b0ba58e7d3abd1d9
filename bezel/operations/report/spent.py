"""Hours and cost of what served a stack in some time: instances by billed time, leased machines by their leases.

An amount that is not known stays unknown, and so does a sum with it. Leaves the price of an instance and the billed
time to bezel.operations.service_use, the state of a lease to bezel.operations.status.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedLease, DeployedService, Deployment
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result, Usd
from bezel.operations.service_use.service_use import service_use
from bezel.operations.status.status import lease_status
from bezel_base.errors import UserError, one_line

_TEXT = 300
_READERS = 8


class Spent(Result):
    """Hours and cost of a service or a lease."""

    name: str = Field(description="the service with its region, or the lease with its zone")
    hours: float | None = Field(description="of all its instances together; null if unknown")
    usd: Usd | None = Field(description="null if unknown")
    source: str = Field(description="what the hours are from, and at what price they count")
    unknown_because: str | None = Field(description="why the hours or the cost are unknown; null if both are known")


def spent_since(context: Context, deployment: Deployment, since: float) -> tuple[Spent, ...]:
    """The cost of each service with a GPU and of each lease since a moment, Unix seconds."""
    services = [service for service in deployment.services if service.has_gpu]
    with ThreadPoolExecutor(_READERS) as readers:
        of_services = readers.map(lambda service: _of_service(context, service, since), services)
        of_leases = readers.map(lambda lease: _of_lease(context, lease, since), deployment.leases)
        return (*of_services, *of_leases)


def sum_usd(parts: Sequence[Spent]) -> Decimal | None:
    """The sum of all parts; None where one is unknown, or there is none."""
    amounts = [part.usd for part in parts if part.usd is not None]
    return sum(amounts, Decimal(0)) if amounts and len(amounts) == len(parts) else None


def sum_hours(parts: Sequence[Spent]) -> float | None:
    """The hours of all parts; None where those of one are unknown, or there is none."""
    hours = [part.hours for part in parts if part.hours is not None]
    return sum(hours) if hours and len(hours) == len(parts) else None


def _of_service(context: Context, service: DeployedService, since: float) -> Spent:
    _, cost = service_use(context, service, since)
    return Spent(
        name=f"{service.name} in {service.location}",
        hours=None if cost.instance_seconds is None else cost.instance_seconds / 3600,
        usd=cost.usd,
        source="billed time by Cloud Monitoring, at the present price of an instance",
        unknown_because=cost.unknown_because,
    )


def _of_lease(context: Context, lease: DeployedLease, since: float) -> Spent:
    source = "time of the present lease, at the price of its zone"
    try:
        status = lease_status(context, lease)
    except UserError as error:
        because = clean_text(one_line(error), _TEXT)
        return Spent(name=lease.name, hours=None, usd=None, source=source, unknown_because=because)
    name = f"{lease.name} in {status.zone}" if status.zone else lease.name
    if status.usd_so_far is None or not status.usd_per_hour:
        because = "its price or its end is not known"
        return Spent(name=name, hours=None, usd=None, source=source, unknown_because=because)
    now = context.clock.now()
    end = min(now, lease.ends_at or now)
    seconds = min(float(status.usd_so_far / status.usd_per_hour) * 3600, max(0.0, end - since))
    usd = status.usd_per_hour * Decimal(repr(seconds)) / 3600
    return Spent(name=name, hours=seconds / 3600, usd=usd, source=source, unknown_because=None)
