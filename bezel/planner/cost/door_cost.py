"""Cost of a door: its instances while they serve requests, the requests, and those to its bucket. 0 without traffic.

Owns the price rows that count. A part without a price makes the whole unknown. Leaves out some kilobytes of storage.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from bezel.planner.base.money import figure, times, total
from bezel.planner.cost.service_cost import SERVICE, CostLine, own_row
from bezel_catalog import Price, price
from bezel_catalog.storage_locations import operation_prices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel.planner.base.money import Amount
    from bezel.planner.base.settings import PriceRow

DOOR_BILLING = "request-based"  # its CPU runs while it serves
DOOR_CPU, DOOR_MEMORY_GIB = 1, Decimal("0.5")
# An instance writes the use of keys, lists that of the others (a list costs as a write), and reads that and the keys,
# at most every five seconds.
_TURNS_PER_HOUR = 720


@dataclass(frozen=True, slots=True)
class DoorCost:
    """The cost of a door; amounts in USD, or unknown for a reason.

    Attributes:
        lines: vCPU and memory of an instance while it serves, and its requests to the bucket.
        requests: a million requests.
        max_instances: at a time.
    """

    lines: tuple[CostLine, ...]
    requests: CostLine
    max_instances: int

    @property
    def hourly(self) -> Amount:
        """One instance that serves all the time, per hour."""
        return total(line.hourly for line in self.lines)

    @property
    def hourly_at_max(self) -> Amount:
        """All instances, likewise."""
        return times(self.hourly, self.max_instances)

    @property
    def parts(self) -> tuple[CostLine, ...]:
        """All parts that need a price row."""
        return (*self.lines, self.requests)

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the price rows that the catalogue does not hold."""
        return tuple(str(line.price) for line in self.parts if not isinstance(line.price, Price))

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output; an unknown figure is "unknown"."""
        return {
            "usd_per_hour_serving": figure(self.hourly, 4),
            "usd_per_hour_all_instances": figure(self.hourly_at_max, 4),
            "usd_per_hour_without_requests": 0.0,
            "usd_per_million_requests": figure(self.requests.hourly, 2),
        }


def door_cost(*, region: str, max_instances: int, own_prices: Sequence[PriceRow] = ()) -> DoorCost:
    """The cost of a door.

    Args:
        region: where it runs.
        max_instances: at a time.
        own_prices: rows of the stack file; they win over the catalogue's and are marked as the user's.
    """

    def line(item: str, quantity: int | Decimal) -> CostLine:
        key = (SERVICE, item, region, DOOR_BILLING)
        return CostLine(f"{item} of the door", quantity, own_row(own_prices, *key) or price(*key))

    return DoorCost(
        (
            line("vcpu", DOOR_CPU),
            line("memory", DOOR_MEMORY_GIB),
            *(
                CostLine(f"thousand {item} of its bucket", Decimal(number) / 1000, _operations(item, region))
                for item, number in (("writes", 2 * _TURNS_PER_HOUR), ("reads", max_instances * _TURNS_PER_HOUR))
            ),
        ),
        line("requests", 1),
        max_instances,
    )


def _operations(item: str, region: str) -> Price:
    row = operation_prices()[item]
    return Price(
        "storage", item, region, "standard", "thousand operations", row.usd_per_thousand, row.as_of, row.source
    )
