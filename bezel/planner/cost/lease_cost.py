"""Cost of leases: of one machine, and of a stack with its machines in each possible zone and its gateway.

Owns the sums, their bounds and the spending limits. Which zone grants a lease is not known beforehand, so the most
expensive counts. A missing price row makes the whole unknown. Disks, storage, network and logs are not included.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from bezel.planner.base.money import Priced, Unpriced, at_least, figure, lasting, most_expensive, text, times, total
from bezel.planner.base.problems import setting
from bezel.planner.base.repairs import to_number
from bezel.planner.cost.address_cost import address_cost
from bezel.planner.cost.price_rows import UnpricedProblem, rows_to_add
from bezel.planner.cost.service_cost import ALERTS, HOURS_PER_MONTH, SERVICE, CostLine, own_row
from bezel_base.errors import Problem
from bezel_catalog import Price, price

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bezel.planner.base.hardware import LeasedHardware
    from bezel.planner.base.money import Amount
    from bezel.planner.base.settings import Cost, PriceRow
    from bezel.planner.cost.address_cost import AddressCost
    from bezel.planner.cost.door_cost import DoorCost
    from bezel.planner.cost.service_cost import ServiceCost

NOT_INCLUDED = ("boot disk", "weights in Cloud Storage", "network egress", "logs")
Provisioning = Literal["flex-start", "on-demand", "spot"]
GATEWAY_BILLING = "request-based"
# As in components/bezel_components/identity_gateway.py; a second instance takes over while the first is replaced.
GATEWAY_CPU, GATEWAY_MEMORY_GIB, GATEWAY_INSTANCES = 1, Decimal("0.5"), 2


def lease_cost(
    hardware: LeasedHardware, *, zone: str, provisioning: Provisioning, own_prices: Sequence[PriceRow] = ()
) -> CostLine:
    """The cost of one machine; a chip's price includes its share of the host.

    Args:
        hardware: what is leased.
        zone: of the machine, e.g. "us-east5-a"; the price is its region's.
        provisioning: how it is bought.
        own_prices: rows of the stack file; they win over the catalogue's and are marked as the user's.
    """
    region = zone.rpartition("-")[0]
    item, service = hardware.price_item, hardware.price_service
    row = own_row(own_prices, service, item, region, provisioning) or price(service, item, region, provisioning)
    return CostLine(item, hardware.price_quantity, row)


@dataclass(frozen=True, slots=True)
class LeaseTotal:
    """All leases of a stack and its gateway; amounts in USD, or unknown for a reason.

    Attributes:
        by_zone: one machine in each zone, in the order of preference.
        count: number of machines.
        run_seconds: length of a lease.
        gateway_lines: cost per hour of a gateway instance while it serves requests.
        requests: cost of a million requests.
        share: share of time in the hours of the leases; None without hours.
        alerts: whether the stack has alerts, whose price is unknown.
        address: cost of the address; None without one.
        fallback: what serves while no lease does; None without one.
        door: of the door; None without one.
    """

    by_zone: Mapping[str, CostLine]
    count: int
    run_seconds: int
    gateway_lines: tuple[CostLine, ...]
    requests: CostLine
    share: Decimal | None = None
    alerts: bool = False
    address: AddressCost | None = None
    fallback: ServiceCost | None = None
    door: DoorCost | None = None

    @property
    def not_included(self) -> tuple[str, ...]:
        """Parts of the bill that the figures leave out."""
        return (*NOT_INCLUDED, *([ALERTS] if self.alerts else []))

    @property
    def hourly(self) -> Amount:
        """One machine, per hour, in the most expensive zone."""
        return most_expensive(cost.hourly for cost in self.by_zone.values())

    @property
    def machines_hourly(self) -> Amount:
        """All machines, per hour."""
        return times(self.hourly, self.count)

    @property
    def machines_lease(self) -> Amount:
        """All machines until their leases end."""
        return lasting(self.machines_hourly, self.run_seconds)

    @property
    def machines_monthly(self) -> Amount | None:
        """All machines in the hours of a month; None without hours: then a deploy requests each lease."""
        if self.share is None:
            return None
        return times(times(self.machines_hourly, self.share), HOURS_PER_MONTH)

    @property
    def monthly_saved(self) -> Amount | None:
        """What the hours save in a month, against machines that are leased at all times; None without hours."""
        if self.share is None:
            return None
        return times(times(self.machines_hourly, 1 - self.share), HOURS_PER_MONTH)

    @property
    def gateway_hourly(self) -> Amount:
        """Maximum of the gateway: all instances, each serving requests all the time. 0 without traffic."""
        return times(total(line.hourly for line in self.gateway_lines), GATEWAY_INSTANCES)

    @property
    def hourly_at_max(self) -> Amount:
        """Machines and what is in front of them, per hour, without the fee for a request and for data."""
        return total((self.machines_hourly, *self._in_front))

    @property
    def fallback_at_max(self) -> Amount | None:
        """All of the fallback and of what is in front of it, per hour, while no lease is there; None without one."""
        return None if self.fallback is None else total((self.fallback.hourly_at_max, *self._in_front))

    @property
    def _in_front(self) -> tuple[Amount, ...]:
        """Gateway, address and door, per hour, with all instances serving."""
        address = () if self.address is None else (self.address.hourly,)
        return (self.gateway_hourly, *address, *(() if self.door is None else (self.door.hourly_at_max,)))

    @property
    def hourly_at_rest(self) -> Amount:
        """Address and the fallback's minimum, per hour, without a lease and without requests."""
        fallback = () if self.fallback is None else (self.fallback.hourly_at_min,)
        return total((*fallback, self.address.hourly) if self.address else fallback)

    @property
    def hourly_in_a_change(self) -> Amount:
        """What costs per hour while the fallback takes over from the machines, or they from it: all of both."""
        return self.hourly_at_max if self.fallback is None else total((self.hourly_at_max, self.fallback.hourly_at_max))

    @property
    def lease_at_max(self) -> Amount:
        """Machines and what is in front of them until the leases end, without the fee for a request and for data."""
        return lasting(self.hourly_at_max, self.run_seconds)

    @property
    def parts(self) -> list[CostLine]:
        """All parts that need a price row."""
        door = () if self.door is None else self.door.lines
        return [*self.by_zone.values(), *self.gateway_lines, self.requests, *door]

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the price rows that the catalogue does not hold."""
        return tuple(dict.fromkeys(part.hourly.reason for part in self.parts if isinstance(part.hourly, Unpriced)))

    def start(self, seconds: float) -> Amount:
        """A start of `seconds` on all machines, which are paid for from its beginning."""
        return lasting(self.machines_hourly, seconds)

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output."""
        monthly = {"usd_per_month": self.machines_monthly, "usd_per_month_saved_by_hours": self.monthly_saved}
        return {
            "usd_per_hour": figure(self.machines_hourly, 4),
            **{name: figure(amount, 2) for name, amount in monthly.items() if amount is not None},
            "usd_per_lease": figure(self.machines_lease, 2),
            "lease_seconds": self.run_seconds,
            "usd_per_hour_by_zone": {
                zone: figure(times(cost.hourly, self.count), 4) for zone, cost in self.by_zone.items()
            },
            "usd_per_hour_with_gateway": figure(self.hourly_at_max, 4),
            "usd_per_lease_with_gateway": figure(self.lease_at_max, 2),
            "usd_per_million_requests": figure(self.requests.hourly, 2),
            **self._fallback_as_output(),
            **({"door": self.door.as_output()} if self.door else {}),
            "lines": [line.as_output() for line in (*self.by_zone.values(), *self.gateway_lines)],
            "not_included": list(self.not_included),
        }

    def _fallback_as_output(self) -> dict[str, object]:
        if self.fallback is None or self.fallback_at_max is None:
            return {}
        return {
            "usd_per_hour_of_fallback": figure(self.fallback_at_max, 4),
            "usd_per_hour_at_rest": figure(self.hourly_at_rest, 4),
            "usd_per_hour_in_a_change": figure(self.hourly_in_a_change, 4),
        }


def lease_total(
    hardware: LeasedHardware,
    *,
    zones: Sequence[str],
    provisioning: Provisioning,
    count: int,
    run_seconds: int,
    gateway_region: str,
    share: Decimal | None = None,
    own_prices: Sequence[PriceRow] = (),
    alerts: bool = False,
    has_address: bool = False,
) -> LeaseTotal:
    """The cost of a stack.

    Args:
        hardware: what is leased.
        zones: possible zones, at least one.
        provisioning: how it is bought.
        count: machines.
        run_seconds: length of a lease.
        gateway_region: where the gateway runs.
        share: share of time in the hours of the leases; None without hours.
        own_prices: rows of the stack file; they win over the catalogue's and are marked as the user's.
        alerts: whether the stack has alerts.
        has_address: whether the gateway has an address.
    """

    def part(item: str, quantity: int | Decimal) -> CostLine:
        key = (SERVICE, item, gateway_region, GATEWAY_BILLING)
        return CostLine(item, quantity, own_row(own_prices, *key) or price(*key))

    return LeaseTotal(
        by_zone={
            zone: lease_cost(hardware, zone=zone, provisioning=provisioning, own_prices=own_prices) for zone in zones
        },
        count=count,
        run_seconds=run_seconds,
        gateway_lines=(part("vcpu", GATEWAY_CPU), part("memory", GATEWAY_MEMORY_GIB)),
        requests=part("requests", 1),
        share=share,
        alerts=alerts,
        address=address_cost([gateway_region]) if has_address else None,
    )


def check_lease_total(cost: LeaseTotal, limits: Cost, *, priced: Sequence[str]) -> Iterator[Problem]:
    """Refuse a cost that is unknown, or above the limit per hour or per lease.

    Args:
        cost: of the stack.
        limits: spending limits.
        priced: zones where the hardware has a price.
    """
    if cost.missing:
        unpriced = [zone for zone, machine in cost.by_zone.items() if isinstance(machine.hourly, Unpriced)]
        others = f"choose zones that have one ({', '.join(priced)}), or " if unpriced and priced else ""
        yield UnpricedProblem(
            setting("lease.zones" if unpriced else "region"),
            ", ".join(unpriced) or "of the gateway",
            "the price there is unknown, so the cost cannot be compared with any limit. "
            f"Missing price row: {'; '.join(cost.missing)}.",
            others + rows_to_add(line.price for line in cost.parts if not isinstance(line.price, Price)),
        )
        return
    fewer = ", or lease fewer machines" if cost.count > 1 else ""
    instances = f", or lower {setting('fallback.max_instances')}"
    at_once = fewer + (instances if cost.fallback and cost.fallback.max_instances > 1 else "")
    for key, limit, amount, per, less in (
        ("max_hourly_usd", limits.max_hourly_usd, cost.hourly_in_a_change, "per hour", at_once),
        (
            "max_lease_usd",
            limits.max_lease_usd,
            cost.lease_at_max,
            "until the leases end",
            f"{fewer}, or lower {setting('lease.duration')}",
        ),
    ):
        if limit is not None and isinstance(amount, Priced) and amount.usd > Decimal(str(limit)):
            yield Problem(
                setting(f"cost.{key}"),
                f"{limit:g}",
                f"{_parts_of(cost, key)} cost up to {text(amount, 4)} USD {per}, above the limit.",
                f"{to_number('raise', f'cost.{key}', at_least(amount))}{less}.",
            )


def _parts_of(cost: LeaseTotal, key: str) -> str:
    """What a limit bounds together."""
    parts = ["machines", "gateway"]
    if cost.fallback and key == "max_hourly_usd":
        parts.append("fallback")
    parts += [*(["address"] if cost.address else []), *(["door"] if cost.door else [])]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
