"""Shares of a bill: parts that add up to the whole to its last digit, by what each team's requests needed. Pure.

Owns who pays what: the time of instances without a request is a part of its own, so are requests that came past the
door, and the rest is the teams', by their tokens at what a token in and a token out cost.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Literal

from pydantic import Field

from bezel.operations.keys.use import TeamUse
from bezel.operations.results import Result, Usd

PERCENT_DIGITS = 1
PartKind = Literal["team", "idle", "other callers"]


class BillPart(Result):
    """A part of a bill."""

    name: str = Field(description="the team, idle, or other callers")
    kind: PartKind
    percent: Decimal = Field(description="of the whole; all parts together are 100")
    usd: Usd | None = Field(description="null where the whole is unknown")


def split_amount(whole: Decimal, weights: Sequence[Fraction], digits: int) -> list[Decimal]:
    """Parts of an amount, whose sum is the amount rounded to `digits` digits.

    What rounding leaves goes to the parts that it took most from.

    Args:
        whole: The amount, 0 or more.
        weights: A weight for each part, 0 or more; not all of them 0.
        digits: Digits after the point that a part has.
    """
    unit = Decimal(1).scaleb(-digits)
    units, total = int((whole / unit).to_integral_value(ROUND_HALF_UP)), sum(weights)
    exact = [units * weight / total for weight in weights]
    counts = [int(each) for each in exact]
    largest_rests = sorted(range(len(exact)), key=lambda place: counts[place] - exact[place])
    for place in largest_rests[: units - sum(counts)]:
        counts[place] += 1
    return [count * unit for count in counts]


def bill_parts(
    usd: Decimal | None,
    teams: Sequence[TeamUse],
    *,
    idle: Fraction,
    requests: int | None,
    prices: tuple[Decimal, Decimal],
) -> tuple[BillPart, ...]:
    """The parts of a bill: each team's, that of idle instances, and that of other callers.

    Args:
        usd: The whole; None if it is unknown.
        teams: Use by team.
        idle: Share of the paid time in which no instance served, from 0 to 1.
        requests: Requests that the servers got from all callers; None if unknown: then all are the teams'.
        prices: What a token in and a token out cost, for their ratio.
    """
    by_key = sum(team.requests for team in teams)
    got = max(by_key, by_key if requests is None else requests)
    busy = 1 - idle if got else Fraction(0)
    of_teams = _weights(teams, prices)
    weights: dict[tuple[PartKind, str], Fraction] = {
        ("team", name): busy * by_key / got * weight if got else Fraction(0) for name, weight in of_teams.items()
    }
    weights["other callers", "other callers"] = busy * (got - by_key) / got if got else Fraction(0)
    weights["idle", "idle"] = 1 - busy
    kept = {each: weight for each, weight in weights.items() if weight or each[0] == "team"}
    percents = split_amount(Decimal(100), [*kept.values()], PERCENT_DIGITS)
    amounts: Sequence[Decimal | None] = [None] * len(kept)
    if usd is not None:
        amounts = split_amount(usd, [*kept.values()], digits_of(usd))
    return tuple(
        BillPart(name=name, kind=kind, percent=percent, usd=amount)
        for (kind, name), percent, amount in zip(kept, percents, amounts, strict=True)
    )


def digits_of(usd: Decimal) -> int:
    """Digits after the point that a bill is shown with: cents, of less than a dollar hundredths of them."""
    return 2 if usd >= 1 else 4


def _weights(teams: Sequence[TeamUse], prices: tuple[Decimal, Decimal]) -> Mapping[str, Fraction]:
    """Share of each team in what all of them used: by tokens, where none was counted by requests."""
    price_in, price_out = map(Fraction, prices)
    tokens = {team.team: team.prompt_tokens * price_in + team.completion_tokens * price_out for team in teams}
    used = tokens if sum(tokens.values()) else {team.team: Fraction(team.requests) for team in teams}
    total = sum(used.values())
    return {name: amount / total if total else Fraction(0) for name, amount in used.items()}
