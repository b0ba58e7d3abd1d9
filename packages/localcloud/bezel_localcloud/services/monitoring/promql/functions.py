"""Functions of instant vectors and scalars. Pure.

Source: prometheus/prometheus, promql/functions.go (v0.316.0).
"""

import math
from collections.abc import Callable

from bezel_localcloud.services.monitoring.promql.syntax import Node, Selector
from bezel_localcloud.services.monitoring.promql.values import Element, Labels, Vector, quotient, without_name


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _logarithm(of: Callable[[float], float]) -> Callable[[float], float]:
    def evaluate(value: float) -> float:
        if value > 0 or math.isnan(value):
            return of(value)
        return -math.inf if value == 0 else math.nan

    return evaluate


def _whole(of: Callable[[float], int]) -> Callable[[float], float]:
    return lambda value: math.copysign(float(of(value)), value) if math.isfinite(value) else value


OF_VALUE: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "ceil": _whole(math.ceil),
    "floor": _whole(math.floor),
    "sqrt": lambda value: math.sqrt(value) if value >= 0 else math.nan,
    "exp": _exp,
    "ln": _logarithm(math.log),
    "log2": _logarithm(math.log2),
    "log10": _logarithm(math.log10),
    "sgn": lambda value: math.copysign(1.0, value) if value and not math.isnan(value) else value,
}
"""Functions of one value."""


def map_values(vector: Vector, of: Callable[[float], float]) -> Vector:
    """A vector without names, with a function of each value."""
    return [Element(without_name(labels), of(value)) for labels, value in vector]


def clamp(vector: Vector, least: float, most: float) -> Vector:
    """The values within two bounds; nothing where they are in the wrong order."""
    if least > most:
        return []
    return map_values(vector, lambda value: at_least(least, at_most(most, value)))


def at_least(bound: float, value: float) -> float:
    """The greater of two, NaN where one is NaN and none is infinite."""
    if math.inf in {bound, value}:
        return math.inf
    return math.nan if math.isnan(bound) or math.isnan(value) else max(bound, value)


def at_most(bound: float, value: float) -> float:
    """The smaller of two, NaN where one is NaN and none is infinite."""
    return -at_least(-bound, -value)


def round_values(vector: Vector, nearest: float) -> Vector:
    """The values round_values to a multiple of a number, a half of it up."""
    inverse = quotient(1.0, nearest)

    def of(value: float) -> float:
        scaled = value * inverse + 0.5
        return quotient(float(math.floor(scaled)) if math.isfinite(scaled) else scaled, inverse)

    return map_values(vector, of)


def sort_elements(vector: Vector, *, descending: bool) -> Vector:
    """The elements in the order of their values; NaN comes last."""
    sign = -1.0 if descending else 1.0
    return sorted(vector, key=lambda item: (math.isnan(item.value), sign * item.value))


def absent(argument: Node, *, is_there: bool) -> Vector:
    """One element of value 1 where nothing is there, with the labels that a selector demands."""
    if is_there:
        return []
    labels = dict[str, str]()
    if isinstance(argument, Selector):
        named = [matcher.label for matcher in argument.matchers]
        for matcher in argument.matchers:
            if matcher.operator == "=" and named.count(matcher.label) == 1 and matcher.value:
                labels[matcher.label] = matcher.value
    pairs: Labels = tuple(sorted(labels.items()))
    return [Element(pairs, 1.0)]
