"""Evaluation of a query at a time: its tree becomes a value. Pure.

Work is counted before it is done (`core.work`): a step for each sample, element and part of the tree.
"""

import math
from collections.abc import Callable, Iterable

from bezel_localcloud.core.work import Work
from bezel_localcloud.routing.prometheus_samples import StoredSeries
from bezel_localcloud.services.monitoring.promql.aggregations import aggregate
from bezel_localcloud.services.monitoring.promql.functions import (
    OF_VALUE,
    absent,
    at_least,
    at_most,
    clamp,
    map_values,
    round_values,
    sort_elements,
)
from bezel_localcloud.services.monitoring.promql.operations import operate
from bezel_localcloud.services.monitoring.promql.quantiles import histogram_quantile
from bezel_localcloud.services.monitoring.promql.rates import OF_WINDOW, quantile_over_time
from bezel_localcloud.services.monitoring.promql.series import HALF_MOMENT, Line, selected_lines
from bezel_localcloud.services.monitoring.promql.signatures import type_of
from bezel_localcloud.services.monitoring.promql.syntax import (
    Aggregation,
    Negation,
    Node,
    Number,
    Operation,
    QueryError,
    QueryFunction,
    Selector,
    Subquery,
    Text,
)
from bezel_localcloud.services.monitoring.promql.values import (
    Element,
    Labels,
    Vector,
    Window,
    without_name,
)

Value = float | str | Vector | list[Window]
_STEP = 60.0  # seconds of a subquery without a step
_KEEPS_NAME = frozenset({"last_over_time"})


class Evaluation:
    """A query over some series.

    Attributes:
        tree: Its tree.
        work: What it may still do.
    """

    def __init__(self, tree: Node, series: Callable[[], Iterable[StoredSeries]], work: Work) -> None:
        self.tree, self.work = tree, work
        self._series = series
        self._selected: dict[Selector, list[Line]] = {}

    def value(self, time: float) -> Value:
        """The value at a time.

        Raises:
            QueryError: There is none, such as of two vectors whose elements belong to several of the other.
            TooMuchWorkError: It would take more steps than what is left.
        """
        return self._value(self.tree, float(time))

    def _value(self, node: Node, time: float) -> Value:
        self.work.spend()
        match node:
            case Number() | Text():
                return node.value
            case Negation():
                inner = self._value(node.inner, time)
                return (
                    -inner if isinstance(inner, float) else _distinct(map_values(_vector(inner), lambda value: -value))
                )
            case Selector():
                return self._instant(node, time) if node.window is None else self._windows(node, time)
            case Subquery():
                return self._windows(node, time)
            case Operation():
                return self._operation(node, time)
            case Aggregation():
                parameter = 0.0 if node.parameter is None else self._scalar(node.parameter, time)
                return aggregate(node, self._vector(node.inner, time), parameter)
            case QueryFunction():
                return self._call(node, time)

    def _scalar(self, node: Node, time: float) -> float:
        value = self._value(node, time)
        if not isinstance(value, float):
            raise TypeError(type(node))
        return value

    def _vector(self, node: Node, time: float) -> Vector:
        vector = _vector(self._value(node, time))
        self.work.spend(len(vector))
        return vector

    def _operation(self, node: Operation, time: float) -> float | Vector:
        sides = [
            self._scalar(side, time) if type_of(side) == "scalar" else self._vector(side, time)
            for side in (node.left, node.right)
        ]
        value = operate(node, sides[0], sides[1])
        return value if isinstance(value, float) else _distinct(value)

    def _lines(self, selector: Selector) -> list[Line]:
        if selector not in self._selected:
            self._selected[selector] = selected_lines(self._series(), selector, self.work)
        return self._selected[selector]

    def _instant(self, selector: Selector, time: float) -> Vector:
        lines = self._lines(selector)
        self.work.spend(len(lines))
        samples = [(line.labels, line.last(time - selector.offset)) for line in lines]
        return [Element(labels, sample[1]) for labels, sample in samples if sample is not None]

    def _windows(self, node: Selector | Subquery, time: float) -> list[Window]:
        """The windows of a range vector."""
        until, length = time - node.offset, node.window or 0.0
        if isinstance(node, Subquery):
            return self._steps(node, until - length, until)
        windows = list[Window]()
        for line in self._lines(node):
            window = line.window(until - length, until)
            self.work.spend(1 + (len(window.times) if window else 0))
            if window:
                windows.append(window)
        return windows

    def _steps(self, node: Subquery, after: float, until: float) -> list[Window]:
        """The windows of a subquery: the values of its expression at multiples of its step."""
        step = node.step or _STEP
        number = math.floor((after + HALF_MOMENT) / step) + 1
        self.work.spend(max(0, math.floor((until - after) / step)))
        series: dict[Labels, tuple[list[float], list[float]]] = {}
        while number * step <= until + HALF_MOMENT:
            for labels, value in self._vector(node.inner, number * step):
                times, values = series.setdefault(labels, ([], []))
                times.append(number * step)
                values.append(value)
            number += 1
        return [Window(labels, times, values, None, after, until) for labels, (times, values) in series.items()]

    def _call(self, node: QueryFunction, time: float) -> Value:
        name, arguments = node.function, node.arguments
        if name == "time":
            return time
        if name == "vector":
            return [Element((), self._scalar(arguments[0], time))]
        if name in OF_WINDOW or name in {"quantile_over_time", "absent_over_time"}:
            return self._over_time(node, time)
        if name == "histogram_quantile":
            return histogram_quantile(self._scalar(arguments[0], time), self._vector(arguments[1], time))
        if name == "timestamp":
            return self._timestamps(arguments[0], time)
        vector = self._vector(arguments[0], time)
        numbers = [self._scalar(argument, time) for argument in arguments[1:]]
        if name == "scalar":
            return vector[0].value if len(vector) == 1 else math.nan
        if name == "absent":
            return absent(arguments[0], is_there=bool(vector))
        if name in {"sort", "sort_desc"}:
            return sort_elements(vector, descending=name == "sort_desc")
        return _distinct(_of_vector(name, vector, numbers))

    def _over_time(self, node: QueryFunction, time: float) -> Vector:
        windows = self._value(node.arguments[-1], time)
        if not isinstance(windows, list):
            raise TypeError(node.function)
        ranges = [window for window in windows if isinstance(window, Window)]
        if node.function == "absent_over_time":
            return absent(node.arguments[0], is_there=bool(ranges))
        if node.function == "quantile_over_time":
            q = self._scalar(node.arguments[0], time)
            values = [(window.labels, quantile_over_time(q, window)) for window in ranges]
            return _distinct([Element(without_name(labels), value) for labels, value in values])
        evaluate, keeps = OF_WINDOW[node.function], node.function in _KEEPS_NAME
        elements = [
            Element(window.labels if keeps else without_name(window.labels), value)
            for window in ranges
            if (value := evaluate(window)) is not None
        ]
        return _distinct(elements)

    def _timestamps(self, node: Node, time: float) -> Vector:
        """The time of each element's sample: of a selector its own, of another expression that of the evaluation."""
        if not isinstance(node, Selector):
            return _distinct(map_values(self._vector(node, time), lambda _: time))
        samples = [(line.labels, line.last(time - node.offset)) for line in self._lines(node)]
        return _distinct([Element(without_name(labels), sample[0]) for labels, sample in samples if sample is not None])


def _of_vector(name: str, vector: Vector, numbers: list[float]) -> Vector:
    if name == "clamp":
        return clamp(vector, *numbers)
    if name == "clamp_min":
        return map_values(vector, lambda value: at_least(numbers[0], value))
    if name == "clamp_max":
        return map_values(vector, lambda value: at_most(numbers[0], value))
    if name == "round":
        return round_values(vector, *(numbers or [1.0]))
    return map_values(vector, OF_VALUE[name])


def _vector(value: Value) -> Vector:
    if not isinstance(value, list):
        raise TypeError(type(value))
    return [element for element in value if isinstance(element, Element)]


def _distinct(vector: Vector) -> Vector:
    """A vector whose elements have labels of their own.

    Raises:
        QueryError: Two have the same ones.
    """
    labels = {element.labels for element in vector}
    if len(labels) != len(vector):
        raise QueryError("vector cannot contain metrics with the same labelset")
    return vector
