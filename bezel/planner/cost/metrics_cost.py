"""Cost of vLLM's figures over time: samples that servers write, and reads of the collector's configuration.

Owns the volume and its price. The collector's vCPU and memory are parts of a service's instance
(`bezel.planner.cost.service_cost`). Leaves reading out: a dashboard or alert reads some series at a time, and the first
million of a month is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.base.money import Priced, total
from bezel_catalog.metrics import SAMPLES, monitoring_usd
from bezel_catalog.volume_prices.secret_manager import ACCESSES, secret_price

if TYPE_CHECKING:
    from decimal import Decimal

    from bezel.planner.base.money import Amount

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class MetricsCost:
    """The samples of one server in an hour, and how often its collector reads its configuration.

    Attributes:
        highest: every kept series there, and no bucket of a histogram empty.
        typical: as a real server under a mixed load had them.
        reads: of the mounted secret with the configuration.
    """

    highest: int
    typical: int
    reads: int

    def millions(self, hours: Decimal) -> Decimal:
        """Millions of samples at most, of servers that run so many hours in all."""
        return self.highest * hours / _MILLION

    def usd(self, hours: Decimal) -> Amount:
        """The price of samples and reads at most, in USD, as if nothing else of the billing account had any."""
        return total((self.usd_of_samples(hours), self.usd_of_reads(hours)))

    def usd_of_samples(self, hours: Decimal) -> Amount:
        """The samples' part of it."""
        return Priced(monitoring_usd(SAMPLES, self.millions(hours)))

    def usd_of_reads(self, hours: Decimal) -> Amount:
        """The part of the reads of the configuration."""
        return Priced(secret_price(ACCESSES).monthly_usd(self.reads * hours))

    def usd_as_recorded(self, hours: Decimal) -> Amount:
        """The price of the samples that a recorded server had."""
        return Priced(monitoring_usd(SAMPLES, self.typical * hours / _MILLION))
