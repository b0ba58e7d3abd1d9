"""Cost of a door: its instances while they serve requests, and the requests. Nothing without traffic.

Owns the price rows that count. A part without a price makes the whole unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from bezel.planner.base.money import times, total
from bezel.planner.cost.service_cost import SERVICE, CostLine, own_row
from bezel_catalog import price

if TYPE_CHECKING:
    from bezel.planner.base.money import Amount
    from bezel.planner.base.settings import Settings

DOOR_BILLING = "request-based"  # its CPU runs while it serves
DOOR_CPU, DOOR_MEMORY_GIB, DOOR_INSTANCES = 1, Decimal("0.5"), 4


@dataclass(frozen=True, slots=True)
class DoorCost:
    """The cost of a door; amounts in USD, or unknown for a reason.

    Attributes:
        lines: vCPU and memory of an instance while it serves.
        requests: a million requests.
    """

    lines: tuple[CostLine, ...]
    requests: CostLine

    @property
    def hourly(self) -> Amount:
        """One instance that serves all the time, per hour."""
        return total(line.hourly for line in self.lines)

    @property
    def hourly_at_max(self) -> Amount:
        """All instances, likewise."""
        return times(self.hourly, DOOR_INSTANCES)


def door_cost(settings: Settings, *, region: str) -> DoorCost:
    """The cost of a door in a region."""

    def line(item: str, quantity: int | Decimal) -> CostLine:
        key = (SERVICE, item, region, DOOR_BILLING)
        return CostLine(item, quantity, own_row(settings.cost.prices, *key) or price(*key))

    return DoorCost((line("vcpu", DOOR_CPU), line("memory", DOOR_MEMORY_GIB)), line("requests", 1))
