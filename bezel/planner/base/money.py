"""Amounts of money: known, or unknown with the reason. An unknown amount is never 0 and never left out."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Priced:
    """A known amount in USD. `derived`: a price in it was derived from another row, not read for its region."""

    usd: Decimal
    derived: bool = False


@dataclass(frozen=True, slots=True, init=False)
class Unpriced:
    """An unknown amount. `reasons` name the missing price rows, each once."""

    reasons: tuple[str, ...]

    def __init__(self, *reasons: str) -> None:
        object.__setattr__(self, "reasons", tuple(dict.fromkeys(reasons)))

    @property
    def reason(self) -> str:
        """All reasons, in one line."""
        return "; ".join(self.reasons)


Amount = Priced | Unpriced


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum; unknown, with every reason, where any part is unknown."""
    parts = list(amounts)
    reasons = [reason for part in parts if isinstance(part, Unpriced) for reason in part.reasons]
    if reasons:
        return Unpriced(*reasons)
    priced = [part for part in parts if isinstance(part, Priced)]
    return Priced(sum((part.usd for part in priced), Decimal(0)), any(part.derived for part in priced))


def most_expensive(amounts: Iterable[Amount]) -> Amount:
    """The largest of one or more amounts; unknown where any of them is."""
    parts = list(amounts)
    if any(isinstance(part, Unpriced) for part in parts):
        return total(part for part in parts if isinstance(part, Unpriced))
    return max((part for part in parts if isinstance(part, Priced)), key=lambda part: part.usd)


def times(amount: Amount, factor: Decimal | float) -> Amount:
    """The amount times a factor. An unknown amount stays unknown, even times 0."""
    if isinstance(amount, Unpriced):
        return amount
    return Priced(amount.usd * (factor if isinstance(factor, Decimal) else Decimal(repr(factor))), amount.derived)


def lasting(hourly: Amount, seconds: float) -> Amount:
    """The amount for `seconds` of an amount per hour."""
    return times(hourly, Decimal(repr(seconds)) / 3600)


def figure(amount: Amount, digits: int) -> float | str:
    """A plain value for an output: USD rounded to `digits` digits, or "unknown"."""
    rounded = text(amount, digits)
    return rounded if rounded == UNKNOWN else float(rounded)


def text(amount: Amount, digits: int) -> str:
    """The same as text, with trailing zeros."""
    return UNKNOWN if isinstance(amount, Unpriced) else round_usd(amount.usd, digits)


def round_usd(usd: Decimal, digits: int) -> str:
    """USD as text, half up. The only rounding of money: of an amount that was not rounded before, where it is shown."""
    return str(usd.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))


def exact(usd: Decimal) -> str:
    """USD as text with all its digits, for a document that others compute with."""
    return f"{usd.normalize():f}"


def at_least(amount: Priced) -> Decimal:
    """The smallest limit in whole cents that allows the amount."""
    return amount.usd.quantize(Decimal("0.01"), rounding=ROUND_CEILING)
