"""Cost of a Cloud Run GPU service while instances run: per hour, per month, per cold start.

Owns the arithmetic over price rows and the spending limits. A part without a price makes the whole unknown and names
the missing row; it never counts as 0. Disks, network, logs and storage are not included, and the output lists them as
such. Leaves the lease of a TPU to bezel.planner.cost.lease_cost and the price of a token to
bezel.planner.cost.token_cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from bezel.planner.base.environments import THROW_AWAY
from bezel.planner.base.money import (
    UNKNOWN,
    Amount,
    Priced,
    Unpriced,
    at_least,
    figure,
    lasting,
    round_usd,
    times,
    total,
)
from bezel.planner.base.problems import setting
from bezel.planner.base.repairs import to_number
from bezel.planner.cost.price_rows import UnpricedProblem, rows_to_add
from bezel_base.errors import Problem
from bezel_catalog import Price, price

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bezel.planner.base.settings import PriceRow
    from bezel_catalog import Unpriced as MissingRow

SERVICE = "cloud-run"
BILLING = "instance-based"  # Cloud Run's only billing with a GPU; it has no fee for a request
HOURS_PER_MONTH = 730
NOT_INCLUDED = ("weights in Cloud Storage", "network egress", "logs", "images in Artifact Registry")
ALERTS = "alerts of Cloud Monitoring (by condition and time series; price unknown)"
UPTIME = "uptime checks of Cloud Monitoring (about 53,000 a month; price unknown)"
_OWN_ROW = "your own row: "
# A fee for a request or for data is not a rate: it is shown for a million or a GiB and is not part of an hourly cost.
_UNITS_PER_HOUR = {"second": 3600, "hour": 1, "million requests": 1, "thousand operations": 1, "gib": 1}


@dataclass(frozen=True, slots=True)
class OwnPrice(Price):
    """A price row of the stack file."""


@dataclass(frozen=True, slots=True)
class CostLine:
    """One billed part: `quantity` units of the row, priced by the second or the hour."""

    item: str
    quantity: int | Decimal
    price: Price | MissingRow

    @property
    def hourly(self) -> Amount:
        """USD per hour."""
        if not isinstance(self.price, Price):
            return Unpriced(str(self.price))
        hours = _UNITS_PER_HOUR[self.price.unit.rpartition("-")[2]]
        return Priced(self.quantity * self.price.usd_per_unit * hours, self.price.is_derived)

    @property
    def kind(self) -> str:
        """Basis of the price: "list price", "derived", "own row" or "unknown"."""
        if not isinstance(self.price, Price):
            return UNKNOWN
        if isinstance(self.price, OwnPrice):
            return "own row"
        return "derived" if self.price.is_derived else "list price"

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output."""
        row = self.price if isinstance(self.price, Price) else None
        return {
            "item": self.item,
            "quantity": self.quantity if isinstance(self.quantity, int) else float(self.quantity),
            "usd_per_hour": figure(self.hourly, 6),
            "kind": self.kind,
            "source": row.source if row else "missing",
            "as_of": row.as_of if row else UNKNOWN,
        }


@dataclass(frozen=True, slots=True)
class ServiceCost:
    """The cost of one service, each amount in USD or unknown for a reason."""

    lines: tuple[CostLine, ...]
    min_instances: int
    """Instances that run without traffic; with a schedule, in its dearest hour."""
    max_instances: int
    average_min: Decimal | None = None
    """Mean of the instances that run without traffic under a schedule; None where it is `min_instances`."""
    boost: CostLine | None = None
    """vCPUs that startup CPU boost adds to an instance."""
    alerts: bool = False
    """Whether the stack has alerts, whose price is unknown."""
    uptime: bool = False
    """Whether it has an uptime check, likewise."""

    @property
    def not_included(self) -> tuple[str, ...]:
        """Parts of the bill that the figures leave out."""
        return (*NOT_INCLUDED, *([ALERTS] if self.alerts else []), *([UPTIME] if self.uptime else []))

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the price rows missing from the catalogue."""
        return tuple(str(line.price) for line in self.lines if not isinstance(line.price, Price))

    @property
    def hourly(self) -> Amount:
        """One running instance, per hour."""
        return total(line.hourly for line in self.lines)

    @property
    def hourly_at_min(self) -> Amount:
        """The instances that run without traffic, per hour; 0 where the service scales to zero."""
        return times(self.hourly, self.min_instances)

    @property
    def hourly_at_max(self) -> Amount:
        """All instances running, per hour."""
        return times(self.hourly, self.max_instances)

    @property
    def monthly_always_on(self) -> Amount:
        """One instance running all month (730 h)."""
        return times(self.hourly, HOURS_PER_MONTH)

    @property
    def monthly_at_max(self) -> Amount:
        """All instances running all month."""
        return times(self.hourly_at_max, HOURS_PER_MONTH)

    @property
    def monthly_without_traffic(self) -> Amount:
        """A month of the minimum instances alone, as a schedule sets them."""
        if self.average_min is None:
            return times(self.hourly_at_min, HOURS_PER_MONTH)
        return times(times(self.hourly, self.average_min), HOURS_PER_MONTH)

    @property
    def monthly_saved(self) -> Amount:
        """What a schedule saves in a month, against its dearest hour at all times."""
        always = times(self.hourly_at_min, HOURS_PER_MONTH)
        without = self.monthly_without_traffic
        if not isinstance(always, Priced) or not isinstance(without, Priced):
            return total([always, without])
        return Priced(always.usd - without.usd, always.derived)

    def start(self, seconds: float) -> Amount:
        """A start of `seconds`: an instance is paid for from its beginning, ready or not."""
        hourly = total([self.hourly, self.boost.hourly]) if self.boost else self.hourly
        return lasting(hourly, seconds)

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output; an unknown figure is "unknown"."""
        output: dict[str, object] = {
            "usd_per_hour": figure(self.hourly, 4),
            "usd_per_month_always_on": figure(self.monthly_always_on, 2),
            "usd_per_month_without_traffic": figure(self.monthly_without_traffic, 2),
            "usd_per_hour_min_instances": figure(self.hourly_at_min, 4),
            "usd_per_hour_all_instances": figure(self.hourly_at_max, 4),
            "lines": [line.as_output() for line in self.lines],
            "not_included": list(self.not_included),
        }
        if self.average_min is not None:
            output["usd_per_month_saved_by_schedule"] = figure(self.monthly_saved, 2)
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
    boost_cpu: int = 0,
    collector_cpu: int = 0,
    collector_memory_gib: int = 0,
    own_prices: Sequence[PriceRow] = (),
) -> ServiceCost:
    """The cost of a Cloud Run service with a GPU.

    Args:
        accelerator: its id in the catalogue.
        region: where it runs.
        cpu: vCPUs of one instance.
        memory_gib: memory of one instance.
        min_instances: instances that run without traffic.
        max_instances: most instances at a time.
        accelerator_count: GPUs of one instance.
        zonal_redundancy: whether capacity in another zone is reserved.
        boost_cpu: vCPUs that startup CPU boost adds to an instance.
        collector_cpu: vCPUs of the collector beside the server; 0 without one.
        collector_memory_gib: memory of it.
        own_prices: rows of the stack file; they win over the catalogue's and are marked as the user's.
    """

    def line(item: str, quantity: int, of: str = "") -> CostLine:
        key = (SERVICE, item, region, BILLING)
        return CostLine(f"{item}{of}", quantity, own_row(own_prices, *key) or price(*key))

    of_collector = (("vcpu", collector_cpu), ("memory", collector_memory_gib)) if collector_cpu else ()
    return ServiceCost(
        lines=(
            line(gpu_item(accelerator, zonal_redundancy=zonal_redundancy), accelerator_count),
            line("vcpu", cpu),
            line("memory", memory_gib),
            *(line(item, quantity, of=" of the collector") for item, quantity in of_collector),
        ),
        min_instances=min_instances,
        max_instances=max_instances,
        boost=line("vcpu", boost_cpu) if boost_cpu else None,
    )


def own_row(rows: Sequence[PriceRow], service: str, item: str, region: str, model: str) -> Price | None:
    """The stack file's own price of an item in a region, in the unit of `price_rows`; None without one."""
    row = next((row for row in reversed(rows) if (row.item, row.region) == (item, region)), None)
    if row is None:
        return None
    usd = Decimal(str(row.usd_per_unit))
    unit = "million requests" if item == "requests" else "second"
    return OwnPrice(service, item, region, model, unit, usd, row.as_of, _OWN_ROW + row.source)


def check_cost(
    cost: ServiceCost, *, region: str, limit: float | None, priced_regions: Sequence[str], key: str = "region"
) -> Iterator[Problem]:
    """Refuse a cost that is unknown, or above the limit per hour.

    Args:
        cost: of the service.
        region: of the service.
        limit: `cost.max_hourly_usd`, USD, or None for no limit.
        priced_regions: regions of the accelerator where every part has a price.
        key: path of the setting that names the region.
    """
    highest = cost.hourly_at_max
    if isinstance(highest, Unpriced):
        others = f"choose a priced region ({', '.join(priced_regions)}) or " if priced_regions else ""
        yield UnpricedProblem(
            setting(key),
            region,
            "its price is unknown, so the cost cannot be compared with any limit. "
            f"Missing price row: {highest.reason}.",
            others + rows_to_add(line.price for line in cost.lines if not isinstance(line.price, Price)),
        )
    elif limit is not None and highest.usd > Decimal(str(limit)):
        fewer = int(Decimal(str(limit)) / highest.usd * cost.max_instances)
        lower = f", or {to_number('lower', 'scaling.max_instances', fewer)}" if fewer else ""
        count = cost.max_instances
        instances = "one running instance costs" if count == 1 else f"{count} running instances cost"
        yield Problem(
            setting("cost.max_hourly_usd"),
            f"{limit:g}",
            f"{instances} {highest.usd:.4f} USD per hour, above the limit.",
            f"{to_number('raise', 'cost.max_hourly_usd', at_least(highest))}{lower}.",
        )


def check_idle_cost(cost: ServiceCost, *, environment: str, limit: float | None) -> Iterator[Problem]:
    """Refuse the cost of instances without traffic where the stack must scale to zero.

    Args:
        cost: of the service; check_cost reports one without a price.
        environment: `dev` scales to zero unless a limit is set.
        limit: `cost.max_idle_hourly_usd`, USD, or None where the stack file sets none.
    """
    idle, month = cost.hourly_at_min, cost.monthly_without_traffic
    allowed = 0 if limit is None and environment == THROW_AWAY else limit
    if not isinstance(idle, Priced) or not isinstance(month, Priced) or allowed is None:
        return
    if idle.usd > Decimal(str(allowed)):
        key = setting("cost.max_idle_hourly_usd")
        bound = "dev scales to zero" if limit is None else f"{key} is {limit:g}"
        prod = ", or set the environment to prod" if limit is None else ""
        zero = "set it to 0" if cost.average_min is not None else to_number("lower", "scaling.min_instances", 0)
        spend = to_number("raise", "cost.max_idle_hourly_usd", at_least(idle))
        in_schedule = "" if cost.average_min is None else " in the dearest hour of its schedule"
        yield Problem(
            setting("scaling.min_instances" if cost.average_min is None else "scaling.schedule"),
            cost.min_instances,
            f"without traffic it costs {round_usd(idle.usd, 4)} USD per hour{in_schedule}, {round_usd(month.usd, 2)} "
            f"per month; {bound}.",
            f"{zero}, or {spend}{prod}.",
        )
