"""Aggregations: one value for each group of a vector's elements, or the group's largest elements. Pure.

Source: prometheus/prometheus, promql/engine.go (v0.316.0).
"""

import math
from collections.abc import Callable, Sequence

from bezel_localcloud.services.monitoring.promql.quantiles import quantile
from bezel_localcloud.services.monitoring.promql.rates import greatest, least, variance
from bezel_localcloud.services.monitoring.promql.syntax import Aggregation, QueryError
from bezel_localcloud.services.monitoring.promql.values import (
    NAME,
    Element,
    Labels,
    Vector,
    mean,
    only_labels,
    total,
    without_labels,
)

_OF_VALUES: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": total,
    "avg": mean,
    "min": least,
    "max": greatest,
    "count": lambda values: float(len(values)),
    "group": lambda _: 1.0,
    "stddev": lambda values: math.sqrt(variance(values)),
    "stdvar": variance,
}


def aggregate(node: Aggregation, vector: Vector, parameter: float) -> Vector:
    """The value of an aggregation.

    Args:
        node: The aggregation.
        vector: The value of its operand.
        parameter: The value of its parameter; 0 without one.

    Raises:
        QueryError: A number of elements that is none.
    """
    groups: dict[Labels, list[Element]] = {}
    for element in vector:
        groups.setdefault(_group_labels(node, element.labels), []).append(element)
    if node.operator in {"topk", "bottomk"}:
        if math.isnan(parameter) or abs(parameter) >= 2**63:
            raise QueryError(f"Scalar value {parameter} overflows int64")
        number = max(0, int(parameter))
        return [element for group in groups.values() for element in _extremes(node.operator, group, number)]
    if node.operator == "quantile":
        return [Element(labels, quantile(parameter, [value for _, value in group])) for labels, group in groups.items()]
    evaluate = _OF_VALUES[node.operator]
    return [Element(labels, evaluate([value for _, value in group])) for labels, group in groups.items()]


def _group_labels(node: Aggregation, labels: Labels) -> Labels:
    return without_labels(labels, (*node.labels, NAME)) if node.without else only_labels(labels, node.labels)


def _extremes(operator: str, group: Vector, number: int) -> Vector:
    """The elements with the largest or the smallest values, the most extreme first; NaN comes last."""
    sign = -1.0 if operator == "topk" else 1.0
    return sorted(group, key=lambda item: (math.isnan(item.value), sign * item.value))[:number]
