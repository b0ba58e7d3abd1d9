"""What a TPU slice costs: per hour and for a lease of given length. A row that is missing makes it unknown."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from bezel.catalog import price
from bezel.planner.cost import CostLine
from bezel.planner.money import figure, times

if TYPE_CHECKING:
    from bezel.catalog import TpuSlice
    from bezel.planner.money import Amount

SERVICE = "tpu"
NOT_INCLUDED = ("boot disk", "weights in Cloud Storage", "network egress", "logs")
Provisioning = Literal["flex-start", "on-demand", "spot"]


@dataclass(frozen=True, slots=True)
class LeaseCost:
    """The cost of one slice; amounts in USD, or unknown for a reason. The chips' price holds the host's."""

    line: CostLine

    @property
    def hourly(self) -> Amount:
        """All chips of the slice, per hour."""
        return self.line.hourly

    def lease(self, seconds: int) -> Amount:
        """A lease that runs to its end."""
        return times(self.hourly, Decimal(seconds) / 3600)

    def as_output(self, seconds: int) -> dict[str, object]:
        """Plain values for a stack's output, for leases of so many seconds."""
        return {
            "usd_per_hour": figure(self.hourly, 4),
            "usd_per_lease": figure(self.lease(seconds), 2),
            "lease_seconds": seconds,
            "lines": [self.line.as_output()],
            "not_included": list(NOT_INCLUDED),
        }


def lease_cost(tpu: TpuSlice, *, zone: str, provisioning: Provisioning) -> LeaseCost:
    """The cost of a slice.

    Args:
        tpu: the slice.
        zone: where it stands, e.g. "us-east5-a"; the price is its region's.
        provisioning: how it is bought.
    """
    item = f"{tpu.chip} chip"
    return LeaseCost(CostLine(item, tpu.chips, price(SERVICE, item, zone.rpartition("-")[0], provisioning)))
