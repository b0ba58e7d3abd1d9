"""Values of expressions: labels, elements of vectors, windows of samples; and arithmetic as Go's. Pure."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

Labels = tuple[tuple[str, str], ...]
"""Names and values in the order of the names; `__name__` is one of them."""
NAME = "__name__"


class Element(NamedTuple):
    """One element of an instant vector."""

    labels: Labels
    value: float


Vector = list[Element]


class Window(NamedTuple):
    """The samples of one series in a range.

    Attributes:
        labels: Labels of the series.
        times: Unix seconds, at least one.
        values: One for each time.
        starts: Since when a counter counts, for each time; None where that is not known.
        after: Unix seconds of the range's start, which is not part of it.
        until: Unix seconds of its end, which is.
    """

    labels: Labels
    times: Sequence[float]
    values: Sequence[float]
    starts: Sequence[float] | None
    after: float
    until: float


def without_labels(labels: Labels, names: Iterable[str]) -> Labels:
    """The labels but some."""
    dropped = set(names)
    return tuple(pair for pair in labels if pair[0] not in dropped)


def only_labels(labels: Labels, names: Iterable[str]) -> Labels:
    """The labels of some names, where they are there."""
    kept = set(names)
    return tuple(pair for pair in labels if pair[0] in kept)


def without_name(labels: Labels) -> Labels:
    """The labels but the metric's name."""
    return tuple(pair for pair in labels if pair[0] != NAME)


def shown_labels(labels: Labels) -> str:
    """Labels as a refusal shows them."""
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels) + "}"


def total(values: Sequence[float]) -> float:
    """The sum, exactly round_values where all values are finite."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # infinities of both signs, or a sum beyond them
        return sum(values)


def mean(values: Sequence[float]) -> float:
    """The mean, also where the sum is beyond the largest number."""
    try:
        return math.fsum(values) / len(values)
    except (OverflowError, ValueError):
        return total([value / len(values) for value in values])


def quotient(dividend: float, divisor: float) -> float:
    """A quotient; by zero it is infinite, or NaN."""
    if divisor:
        return dividend / divisor
    if math.isnan(dividend) or math.isnan(divisor) or not dividend:
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def remainder(dividend: float, divisor: float) -> float:
    """The remainder with the sign of the dividend; NaN where there is none."""
    try:
        return math.fmod(dividend, divisor)
    except ValueError:
        return math.nan


def power(base: float, exponent: float) -> float:
    """A power; too large a one is infinite, that of a negative base by a fraction NaN."""
    odd = exponent.is_integer() and exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        if base:
            return math.nan
        return math.copysign(math.inf, base) if odd else math.inf
