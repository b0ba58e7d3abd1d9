"""Cost of a stack before it is deployed: per hour, month, lease, cold start and million tokens, with its sources.

Of a deployed stack with keys it also shows each team's share of the month so far. What a deployed stack has cost so far
is `status`; other machines are `compare`. Leaves out how a price is found: see
bezel.planner.cost.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from pydantic import Field

from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import Stack
from bezel.operations.context import Context
from bezel.operations.keys.team_cost import TeamCost, team_cost
from bezel.operations.plan.plan import plan_of
from bezel.operations.results import Result, Usd
from bezel.planner import AnyPlan, LeasePlan, Plan
from bezel.planner.assemble.plan import RegionPlan
from bezel.planner.base.money import UNKNOWN, Amount, Priced, round_usd, total
from bezel.planner.cost.address_cost import NOT_INCLUDED
from bezel.planner.cost.address_cost import AddressCost as PlannedAddressCost
from bezel.planner.cost.lease_cost import LeaseTotal
from bezel.planner.cost.service_cost import CostLine as PlannedLine
from bezel.planner.cost.token_cost import POOLED_DIGITS
from bezel_base.errors import UserError
from bezel_base.terminal.blocks import Block, Line, NamedValues, Role
from bezel_catalog import Price as PriceRow

_SMALL = Decimal("0.001")


class CostArguments(Arguments):
    """Which stack."""

    stack: Stack = Field(max_length=100)


class Range(Result):
    """An amount in USD between the fast and the slow end of an estimate; null if unknown."""

    low: Usd | None
    high: Usd | None


class CostLine(Result):
    """A part of an instance, a machine, an address or a door."""

    item: str
    quantity: float
    usd_per_hour: Usd | None = Field(description="of the whole quantity; null if unknown")
    kind: str = Field(description="list price, derived, or the stack file's own")
    source: str
    as_of: str
    region: str | None = Field(None, description="region of the instance, where the stack has several")


class RegionCost(Result):
    """Cost of the service in one of several regions."""

    region: str
    usd_per_hour: Usd | None = Field(description="one instance")
    usd_per_hour_at_most: Usd | None = Field(description="all instances")
    usd_per_hour_idle: Usd | None = Field(description="the minimum of instances")
    usd_per_month_without_traffic: Usd | None = Field(description="the minimum of instances as a schedule sets it")


class AddressCost(Result):
    """Cost of the address with a name of its own."""

    usd_per_hour: Usd | None = Field(description="its forwarding rule, as one of the project's first five")
    usd_per_gib: dict[str, Usd | None] = Field(
        description="region -> a GiB that reaches its service and one that leaves it, together"
    )
    not_included: tuple[str, ...]


class Cost(Result):
    """Cost of a stack as its file declares it. An unknown amount is null, never 0."""

    stack: str
    project: str
    usd_per_hour: Usd | None = Field(
        description="one instance, of several regions in the first; or all leased machines"
    )
    usd_per_hour_at_most: Usd | None = Field(
        description="all instances of all regions with the address, or all leased machines with their gateway"
    )
    usd_per_hour_idle: Usd | None = Field(description="without traffic: the minimum of instances, or all machines")
    usd_per_month_at_most: Usd | None = Field(description="all instances for 730 hours; null for leases, which end")
    usd_per_month_without_traffic: Usd | None = Field(
        description="the minimum of instances as a schedule sets it, or all machines in the hours of their leases; "
        "null for leases without hours, which end"
    )
    usd_per_month_saved: Usd | None = Field(
        description="what the schedule or the hours save, against its most expensive hour at all times; null without"
    )
    usd_per_lease: Usd | None = Field(description="all leased machines with their gateway until the end; null without")
    usd_per_hour_of_fallback: Usd | None = Field(
        description="all instances of the fallback and the gateway, while no lease serves; null without a fallback"
    )
    usd_per_hour_in_a_change: Usd | None = Field(
        description="leases, gateway and fallback, while one takes over from the other; null without a fallback"
    )
    usd_per_hour_of_door: Usd | None = Field(
        None, description="all instances of the door for keys, each serving all the time; null without a door"
    )
    usd_of_samples: dict[str, Usd | None] = Field(
        {},
        description="period -> samples of vLLM's figures over time in it, at most, with the reads of their collectors' "
        "configuration; not in the other amounts",
    )
    lease_seconds: int | None = Field(description="run duration of a lease; null without")
    usd_per_cold_start: Range | None = Field(description="a start of an instance or of all machines")
    usd_of_transfer_per_cold_start: Usd | None = Field(
        description="for reading the weights from their bucket, beside the start; null if unknown"
    )
    usd_per_million_input_tokens: Range | None
    usd_per_million_output_tokens: Range | None = Field(description="null for a model that pools: it generates none")
    tokens_basis: str | None = Field(description="load and utilisation that the cost of tokens is estimated for")
    lines: tuple[CostLine, ...] = Field(
        description="parts of an instance, or of a machine in each zone and its gateway"
    )
    not_included: tuple[str, ...]
    missing: tuple[str, ...] = Field(description="price rows that the catalogue does not hold")
    regions: tuple[RegionCost, ...] = Field((), description="the service in each of several regions; () for one")
    address: AddressCost | None = Field(None, description="the address without its data; null without one")
    by_team: TeamCost | None = Field(
        None, description="each team's share of the month so far, by key; null for a stack without keys or a deploy"
    )

    def page(self) -> tuple[Block, ...]:
        """The amounts, then the parts with their sources."""
        ends_for_good = self.lease_seconds is not None and self.usd_per_month_without_traffic is None
        rows = [
            ("per hour", _usd(self.usd_per_hour)),
            *((f"per hour at most in {each.region}", _usd(each.usd_per_hour_at_most)) for each in self.regions),
            *(() if self.address is None else self._address_rows(self.address)),
            ("per hour at most", _usd(self.usd_per_hour_at_most)),
            ("per hour without traffic", _usd(self.usd_per_hour_idle)),
            ("per month at most", None if self.lease_seconds else _usd(self.usd_per_month_at_most)),
            ("per month without traffic", None if ends_for_good else _usd(self.usd_per_month_without_traffic)),
            ("saved per month", None if self.usd_per_month_saved is None else _usd(self.usd_per_month_saved)),
            *((name, _usd(amount)) for name, amount in self._states() if amount is not None),
            ("per lease", _usd(self.usd_per_lease) if self.lease_seconds else None),
            ("per cold start", _range(self.usd_per_cold_start)),
            ("weights of a cold start", _usd(self.usd_of_transfer_per_cold_start)),
            ("per million input tokens", _range(self.usd_per_million_input_tokens)),
            ("per million output tokens", _range(self.usd_per_million_output_tokens)),
            ("basis of the tokens", self.tokens_basis),
            ("not included", ", ".join(self.not_included)),
            ("without a price", ", ".join(self.missing) or None),
        ]
        parts = [
            (
                f"{each.quantity:g} x {each.item}" + (f" in {each.region}" if each.region else ""),
                f"{_usd(each.usd_per_hour)} per hour, {_basis(each)}",
            )
            for each in self.lines
        ]
        teams = () if self.by_team is None else (Line(), *self.by_team.page())
        return (Line(self.stack, Role.HEADING), NamedValues(rows), NamedValues(parts), *teams)

    def _address_rows(self, address: AddressCost) -> Iterator[tuple[str, str]]:
        yield "address per hour", _usd(address.usd_per_hour)
        for region, amount in address.usd_per_gib.items():
            yield f"address, a GiB in and out of {region}", _usd(amount)
        yield "not included in that", ", ".join(address.not_included)

    def _states(self) -> tuple[tuple[str, Decimal | None], ...]:
        return (
            ("per hour of the door at most", self.usd_per_hour_of_door),
            *((f"figures over time, {period}", amount) for period, amount in self.usd_of_samples.items()),
            ("per hour of the fallback", self.usd_per_hour_of_fallback),
            ("per hour in a change", self.usd_per_hour_in_a_change),
        )


def cost(context: Context, arguments: CostArguments) -> Cost:
    """The cost of a stack.

    Raises:
        PlanError: The stack cannot be planned; holds every problem.
    """
    made, project = plan_of(context, arguments.stack)
    of = made.cost
    at_most: Amount | None
    saved: Amount | None
    lines: Iterable[CostLine]
    if isinstance(made, LeasePlan):
        leased = made.cost
        hourly = idle = leased.machines_hourly
        idle = total([idle, made.address.cost.hourly]) if made.address else idle
        month, saved = leased.machines_monthly, leased.monthly_saved
        highest, at_most, missing = leased.hourly_at_max, None, leased.missing
        of_address = [made.address.cost.rule] if made.address else []
        of_door = made.door.cost.lines if made.door else ()
        lines = map(_line, (*leased.by_zone.values(), *leased.gateway_lines, *of_address, *of_door))
    else:
        costs, sums = [each.cost for each in made.regions], made.total
        hourly, idle, month = made.cost.hourly, sums.hourly_at_min, sums.monthly_without_traffic
        saved = None if made.cost.average_min is None else total(each.monthly_saved for each in costs)
        highest, at_most, missing = sums.hourly_at_max, sums.monthly_at_max, sums.missing
        lines = _service_lines(made)
    of_both = made.cost if isinstance(made, LeasePlan) and made.fallback is not None else None
    transfer, tokens = made.transfer(), made.token_cost
    metrics, hours_by_period = made.metrics, made.server_hours.items()
    return Cost(
        stack=arguments.stack,
        project=project,
        usd_per_hour=_amount(hourly),
        usd_per_hour_at_most=_amount(highest),
        usd_per_hour_idle=_amount(idle),
        usd_per_month_at_most=_amount(at_most),
        usd_per_month_without_traffic=_amount(month),
        usd_per_month_saved=_amount(saved),
        usd_per_lease=_amount(of.lease_at_max) if isinstance(of, LeaseTotal) else None,
        usd_per_hour_of_fallback=_amount(of_both.fallback_at_max) if of_both else None,
        usd_per_hour_in_a_change=_amount(of_both.hourly_in_a_change) if of_both else None,
        usd_per_hour_of_door=_amount(made.door.cost.hourly_at_max) if made.door else None,
        usd_of_samples={}
        if metrics is None
        else {name: _amount(metrics.cost.usd(hours)) for name, hours in hours_by_period},
        lease_seconds=of.run_seconds if isinstance(of, LeaseTotal) else None,
        usd_per_cold_start=_between([of.start(seconds) for seconds in made.start.seconds]),
        usd_of_transfer_per_cold_start=Decimal(0) if transfer is None else _amount(transfer.usd),
        usd_per_million_input_tokens=_between(tokens.input),
        usd_per_million_output_tokens=None if tokens.output is None else _between(tokens.output),
        tokens_basis=tokens.basis,
        lines=tuple(lines),
        not_included=of.not_included,
        missing=missing,
        regions=tuple(_region(each) for each in made.regions)
        if isinstance(made, Plan) and len(made.regions) > 1
        else (),
        address=None if made.address is None else _address(made.address.cost),
        by_team=_by_team(context, arguments.stack, made),
    )


def _by_team(context: Context, stack: str, made: AnyPlan) -> TeamCost | None:
    """Each team's share of the month so far; None for a stack without keys, and for one that is not deployed."""
    if made.door is None:
        return None
    try:
        deployment = context.deployment(stack)
    except UserError:
        return None  # no backend is named, or it has no such stack: there is no bill yet
    month = datetime.fromtimestamp(context.clock.now(), UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return team_cost(context, deployment, month.timestamp(), made.token_cost)


def _region(region: RegionPlan) -> RegionCost:
    return RegionCost(
        region=region.region,
        usd_per_hour=_amount(region.cost.hourly),
        usd_per_hour_at_most=_amount(region.cost.hourly_at_max),
        usd_per_hour_idle=_amount(region.cost.hourly_at_min),
        usd_per_month_without_traffic=_amount(region.cost.monthly_without_traffic),
    )


def _address(cost: PlannedAddressCost) -> AddressCost:
    return AddressCost(
        usd_per_hour=_amount(cost.hourly),
        usd_per_gib={region: _amount(cost.gib(region)) for region in cost.data},
        not_included=NOT_INCLUDED,
    )


def _service_lines(plan: Plan) -> Iterator[CostLine]:
    """Parts of an instance in each region, the address and the door."""
    for each in plan.regions:
        region = each.region if len(plan.regions) > 1 else None
        yield from (_line(line).model_copy(update={"region": region}) for line in each.cost.lines)
    if plan.address is not None:
        yield _line(plan.address.cost.rule)
    if plan.door is not None:
        yield from map(_line, plan.door.cost.lines)


def _line(line: PlannedLine) -> CostLine:
    row = line.price if isinstance(line.price, PriceRow) else None
    return CostLine(
        item=line.item,
        quantity=float(line.quantity),
        usd_per_hour=_amount(line.hourly),
        kind=line.kind,
        source=row.source if row else "missing",
        as_of=row.as_of if row else UNKNOWN,
    )


def _between(ends: Sequence[Amount]) -> Range:
    return Range(low=_amount(ends[0]), high=_amount(ends[1]))


def _amount(amount: Amount | None) -> Decimal | None:
    """USD with all digits: they are rounded where they are shown. None for an amount that is unknown, or for none."""
    return amount.usd if isinstance(amount, Priced) else None


def _usd(amount: Decimal | None) -> str:
    if amount is None:
        return UNKNOWN
    return f"{round_usd(amount, 2 if not 0 < amount < 1 else 4 if amount >= _SMALL else POOLED_DIGITS)} USD"


def _basis(line: CostLine) -> str:
    """Kind, source and date of a price; the source of a derived one says that it is."""
    kind = "" if line.kind == "derived" else f"{line.kind}: "
    return f"{kind}{line.source}, {line.as_of}"


def _range(ends: Range | None) -> str | None:
    if ends is None:
        return None
    return f"{_usd(ends.low)} to {_usd(ends.high)}"
