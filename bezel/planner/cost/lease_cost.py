"""Cost of one leased machine: per hour and for a lease of given length. A missing price row makes it unknown."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from bezel.catalog import price
from bezel.planner.base.money import figure, times
from bezel.planner.cost.service_cost import CostLine, own_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel.planner.base.hardware import Leased
    from bezel.planner.base.money import Amount
    from bezel.planner.base.settings import PriceRow

NOT_INCLUDED = ("boot disk", "weights in Cloud Storage", "network egress", "logs")
Provisioning = Literal["flex-start", "on-demand", "spot"]


@dataclass(frozen=True, slots=True)
class LeaseCost:
    """Cost of one machine; amounts in USD, or unknown for a reason. A chip's price includes its share of the host."""

    line: CostLine

    @property
    def hourly(self) -> Amount:
        """The whole machine, per hour."""
        return self.line.hourly

    def lease(self, seconds: int) -> Amount:
        """A lease of `seconds` that runs to its end."""
        return times(self.hourly, Decimal(seconds) / 3600)

    def as_output(self, seconds: int) -> dict[str, object]:
        """Plain values for a stack's output, for leases of `seconds`."""
        return {
            "usd_per_hour": figure(self.hourly, 4),
            "usd_per_lease": figure(self.lease(seconds), 2),
            "lease_seconds": seconds,
            "lines": [self.line.as_output()],
            "not_included": list(NOT_INCLUDED),
        }


def lease_cost(
    hardware: Leased, *, zone: str, provisioning: Provisioning, own_prices: Sequence[PriceRow] = ()
) -> LeaseCost:
    """The cost of one machine.

    Args:
        hardware: what is leased.
        zone: of the machine, e.g. "us-east5-a"; the price is its region's.
        provisioning: how it is bought.
        own_prices: rows of the stack file; they win over the catalogue's and are marked as the user's.
    """
    region = zone.rpartition("-")[0]
    item, service = hardware.price_item, hardware.price_service
    row = own_row(own_prices, service, item, region, provisioning) or price(service, item, region, provisioning)
    return LeaseCost(CostLine(item, hardware.price_quantity, row))
