"""Cost of vLLM's figures over time: the collector's part of an instance.

Owns the price rows that count. A part without a price makes the whole unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.base.money import total
from bezel.planner.cost.service_cost import BILLING, SERVICE, CostLine, own_row
from bezel_catalog import price

if TYPE_CHECKING:
    from decimal import Decimal

    from bezel.planner.base.money import Amount
    from bezel.planner.base.settings import Settings


@dataclass(frozen=True, slots=True)
class MetricsCost:
    """The cost of the collector; `lines` are its vCPUs and memory in one instance, empty on leased machines."""

    lines: tuple[CostLine, ...]

    @property
    def hourly(self) -> Amount:
        """The collector of one running instance, per hour."""
        return total(line.hourly for line in self.lines)


def metrics_cost(settings: Settings, *, cpu: Decimal, memory_gib: Decimal) -> MetricsCost:
    """The cost of a collector of this size in the stack's first region."""

    def line(item: str, quantity: Decimal) -> CostLine:
        key = (SERVICE, item, settings.region, BILLING)
        return CostLine(item, quantity, own_row(settings.cost.prices, *key) or price(*key))

    return MetricsCost((line("vcpu", cpu), line("memory", memory_gib)) if cpu else ())
