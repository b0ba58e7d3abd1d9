"""Cost of a stack before it is deployed: per hour, month, lease, cold start and million tokens, with its sources.

What a deployed stack has cost so far is `status`; other machines are `compare`. Leaves out how a price is found: see
bezel.planner.cost.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.plan import plan_of
from bezel.operations.results import Arguments, Result, Usd, lines
from bezel.planner import LeasePlan
from bezel.planner.base.money import UNKNOWN

_MONTH_HOURS = 730


class CostArguments(Arguments):
    """Which stack."""

    stack: str = Field(max_length=100, description="name of the stack")


class Range(Result):
    """An amount in USD between the fast and the slow end of an estimate; null if unknown."""

    low: Usd | None
    high: Usd | None


class CostLine(Result):
    """A part of an instance or a machine."""

    item: str
    quantity: float
    usd_per_hour: Usd | None = Field(description="of the whole quantity; null if unknown")
    kind: str = Field(description="list price, derived, or the stack file's own")
    source: str
    as_of: str


class Cost(Result):
    """Cost of a stack as its file declares it. An unknown amount is null, never 0."""

    stack: str
    project: str
    usd_per_hour: Usd | None = Field(description="one instance, or all leased machines")
    usd_per_hour_at_most: Usd | None = Field(description="all instances, or all leased machines with their gateway")
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
    lease_seconds: int | None = Field(description="run duration of a lease; null without")
    usd_per_cold_start: Range | None = Field(description="a start of an instance or of all machines")
    usd_of_transfer_per_cold_start: Usd | None = Field(
        description="for reading the weights from their bucket, beside the start; null if unknown"
    )
    usd_per_million_input_tokens: Range | None
    usd_per_million_output_tokens: Range | None
    tokens_basis: str | None = Field(description="load and utilisation that the cost of tokens is estimated for")
    lines: tuple[CostLine, ...] = Field(
        description="parts of an instance, or of a machine in each zone and its gateway"
    )
    not_included: tuple[str, ...]
    missing: tuple[str, ...] = Field(description="price rows that the catalogue does not hold")

    def text(self) -> str:
        """The amounts, then the parts with their sources."""
        ends_for_good = self.lease_seconds is not None and self.usd_per_month_without_traffic is None
        rows = [
            ("per hour", _usd(self.usd_per_hour)),
            ("per hour at most", _usd(self.usd_per_hour_at_most)),
            ("per hour without traffic", _usd(self.usd_per_hour_idle)),
            ("per month at most", None if self.lease_seconds else _usd(self.usd_per_month_at_most)),
            ("per month without traffic", None if ends_for_good else _usd(self.usd_per_month_without_traffic)),
            ("saved per month", None if self.usd_per_month_saved is None else _usd(self.usd_per_month_saved)),
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
                f"{each.quantity:g} x {each.item}",
                f"{_usd(each.usd_per_hour)} per hour, {each.kind}: {each.source}, {each.as_of}",
            )
            for each in self.lines
        ]
        return f"{self.stack}\n{lines(rows)}{lines(parts)}"


def cost(context: Context, arguments: CostArguments) -> Cost:
    """The cost of a stack.

    Raises:
        PlanError: The stack cannot be planned; holds every problem.
    """
    made, project = plan_of(context, arguments.stack)
    given: Mapping[str, Any] = dict(made.as_output())["cost"]  # type: ignore[assignment]
    is_lease = isinstance(made, LeasePlan)
    monthly, saved = (
        ("usd_per_month", "usd_per_month_saved_by_hours")
        if is_lease
        else ("usd_per_month_without_traffic", "usd_per_month_saved_by_schedule")
    )
    at_most = _amount(given["usd_per_hour_with_gateway" if is_lease else "usd_per_hour_all_instances"])
    return Cost(
        stack=arguments.stack,
        project=project,
        usd_per_hour=_amount(given["usd_per_hour"]),
        usd_per_hour_at_most=at_most,
        usd_per_hour_idle=_amount(given["usd_per_hour" if is_lease else "usd_per_hour_min_instances"]),
        usd_per_month_at_most=None if is_lease or at_most is None else at_most * _MONTH_HOURS,
        usd_per_month_without_traffic=_amount(given.get(monthly)),
        usd_per_month_saved=_amount(given.get(saved)),
        usd_per_lease=_amount(given.get("usd_per_lease_with_gateway")),
        lease_seconds=given.get("lease_seconds"),
        usd_per_cold_start=_between(given.get("usd_per_cold_start")),
        usd_of_transfer_per_cold_start=_amount(given["usd_of_transfer_per_cold_start"]),
        usd_per_million_input_tokens=_between(given.get("usd_per_million_input_tokens")),
        usd_per_million_output_tokens=_between(given.get("usd_per_million_output_tokens")),
        tokens_basis=given.get("tokens_basis"),
        lines=tuple(_line(line) for line in given["lines"]),
        not_included=tuple(given["not_included"]),
        missing=tuple(given.get("missing_rows") or ()),
    )


def _line(line: Mapping[str, Any]) -> CostLine:
    return CostLine(
        item=line["item"],
        quantity=line["quantity"],
        usd_per_hour=_amount(line["usd_per_hour"]),
        kind=str(line.get("kind") or UNKNOWN),
        source=str(line.get("source") or UNKNOWN),
        as_of=str(line.get("as_of") or UNKNOWN),
    )


def _between(ends: object) -> Range | None:
    return Range(low=_amount(ends[0]), high=_amount(ends[1])) if isinstance(ends, list | tuple) else None


def _amount(value: object) -> Decimal | None:
    """An amount of the plan's output; None for one that is unknown."""
    return None if value is None or value == UNKNOWN else Decimal(repr(value))


def _usd(amount: Decimal | None) -> str:
    return UNKNOWN if amount is None else f"{amount:.4g} USD" if 0 < amount < 1 else f"{amount:.2f} USD"


def _range(ends: Range | None) -> str | None:
    if ends is None:
        return None
    return f"{_usd(ends.low)} to {_usd(ends.high)}"
