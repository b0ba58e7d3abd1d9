"""Each team's share of what a stack's servers have cost since a moment: what was paid, idle, and asked by others.

Owns where each figure is from. Leaves the split to `shares` and the use to `use`. A figure that Google does not give is
named, and never taken for 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.deployment.deployed_door import door_of
from bezel.operations.deployment.deployment import DeployedService, Deployment
from bezel.operations.keys.shares import BillPart, bill_parts, digits_of
from bezel.operations.keys.use import DoorUse, use_of
from bezel.operations.report.spent import spent_since, sum_usd
from bezel.operations.results import Result, Usd, utc
from bezel.operations.service_use.service_metrics import instance_time, request_total
from bezel.planner.base.money import Priced, round_usd
from bezel.planner.cost.token_cost import TokenCost
from bezel_base.errors import UserError, one_line
from bezel_base.terminal.blocks import Block, Line, Role, Table

NOT_INCLUDED = ("the door", "gateway", "address", "samples", "storage", "network")


class TeamCost(Result):
    """What the servers of a stack have cost, and each team's part of it."""

    since: datetime = Field(description="begin of the time, UTC")
    usd: Usd | None = Field(description="the whole: instances of the service, or leased machines; null if unknown")
    parts: tuple[BillPart, ...] = Field(description="parts that add up to the whole")
    basis: str = Field(description="how the parts were made")
    not_included: tuple[str, ...]
    notes: tuple[str, ...] = Field(description="what is unknown, and where it went")

    def page(self) -> Iterator[Block]:
        """A table of the parts."""
        whole = "unknown" if self.usd is None else f"{round_usd(self.usd, digits_of(self.usd))} USD"
        yield Line(f"by team since {self.since:%Y-%m-%d}, of {whole}", Role.HEADING)
        rows = [(each.name, f"{each.percent} %", self._amount(each)) for each in self.parts]
        yield Table(("part", "share", "USD"), rows)
        yield Line(f"basis: {self.basis}; without {', '.join(self.not_included)}")
        yield from (Line(f"note: {text}") for text in self.notes)

    def _amount(self, part: BillPart) -> str:
        if part.usd is None or self.usd is None:
            return "unknown"
        return round_usd(part.usd, digits_of(self.usd))


@dataclass(frozen=True)
class _Paid:
    """What was paid, how much of it for idle instances, and why either is not known."""

    usd: Decimal | None
    idle: Fraction
    notes: tuple[str, ...]


def team_cost(context: Context, deployment: Deployment, since: float, tokens: TokenCost) -> TeamCost | None:
    """Each team's share since a moment; None for a stack without a door.

    Args:
        context: The context.
        deployment: The deployed stack.
        since: Begin of a day in UTC, unix seconds: use is counted by day.
        tokens: What the plan says that tokens cost, for the ratio of tokens in and out.
    """
    if door_of(deployment) is None:
        return None
    notes: list[str] = []
    use: DoorUse | None = None
    try:
        use = use_of(context, deployment.stack, since)
    except UserError as error:
        notes.append(f"the teams' use is not known: {one_line(error)}")
    paid = _bill_of(context, deployment, since)
    requests, why = _requests(context, deployment, since)
    prices, basis = _prices(tokens)
    begin = utc(since)
    assert begin is not None  # noqa: S101 - a moment was given
    parts = () if use is None else bill_parts(paid.usd, use.teams, idle=paid.idle, requests=requests, prices=prices)
    return TeamCost(
        since=begin,
        usd=paid.usd,
        parts=parts,
        basis=basis,
        not_included=NOT_INCLUDED,
        notes=(*notes, *paid.notes, *why, *(use.notes if use else ())),
    )


def _bill_of(context: Context, deployment: Deployment, since: float) -> _Paid:
    """What the servers cost since a moment."""
    spent = spent_since(context, deployment, since)
    services = [service for service in deployment.services if service.has_gpu]
    notes = [f"what {each.name} cost is not known: {each.unknown_because}" for each in spent if each.usd is None]
    idle_usd, shares = Decimal(0), []
    for service, cost in zip(services, spent, strict=False):  # leases come after them
        time = instance_time(context, service, since)
        if time.idle_share is None:
            notes.append(f"idle time of {cost.name} is in the other parts: {time.unknown_because}")
        shares.append(Fraction(time.idle_share or 0))
        idle_usd += (cost.usd or 0) * Decimal(time.idle_share or 0)
    notes += [
        f"idle time of {lease.name} is in the other parts, and earlier leases are not included"
        for lease in deployment.leases
    ]
    usd = sum_usd(spent)
    # Without amounts each service counts alike.
    alike = sum(shares, Fraction(0)) / max(1, len(shares))
    return _Paid(usd, Fraction(idle_usd) / Fraction(usd) if usd else alike, tuple(notes))


def _requests(context: Context, deployment: Deployment, since: float) -> tuple[int | None, tuple[str, ...]]:
    """Requests that the services which callers reach got since a moment, and why that is not known."""
    totals = [(each, request_total(context, each, since)) for each in deployment.region_services]
    unknown = [_unknown_requests(each, total.unknown_because) for each, total in totals if total.number is None]
    if unknown:
        return None, tuple(unknown)
    return sum(total.number or 0 for _, total in totals), ()


def _unknown_requests(service: DeployedService, because: str) -> str:
    return f"requests past the door to {service.name} in {service.location} are in the teams' parts: {because}"


def _prices(tokens: TokenCost) -> tuple[tuple[Decimal, Decimal], str]:
    """What a token in and a token out cost, for their ratio, and the basis in words."""
    into, out = tokens.input[0], tokens.output[0] if tokens.output else Priced(Decimal(0))
    if not isinstance(into, Priced) or not isinstance(out, Priced) or not into.usd:
        return (Decimal(1), Decimal(1)), "tokens, in and out alike as their price is not known"
    if not out.usd:
        return (into.usd, out.usd), "tokens in"
    return (into.usd, out.usd), f"tokens, one out as {out.usd / into.usd:.1f} in, as the plan estimates"
