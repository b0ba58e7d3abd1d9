"""Price of a found server and of the plan that replaces it, in USD. An unknown price is unknown, never 0. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.conversion.settings.machine_settings import gib_of, vcpus_of
from bezel.planner import LeasePlan
from bezel.planner.base.money import Amount, Priced, Unpriced, at_least, figure, text, times
from bezel.planner.cost.service_cost import HOURS_PER_MONTH, ServiceCost, service_cost
from bezel_catalog import accelerators

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.conversion.inputs.found_server import FoundServer
    from bezel.planner import AnyPlan

NOT_ON_CLOUD_RUN = "it runs on a machine whose price the input does not say"
_NO_PLAN = "the stack cannot be planned yet"


@dataclass(frozen=True, slots=True)
class Prices:
    """USD of one running instance an hour, of a month without traffic, and of all instances an hour."""

    hourly: Amount
    monthly_without_traffic: Amount
    hourly_at_max: Amount

    def as_output(self) -> dict[str, float | str]:
        """Plain values; an unknown one is "unknown"."""
        return {
            "usd_per_hour": figure(self.hourly, 4),
            "usd_per_month_without_traffic": figure(self.monthly_without_traffic, 2),
            "usd_per_hour_all_instances": figure(self.hourly_at_max, 4),
        }


@dataclass(frozen=True, slots=True)
class PriceChange:
    """What is paid today, and what the plan costs."""

    before: Prices
    after: Prices

    def lines(self) -> list[str]:
        """The change for people: a line for each figure, and the reasons of unknown ones."""
        rows = (
            ("one running instance, per hour", self.before.hourly, self.after.hourly, 4),
            ("a month without traffic", self.before.monthly_without_traffic, self.after.monthly_without_traffic, 2),
            ("all instances, per hour", self.before.hourly_at_max, self.after.hourly_at_max, 4),
        )
        lines = [f"{name}: {text(old, digits)} -> {text(new, digits)} USD" for name, old, new, digits in rows]
        reasons = dict.fromkeys(
            reason for row in rows for each in row[1:3] if isinstance(each, Unpriced) for reason in each.reasons
        )
        return [*lines, *(f"unknown: {reason}" for reason in reasons)]


def price_change(server: FoundServer, settings: Mapping[str, Any], plan: AnyPlan | None) -> PriceChange:
    """The prices of a found server and of its stack.

    Args:
        server: As it was found.
        settings: Of the stack.
        plan: None where the plan objects: a service of Cloud Run has a price all the same.
    """
    return PriceChange(_before(server), _after(settings, plan))


def _unknown(reason: str) -> Prices:
    return Prices(Unpriced(reason), Unpriced(reason), Unpriced(reason))


def _before(server: FoundServer) -> Prices:
    if not server.on_cloud_run:
        return _unknown(NOT_ON_CLOUD_RUN)
    cpu, gib = vcpus_of(server.cpu), gib_of(server.memory)
    missing = [
        name
        for name, value in (("region", server.region), ("CPU", cpu), ("memory", gib), ("type of GPU", server.gpu_type))
        if not value
    ]
    if missing or cpu is None or gib is None:
        return _unknown(f"the input does not say its {', '.join(missing)}")
    if server.gpu_type not in accelerators():
        return _unknown(f"no price of {server.gpu_type} is known")
    minimum = server.min_instances or 0
    cost = service_cost(
        server.gpu_type,
        region=server.region,
        cpu=cpu,
        memory_gib=-int(-gib // 1),
        min_instances=minimum,
        max_instances=server.max_instances or 1,
        accelerator_count=server.gpus or 1,
        # Cloud Run reserves GPUs in another zone unless a flag says otherwise.
        zonal_redundancy=server.zonal_redundancy is not False,
    )
    at_max: Amount = cost.hourly_at_max
    if server.max_instances is None:
        at_max = Unpriced("the input sets no maximum of instances")
    return Prices(cost.hourly, times(cost.hourly_at_min, HOURS_PER_MONTH), at_max)


def _after(settings: Mapping[str, Any], plan: AnyPlan | None) -> Prices:
    if isinstance(plan, LeasePlan):
        # Leases have no minimum: nothing runs without one, and what runs is paid for with or without requests.
        hourly = plan.cost.hourly
        return Prices(hourly, times(hourly, HOURS_PER_MONTH), hourly)
    cost = _service_cost(settings) if plan is None else plan.cost
    if cost is None:
        return _unknown(_NO_PLAN)
    return Prices(cost.hourly, cost.monthly_without_traffic, cost.hourly_at_max)


def _service_cost(settings: Mapping[str, Any]) -> ServiceCost | None:
    """The cost of a service by its settings; None for hardware that is no accelerator of Cloud Run."""
    gpu = accelerators().get(str(settings.get("accelerator")))
    if gpu is None:
        return None
    resources, scaling = settings.get("resources", {}), settings.get("scaling", {})
    return service_cost(
        gpu.id,
        region=str(settings.get("region", "")),
        cpu=resources.get("cpu", gpu.min_cpu),
        memory_gib=int(gib_of(str(resources.get("memory", ""))) or gpu.min_memory_gib),
        min_instances=scaling.get("min_instances", 0),
        max_instances=scaling.get("max_instances", 1),
        zonal_redundancy=bool(scaling.get("zonal_redundancy")),
    )


def cost_limits(settings: Mapping[str, Any]) -> dict[str, float]:
    """`bezel:cost` that just allows a service: what it costs with all instances, and without traffic."""
    cost = _service_cost(settings)
    limits: dict[str, float] = {}
    if cost is not None and isinstance(cost.hourly_at_max, Priced):
        limits["max_hourly_usd"] = float(at_least(cost.hourly_at_max))
    if cost is not None and cost.min_instances and isinstance(cost.hourly_at_min, Priced):
        limits["max_idle_hourly_usd"] = float(at_least(cost.hourly_at_min))
    return limits
