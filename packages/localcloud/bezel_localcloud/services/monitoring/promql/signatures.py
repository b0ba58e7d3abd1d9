"""Functions and operators that are served: the types of their arguments and values; the selectors of a tree. Pure.

Source: prometheus/prometheus, promql/parser/functions.go and lex.go (v0.316.0).
"""

from collections.abc import Iterator
from typing import NamedTuple

from bezel_localcloud.services.monitoring.promql.syntax import (
    Aggregation,
    Negation,
    Node,
    Number,
    Operation,
    QueryFunction,
    Selector,
    Subquery,
    Text,
    Type,
)


class FunctionSignature(NamedTuple):
    """Types of a function's arguments, its value's type, and how many of the last arguments may be left out."""

    arguments: tuple[Type, ...]
    value: Type = "instant vector"
    optional: int = 0


_VECTOR, _RANGE, _SCALAR = (
    FunctionSignature(("instant vector",)),
    FunctionSignature(("range vector",)),
    ("instant vector", "scalar"),
)
_OF_RANGE = "rate increase irate delta idelta changes resets absent_over_time"
_OF_RANGE += " avg_over_time min_over_time max_over_time sum_over_time count_over_time last_over_time"
_OF_RANGE += " present_over_time stddev_over_time stdvar_over_time"
_OF_VECTOR = "abs ceil floor sqrt exp ln log2 log10 sgn absent sort sort_desc timestamp"
FUNCTIONS: dict[str, FunctionSignature] = {
    **dict.fromkeys(_OF_RANGE.split(), _RANGE),
    **dict.fromkeys(_OF_VECTOR.split(), _VECTOR),
    "quantile_over_time": FunctionSignature(("scalar", "range vector")),
    "histogram_quantile": FunctionSignature(("scalar", "instant vector")),
    "clamp": FunctionSignature(("instant vector", "scalar", "scalar")),
    "clamp_min": FunctionSignature(("instant vector", "scalar")),
    "clamp_max": FunctionSignature(("instant vector", "scalar")),
    "round": FunctionSignature(("instant vector", "scalar"), optional=1),
    "scalar": FunctionSignature(("instant vector",), "scalar"),
    "vector": FunctionSignature(("scalar",)),
    "time": FunctionSignature((), "scalar"),
}
_UNSERVED_NAMES = (
    "acos acosh asin asinh atan atanh cos cosh day_of_month day_of_week day_of_year "
    "days_in_month deg deriv double_exponential_smoothing end first_over_time histogram_avg "
    "histogram_count histogram_fraction histogram_quantiles histogram_stddev histogram_stdvar "
    "histogram_sum holt_winters hour info integral label_join label_replace mad_over_time "
    "max_of min_of minute month pi predict_linear rad range sin sinh sort_by_label "
    "sort_by_label_desc start start_timestamp step tan tanh ts_of_first_over_time "
    "ts_of_last_over_time ts_of_max_over_time ts_of_min_over_time year"
)
UNSERVED_FUNCTIONS = frozenset(_UNSERVED_NAMES.split())
AGGREGATIONS = dict.fromkeys(["sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"], False)
AGGREGATIONS |= dict.fromkeys(["topk", "bottomk", "quantile"], True)
"""Aggregations, and whether they have a parameter."""
UNSERVED_AGGREGATIONS = frozenset({"count_values", "limitk", "limit_ratio"})
COMPARISONS = frozenset({"==", "!=", ">", "<", ">=", "<="})
SETS = frozenset({"and", "or", "unless"})
PRECEDENCE = {"or": 1, "and": 2, "unless": 2, **dict.fromkeys(COMPARISONS, 3), "+": 4, "-": 4}
PRECEDENCE |= {"*": 5, "/": 5, "%": 5, "atan2": 5, "^": 6}


def type_of(node: Node) -> Type:
    """The type of a node's value."""
    match node:
        case Number():
            return "scalar"
        case Text():
            return "string"
        case Selector():
            return "instant vector" if node.window is None else "range vector"
        case Subquery():
            return "range vector"
        case QueryFunction():
            return FUNCTIONS[node.function].value
        case Aggregation():
            return "instant vector"
        case Negation():
            return type_of(node.inner)
        case Operation():
            both = {type_of(node.left), type_of(node.right)}
            return "scalar" if both == {"scalar"} else "instant vector"


def selectors_of(node: Node) -> Iterator[Selector]:
    """Every selector in a tree."""
    match node:
        case Selector():
            yield node
        case QueryFunction():
            for argument in node.arguments:
                yield from selectors_of(argument)
        case Operation():
            yield from selectors_of(node.left)
            yield from selectors_of(node.right)
        case Aggregation():
            yield from selectors_of(node.inner)
            if node.parameter is not None:
                yield from selectors_of(node.parameter)
        case Subquery() | Negation():
            yield from selectors_of(node.inner)
