"""Minimum of a Cloud Run service that a job of Cloud Scheduler sets, and what it costs above the service's declaration.

The declaration of a service has its schedule's highest minimum as an annotation, and its maximum. A job that sets a
higher one, or one of a service that the program does not declare, costs more than the declaration says.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from bezel.planner.base.money import Amount, Priced, Unpriced, times
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from bezel.resource_cost.inputs import Inputs
from bezel.resource_cost.prices.gpu_service import GpuService, has_gpu


@dataclass(frozen=True, slots=True)
class ScheduledMinimum:
    """`min_instances` of a service by its project, location and name, set by the input `min_key`.

    It has no labels: what applies to it is the only environment that has a limit.
    """

    project: str
    location: str
    service: str
    min_instances: int
    min_key: str
    labels: ClassVar[Inputs] = Inputs({}, ("labels",))

    def beyond(self, services: Iterable[Inputs]) -> "BeyondDeclaration | None":
        """What it costs more than the services' declarations say; None where it costs no more.

        Args:
            services: inputs of the Cloud Run services that the program declares.
        """
        if not self.min_instances:
            return None
        mine = next((service for service in services if self._sets(service)), None)
        if mine is None:
            return BeyondDeclaration(self, self.labels, None, self.min_instances, self.min_instances)
        if not has_gpu(mine):
            return None
        service = GpuService(mine)
        idle = max(0, self.min_instances - service.min_instances)
        most = max(0, self.min_instances - service.max_instances)
        return BeyondDeclaration(self, service.labels, service, idle, most) if idle else None

    def _sets(self, service: Inputs) -> bool:
        if any(service.is_unknown(name) for name in ("project", "location", "name")):
            return False
        project = service.text("project") or self.project
        return (project, service.text("location"), service.text("name")) == (self.project, self.location, self.service)


@dataclass(frozen=True, slots=True)
class BeyondDeclaration:
    """Instances that a scheduled minimum runs beyond a service's declaration; `service` is None for an unknown one."""

    minimum: ScheduledMinimum
    labels: Inputs
    service: GpuService | None
    idle_instances: int
    instances: int

    @property
    def hourly(self) -> Amount:
        """Cost per hour above that of the service's maximum."""
        return self._of(self.instances)

    @property
    def monthly(self) -> Amount:
        """The same, of a month."""
        return times(self.hourly, HOURS_PER_MONTH)

    @property
    def idle_hourly(self) -> Amount:
        """Cost per hour without traffic, above that of the service's minimum."""
        return self._of(self.idle_instances)

    def _of(self, count: int) -> Amount:
        if self.service is None:
            where = f"{self.minimum.service} in {self.minimum.location}"
            return Unpriced(f"the minimum of the service {where}, which the program does not declare")
        return times(self.service.instance_hourly, count) if count else Priced(Decimal(0))
