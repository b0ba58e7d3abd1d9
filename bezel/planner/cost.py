"""What a Cloud Run GPU service costs while instances run: per hour, per month always on, at zero.

Owns the arithmetic over price rows and the gate on spending. A part without a price makes the whole unknown and
names the missing row; it never counts as 0. Disks, network, logs and storage are not included and said to be so.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from bezel.catalog import Price, Unpriced, price
from bezel.planner.problems import Problem, setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel.planner.settings import PriceRow

SERVICE = "cloud-run"
BILLING = "instance-based"  # the only billing that Cloud Run offers with a GPU
HOURS_PER_MONTH = 730
NOT_INCLUDED = ("weights in Cloud Storage", "network egress", "logs", "images in Artifact Registry")
USER_ROW = "your own row: "


@dataclass(frozen=True, slots=True)
class CostLine:
    """One billed part: `quantity` units at a price in USD per unit and second."""

    item: str
    quantity: int
    price: Price | Unpriced

    @property
    def hourly_usd(self) -> Decimal | None:
        """USD per hour, or None where the price is not known."""
        return None if isinstance(self.price, Unpriced) else self.quantity * self.price.usd_per_unit * 3600


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one service. USD; `hourly_usd` and what follows from it are None where a price is not known."""

    lines: tuple[CostLine, ...]
    min_instances: int
    max_instances: int

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the price rows that the catalogue does not hold."""
        return tuple(str(line.price) for line in self.lines if isinstance(line.price, Unpriced))

    @property
    def hourly_usd(self) -> Decimal | None:
        """One running instance, USD per hour."""
        hours = [line.hourly_usd for line in self.lines]
        return None if None in hours else sum((hour for hour in hours if hour is not None), Decimal(0))

    def _times(self, factor: int) -> Decimal | None:
        return None if self.hourly_usd is None else self.hourly_usd * factor

    @property
    def max_hourly_usd(self) -> Decimal | None:
        """All instances running, USD per hour."""
        return self._times(self.max_instances)

    @property
    def monthly_always_on_usd(self) -> Decimal | None:
        """One instance running all month (730 h), USD."""
        return self._times(HOURS_PER_MONTH)

    @property
    def idle_monthly_usd(self) -> Decimal | None:
        """A month without any traffic: the minimum instances, USD. 0 where the service scales to zero."""
        return Decimal(0) if self.min_instances == 0 else self._times(HOURS_PER_MONTH * self.min_instances)

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output; an unknown figure says "unknown"."""
        lines = [
            {
                "item": line.item,
                "quantity": line.quantity,
                "usd_per_hour": _rounded(line.hourly_usd, "0.000001"),
                "source": "missing" if isinstance(line.price, Unpriced) else line.price.source,
                "as_of": "unknown" if isinstance(line.price, Unpriced) else line.price.as_of,
            }
            for line in self.lines
        ]
        output: dict[str, object] = {
            "usd_per_hour": _rounded(self.hourly_usd, "0.0001"),
            "usd_per_month_always_on": _rounded(self.monthly_always_on_usd, "0.01"),
            "usd_per_month_without_traffic": _rounded(self.idle_monthly_usd, "0.01"),
            "usd_per_hour_all_instances": _rounded(self.max_hourly_usd, "0.0001"),
            "lines": lines,
            "not_included": list(NOT_INCLUDED),
        }
        if self.missing:
            output["missing_rows"] = list(self.missing)
        return output


def gpu_item(accelerator: str, *, zonal_redundancy: bool) -> str:
    """The price list's name of a GPU, which has another price with zonal redundancy."""
    return f"gpu {accelerator} {'zonal redundancy' if zonal_redundancy else 'no zonal redundancy'}"


def service_cost(
    accelerator: str,
    *,
    region: str,
    cpu: int,
    memory_gib: int,
    min_instances: int,
    max_instances: int,
    accelerator_count: int = 1,
    zonal_redundancy: bool = False,
    own_prices: Sequence[PriceRow] = (),
) -> Cost:
    """The cost of a Cloud Run service with a GPU.

    Args:
        accelerator: id of the catalogue.
        region: where it runs.
        cpu: vCPUs of one instance.
        memory_gib: memory of one instance.
        min_instances: instances that run without traffic.
        max_instances: most instances at a time.
        accelerator_count: GPUs of one instance.
        zonal_redundancy: whether capacity in another zone is reserved.
        own_prices: rows of the stack file; they win over the catalogue's and are marked as the user's.
    """
    own = {(row.item, row.region): row for row in own_prices}

    def line(item: str, quantity: int, unit: str) -> CostLine:
        row = own.get((item, region))
        if row is None:
            return CostLine(item, quantity, price(SERVICE, item, region, BILLING))
        usd = Decimal(str(row.usd_per_unit))
        mine = Price(SERVICE, item, region, BILLING, unit, usd, row.as_of, USER_ROW + row.source)
        return CostLine(item, quantity, mine)

    return Cost(
        lines=(
            line(gpu_item(accelerator, zonal_redundancy=zonal_redundancy), accelerator_count, "gpu-second"),
            line("vcpu", cpu, "vcpu-second"),
            line("memory", memory_gib, "gib-second"),
        ),
        min_instances=min_instances,
        max_instances=max_instances,
    )


def check_cost(cost: Cost, *, region: str, limit: float | None, priced_regions: Sequence[str]) -> list[Problem]:
    """Refuses what has no price and what costs more per hour than it may.

    Args:
        cost: of the service.
        region: of the service.
        limit: `cost.max_hourly_usd`, USD, or None for no limit.
        priced_regions: regions of the accelerator where every part has a price.
    """
    if cost.missing:
        there = f"choose a priced region ({', '.join(priced_regions)}) or " if priced_regions else ""
        return [
            Problem(
                setting("region"),
                region,
                "its price is unknown, so what it would cost cannot be held against any limit. "
                f"Missing price row: {'; '.join(cost.missing)}.",
                f"{there}add the row under `{setting('cost')}: {{prices: […]}}` with item, region, usd_per_unit, "
                "as_of and source.",
            )
        ]
    most = cost.max_hourly_usd
    if limit is None or most is None or most <= Decimal(str(limit)):
        return []
    fewer = int(Decimal(str(limit)) / most * cost.max_instances)
    repair = f"raise it to {most.quantize(Decimal('0.01'), rounding='ROUND_CEILING')}"
    if fewer:
        repair += f", or lower `{setting('scaling.max_instances')}` to {fewer}"
    return [
        Problem(
            setting("cost.max_hourly_usd"),
            f"{limit:g}",
            f"{_instances(cost.max_instances)} {most:.4f} USD per hour, more than may be spent.",
            f"{repair}.",
        )
    ]


def _instances(number: int) -> str:
    return "one running instance costs" if number == 1 else f"{number} running instances cost"


def _rounded(value: Decimal | None, step: str) -> float | str:
    if value is None:
        return "unknown"
    return float(value.quantize(Decimal(step), rounding="ROUND_HALF_UP"))
