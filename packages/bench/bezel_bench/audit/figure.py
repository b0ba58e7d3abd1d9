"""Figure as it was printed: its value, and how far rounding may have moved it.

Two figures agree when their intervals overlap; nothing is concluded from digits that were not printed.
"""

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

_NUMBER = re.compile(r"[-+]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
LARGEST = 1e18
"""More than any count, time or rate of a load."""
_LONGEST = 24


@dataclass(frozen=True, slots=True)
class StatedFigure:
    """A value and half a unit of its last printed digit, both in the same unit."""

    value: float
    half: float

    @property
    def low(self) -> float:
        """Return the least value before rounding, at least 0."""
        return max(0.0, self.value - self.half)

    @property
    def high(self) -> float:
        """Return the largest value before rounding."""
        return self.value + self.half

    def scale(self, factor: float) -> "StatedFigure":
        """Return the same figure in another unit."""
        return StatedFigure(self.value * factor, self.half * factor)


def figure(value: object) -> StatedFigure | None:
    """Return the figure in a cell, a JSON number or a text like "~66.4 req/s"; None where there is none.

    NaN, infinities and numbers beyond any count are not figures: they were not measured.
    """
    if isinstance(value, bool) or value is None:
        return None
    return _figure_in(repr(value) if isinstance(value, int | float) else str(value).strip())


@functools.lru_cache(maxsize=4096)  # a figure of a file is asked for by several readers and checks
def _figure_in(text: str) -> StatedFigure | None:
    match = _NUMBER.search(text)
    if match is None or text.lower().lstrip("+-").startswith(("nan", "inf")):
        return None
    try:
        decimal = Decimal(match[0].replace(",", "").replace("_", ""))
    except InvalidOperation:
        return None
    exponent = decimal.as_tuple().exponent
    if not isinstance(exponent, int) or abs(decimal) > LARGEST:
        return None
    return StatedFigure(float(decimal), 0.5 * 10.0**exponent)


def why_no_figure(value: object, *, counts: bool = False) -> str | None:
    """Return why a stated value cannot be a count, a time or a rate of a load; None where it can, or states nothing.

    Args:
        value: As stated; a text in which a number stands is read as that number.
        counts: Whether only a whole number can be one.
    """
    if value is None or value == "":
        return None
    parsed = None if isinstance(value, list | Mapping) else figure(value)
    if parsed is None:
        is_large = isinstance(value, int | float) and not isinstance(value, bool) and LARGEST < abs(value) < math.inf
        return (
            f"{_short_text(value)} is beyond any count" if is_large else f"expected a number, got {_short_text(value)}"
        )
    if parsed.value < 0:
        return f"{_short_text(value)} is below 0"
    if counts and parsed.value != int(parsed.value):
        return f"expected a whole number, got {_short_text(value)}"
    return None


def is_unlimited(value: object) -> bool:
    """Whether a rate of sending is stated as endless: requests are sent as fast as the users allow."""
    return isinstance(value, float | str) and str(value).strip().lower() in ("inf", "infinity")


def _short_text(value: object) -> str:
    if isinstance(value, list | Mapping):
        return f"a value of {len(value)} parts"
    # Nothing long of a file is repeated: it may be no result at all.
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def number(value: object) -> float | None:
    """Return the value of a figure without its precision; None where there is none."""
    parsed = figure(value)
    return parsed.value if parsed else None


def whole(value: object) -> int | None:
    """Return a whole number that is not negative, e.g. of users; None for anything else. "1-3" gives its upper end."""
    if isinstance(value, str) and (span := re.fullmatch(r"\s*\d+\s*(?:-|\u2013|to)\s*(\d+)\s*", value)):
        return int(span[1])
    parsed = figure(value)
    if parsed is None or parsed.value != int(parsed.value) or parsed.value < 0:
        return None
    return int(parsed.value)
