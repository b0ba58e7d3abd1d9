"""Collectors beside servers: the price of a month's samples and reads at most, read from the services' own inputs.

A collector is known by its image. Leaves out those of leased machines, whose samples until a lease ends cost less than
a cent an hour. An unknown maximum makes the price unknown.
"""

from collections.abc import Iterable
from decimal import Decimal

from bezel.planner.base.money import Amount, Unpriced
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from bezel.planner.team.metrics_plan import COLLECTOR_IMAGE, metrics_cost
from bezel.resource_cost.inputs import InputError
from bezel.resource_cost.prices.gpu_service import GpuService


def samples_monthly(services: Iterable[GpuService]) -> Amount | None:
    """Samples, and reads of configurations, of all instances in a month; None where none has a collector."""
    hours, has_collector = Decimal(0), False
    for service in services:
        try:
            if not _has_collector(service):
                continue
            has_collector = True
            hours += service.max_instances * HOURS_PER_MONTH
        except InputError:
            return Unpriced("samples of a collector, as an input of its service is not known yet")
    return metrics_cost(leased=False).usd(hours) if has_collector else None


def _has_collector(service: GpuService) -> bool:
    containers = service.inputs.each("template", "containers")
    return any(COLLECTOR_IMAGE.repository in str(container.get("image")) for container in containers)
