"""Cost of an address: its forwarding rule by the hour, and the data that its load balancer passes on.

Owns the price rows that count. Leaves out what Google bills apart: transfer to the internet, a DNS zone and its
queries, Cloud Armor. Certificates of Certificate Manager and an address in use cost nothing in addition.

Facts: the first five global forwarding rules of a project cost one price together, each further one another; data is
billed by the region that processes it (price page of Cloud Load Balancing, November 2026).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.base.money import figure, times, total
from bezel.planner.cost.service_cost import HOURS_PER_MONTH, CostLine
from bezel_catalog.load_balancing import DATA_IN, DATA_OUT, FIRST_RULES, FURTHER_RULE, load_balancing_price

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bezel.planner.base.money import Amount

NOT_INCLUDED = ("transfer from the load balancer to the internet", "DNS zone and queries")


@dataclass(frozen=True, slots=True)
class AddressCost:
    """The cost of one address; amounts in USD, or unknown for a reason.

    Attributes:
        rule: the forwarding rule, as the first of the project's.
        further_rule: the same where the project has five or more already.
        data: region -> a GiB that reaches its service, and one that leaves it.
    """

    rule: CostLine
    further_rule: CostLine
    data: Mapping[str, tuple[CostLine, CostLine]]

    @property
    def hourly(self) -> Amount:
        """The address without traffic, per hour."""
        return self.rule.hourly

    @property
    def monthly(self) -> Amount:
        """The address without traffic, per month."""
        return times(self.hourly, HOURS_PER_MONTH)

    def gib(self, region: str) -> Amount:
        """A GiB in and a GiB out of a region's service."""
        return total(line.hourly for line in self.data[region])

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output; an unknown figure is "unknown"."""
        return {
            "usd_per_hour": figure(self.hourly, 4),
            "usd_per_month": figure(self.monthly, 2),
            "usd_per_gib_in_and_out": {region: figure(self.gib(region), 4) for region in self.data},
            "not_included": list(NOT_INCLUDED),
        }


def address_cost(regions: Iterable[str]) -> AddressCost:
    """The cost of an address in front of services in these regions."""

    def data(item: str, region: str) -> CostLine:
        return CostLine(item, 1, load_balancing_price(item, region))

    return AddressCost(
        CostLine(FIRST_RULES, 1, load_balancing_price(FIRST_RULES)),
        CostLine(FURTHER_RULE, 1, load_balancing_price(FURTHER_RULE)),
        {region: (data(DATA_IN, region), data(DATA_OUT, region)) for region in regions},
    )
