"""Cost of a stack of several parts: its service in each region, address and door; the sums, and the spending limits.

An amount that is unknown in one part makes the sum unknown. Leaves one service to bezel.planner.cost.service_cost,
which checks the limits of a stack that is one service.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from bezel.planner.base.environments import THROW_AWAY
from bezel.planner.base.money import Priced, at_least, figure, round_usd, times, total
from bezel.planner.base.problems import setting
from bezel.planner.base.repairs import to_number
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from bezel_base.errors import Problem
from bezel_catalog import Price

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bezel.planner.base.money import Amount
    from bezel.planner.base.settings import Cost
    from bezel.planner.cost.address_cost import AddressCost
    from bezel.planner.cost.door_cost import DoorCost
    from bezel.planner.cost.service_cost import ServiceCost


@dataclass(frozen=True, slots=True)
class TotalCost:
    """The cost of all parts of a stack.

    Attributes:
        services: region -> the service there, the first region first.
        address: of the address; None without one.
        door: of the door, which costs nothing without requests; None without one.
    """

    services: Mapping[str, ServiceCost]
    address: AddressCost | None = None
    door: DoorCost | None = None

    @property
    def is_one_service(self) -> bool:
        """Whether the stack is a service in one region, and nothing else."""
        return len(self.services) == 1 and self.address is None and self.door is None

    @property
    def first(self) -> ServiceCost:
        """The service in the first region."""
        return next(iter(self.services.values()))

    @property
    def hourly_at_max(self) -> Amount:
        """All instances of all regions and of the door, and the address without its traffic, per hour."""
        parts = self._sum(lambda cost: cost.hourly_at_max, lambda cost: cost.hourly)
        return total((parts, self.door.hourly_at_max)) if self.door else parts

    @property
    def monthly_at_max(self) -> Amount:
        """The same all month."""
        return times(self.hourly_at_max, HOURS_PER_MONTH)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the price rows missing from the catalogue."""
        rules = [self.address.rule] if self.address else []
        return (
            *(reason for cost in self.services.values() for reason in cost.missing),
            *(str(line.price) for line in rules if not isinstance(line.price, Price)),
            *(self.door.missing if self.door else ()),
        )

    @property
    def hourly_at_min(self) -> Amount:
        """The instances that run without traffic, and the address, per hour."""
        return self._sum(lambda cost: cost.hourly_at_min, lambda cost: cost.hourly)

    @property
    def monthly_without_traffic(self) -> Amount:
        """A month without traffic."""
        return self._sum(lambda cost: cost.monthly_without_traffic, lambda cost: cost.monthly)

    def _sum(self, of_service: Callable[[ServiceCost], Amount], of_address: Callable[[AddressCost], Amount]) -> Amount:
        parts = [of_service(cost) for cost in self.services.values()]
        return total([*parts, of_address(self.address)] if self.address else parts)

    @property
    def parts(self) -> str:
        """What is summed, in words."""
        beside = [*(["the address"] if self.address else []), *(["the door"] if self.door else [])]
        return " and ".join([", ".join([*self.services, *beside[:-1]]), *beside[-1:]])

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output: the sums, and each part."""
        return {
            "usd_per_hour_all_instances": figure(self.hourly_at_max, 4),
            "usd_per_hour_min_instances": figure(self.hourly_at_min, 4),
            "usd_per_month_without_traffic": figure(self.monthly_without_traffic, 2),
            "regions": {region: cost.as_output() for region, cost in self.services.items()},
            **({"address": self.address.as_output()} if self.address else {}),
            **({"door": self.door.as_output()} if self.door else {}),
        }


def check_total(cost: TotalCost, limits: Cost, *, environment: str) -> Iterator[Problem]:
    """Refuse a sum above the limits per hour, with all instances running and without traffic.

    An unknown sum is not judged here: `check_cost` reports the part whose price is unknown.

    Args:
        cost: of a stack of several parts.
        limits: spending limits.
        environment: `dev` scales to zero in each region unless a limit is set; an address runs at all times.
    """
    highest, idle, month = cost.hourly_at_max, cost.hourly_at_min, cost.monthly_without_traffic
    limit = limits.max_hourly_usd
    if limit is not None and isinstance(highest, Priced) and highest.usd > Decimal(str(limit)):
        count, several = cost.first.max_instances, len(cost.services) > 1
        each = f"{count} {'instance' if count == 1 else 'instances'}{' in each region' if several else ''}"
        fewer = _instances_within(cost, Decimal(str(limit)))
        lower = f", {to_number('lower', 'scaling.max_instances', fewer)}" if fewer else ""
        yield Problem(
            setting("cost.max_hourly_usd"),
            f"{limit:g}",
            f"with {each}, {cost.parts} cost {round_usd(highest.usd, 4)} USD per hour together, above the limit.",
            f"{to_number('raise', 'cost.max_hourly_usd', at_least(highest))}{lower}"
            f"{', or name fewer regions' if several else ', or remove the address' if cost.address else ''}.",
        )
    allowed = limits.max_idle_hourly_usd
    if not isinstance(idle, Priced) or not isinstance(month, Priced):
        return
    if allowed is None and environment == THROW_AWAY and cost.first.min_instances:
        yield _idle_problem(cost, idle, month, "dev scales to zero", ", or set the environment to prod")
    elif allowed is not None and idle.usd > Decimal(str(allowed)):
        yield _idle_problem(cost, idle, month, f"{setting('cost.max_idle_hourly_usd')} is {allowed:g}", "")


def _idle_problem(cost: TotalCost, idle: Priced, month: Priced, bound: str, prod: str) -> Problem:
    minimum, of_schedule = cost.first.min_instances, cost.first.average_min is not None
    zero = "set it to 0" if of_schedule else to_number("lower", "scaling.min_instances", 0)
    spend = to_number("raise", "cost.max_idle_hourly_usd", at_least(idle))
    in_schedule = " in the dearest hour of its schedule" if of_schedule else ""
    return Problem(
        setting("scaling.schedule" if of_schedule else "scaling.min_instances" if minimum else "address.domain"),
        minimum or "(set)",
        f"without traffic {cost.parts} cost {round_usd(idle.usd, 4)} USD per hour together{in_schedule}, "
        f"{round_usd(month.usd, 2)} per month; {bound}.",
        f"{f'{zero}, or ' if minimum else ''}{spend}{prod}.",
    )


def _instances_within(cost: TotalCost, limit: Decimal) -> int:
    """The most instances in each region whose sum is within a limit; 0 where not even one is."""
    one = total(service.hourly for service in cost.services.values())
    beside = [cost.address.hourly] if cost.address else []
    fixed = total([*beside, cost.door.hourly_at_max] if cost.door else beside)
    if not isinstance(one, Priced) or not isinstance(fixed, Priced) or not one.usd:
        return 0
    return max(0, int((limit - fixed.usd) / one.usd))
