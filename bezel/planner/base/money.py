"""An amount of money that is known, or the reason why it is not. An unknown amount is never 0 and never left out."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Priced:
    """USD. `derived` says that a price in it was concluded from another row instead of read for its region."""

    usd: Decimal
    derived: bool = False


@dataclass(frozen=True, slots=True)
class Unpriced:
    """Nobody knows. `reason` names the price row that is missing."""

    reason: str


Amount = Priced | Unpriced


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum, or every reason why there is none."""
    parts = list(amounts)
    reasons = [part.reason for part in parts if isinstance(part, Unpriced)]
    if reasons:
        return Unpriced("; ".join(dict.fromkeys(reasons)))
    known = [part for part in parts if isinstance(part, Priced)]
    return Priced(sum((part.usd for part in known), Decimal(0)), any(part.derived for part in known))


def most_expensive(amounts: Iterable[Amount]) -> Amount:
    """The largest of some amounts, at least one; where one is not known, none is."""
    parts = list(amounts)
    if any(isinstance(part, Unpriced) for part in parts):
        return total(part for part in parts if isinstance(part, Unpriced))
    return max((part for part in parts if isinstance(part, Priced)), key=lambda part: part.usd)


def times(amount: Amount, factor: Decimal | float) -> Amount:
    """The amount so many times. What is not known stays unknown, also 0 times."""
    if isinstance(amount, Unpriced):
        return amount
    return Priced(amount.usd * (factor if isinstance(factor, Decimal) else Decimal(repr(factor))), amount.derived)


def figure(amount: Amount, digits: int) -> float | str:
    """A plain value for an output: USD rounded to so many digits, or "unknown"."""
    if isinstance(amount, Unpriced):
        return UNKNOWN
    return float(amount.usd.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))


def text(amount: Amount, digits: int) -> str:
    """The same for a reader, with all digits."""
    if isinstance(amount, Unpriced):
        return UNKNOWN
    return str(amount.usd.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))
