"""Operators between scalars and vectors: arithmetic, comparisons, sets, and which elements belong together. Pure.

Source: prometheus/prometheus, promql/engine.go (v0.316.0), whose words the errors have.
"""

import math
import operator
from collections.abc import Callable

from bezel_localcloud.services.monitoring.promql.signatures import COMPARISONS
from bezel_localcloud.services.monitoring.promql.syntax import Matching, Operation, QueryError
from bezel_localcloud.services.monitoring.promql.values import (
    NAME,
    Element,
    Labels,
    Vector,
    only_labels,
    power,
    quotient,
    remainder,
    shown_labels,
    without_labels,
    without_name,
)

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": quotient,
    "%": remainder,
    "^": power,
    "atan2": math.atan2,
}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


def operate(node: Operation, left: float | Vector, right: float | Vector) -> float | Vector:
    """The value of an operator.

    Raises:
        QueryError: Several elements belong to one that may have only one.
    """
    if isinstance(left, float) and isinstance(right, float):
        if node.operator in COMPARISONS:
            return float(_COMPARE[node.operator](left, right))
        return _ARITHMETIC[node.operator](left, right)
    if isinstance(left, float) or isinstance(right, float):
        return _with_scalar(node, left, right)
    matching = node.matching or Matching()
    if node.operator in _SETS:
        return _SETS[node.operator](left, right, matching)
    return _between_vectors(node, left, right, matching)


def _with_scalar(node: Operation, left: float | Vector, right: float | Vector) -> Vector:
    """The value of an operator between a vector and a scalar."""
    compares = node.operator in COMPARISONS
    result = Vector()
    for labels, value in left if isinstance(left, list) else right if isinstance(right, list) else []:
        one = left if isinstance(left, float) else value
        two = right if isinstance(right, float) else value
        if not compares:
            result.append(Element(without_name(labels), _ARITHMETIC[node.operator](one, two)))
        elif node.returns_bool:
            result.append(Element(without_name(labels), float(_COMPARE[node.operator](one, two))))
        elif _COMPARE[node.operator](one, two):
            result.append(Element(labels, value))
    return result


def _between_vectors(node: Operation, left: Vector, right: Vector, matching: Matching) -> Vector:
    many, ones = (right, left) if matching.many == "right" else (left, right)
    side = "left" if matching.many == "right" else "right"
    by_key: dict[Labels, Element] = {}
    for element in ones if left and right else []:
        key = _key(matching, element.labels)
        if key in by_key:
            both = sorted([shown_labels(element.labels), shown_labels(by_key[key].labels)])
            raise QueryError(
                f"found duplicate series for the match group {shown_labels(key)} on the {side} hand-side of the "
                f"operation: [{both[0]}, {both[1]}];many-to-many matching not allowed: matching labels must be unique "
                "on one side"
            )
        by_key[key] = element
    result, used = Vector(), set[tuple[Labels, Labels]]()
    for element in many:
        key = _key(matching, element.labels)
        other = by_key.get(key)
        if other is None:
            continue
        one, two = (other, element) if matching.many == "right" else (element, other)
        labels = _result_labels(node, element.labels, other.labels, matching)
        mark = (key, labels if matching.many else ())
        if mark in used:
            how = "grouping labels must ensure unique matches" if matching.many else _EXPLICIT
            raise QueryError(f"multiple matches for labels: {how}")
        used.add(mark)
        if node.operator not in COMPARISONS:
            result.append(Element(labels, _ARITHMETIC[node.operator](one.value, two.value)))
        elif (kept := _COMPARE[node.operator](one.value, two.value)) or node.returns_bool:
            result.append(Element(labels, float(kept) if node.returns_bool else one.value))
    return result


_EXPLICIT = "many-to-one matching must be explicit (group_left/group_right)"


def _result_labels(node: Operation, labels: Labels, other: Labels, matching: Matching) -> Labels:
    if node.operator not in COMPARISONS or node.returns_bool:
        labels = without_name(labels)
    if not matching.many:
        return only_labels(labels, matching.labels) if matching.on else without_labels(labels, matching.labels)
    included = only_labels(other, matching.include)
    return tuple(sorted((*without_labels(labels, matching.include), *included)))


def _key(matching: Matching, labels: Labels) -> Labels:
    """What elements that belong together have in common."""
    return only_labels(labels, matching.labels) if matching.on else without_labels(labels, (*matching.labels, NAME))


def _and(left: Vector, right: Vector, matching: Matching) -> Vector:
    keys = {_key(matching, labels) for labels, _ in right}
    return [element for element in left if _key(matching, element.labels) in keys]


def _unless(left: Vector, right: Vector, matching: Matching) -> Vector:
    keys = {_key(matching, labels) for labels, _ in right}
    return [element for element in left if _key(matching, element.labels) not in keys]


def _or(left: Vector, right: Vector, matching: Matching) -> Vector:
    return [*left, *_unless(right, left, matching)]


_SETS = {"and": _and, "or": _or, "unless": _unless}
