"""Values of a query as JSON: at one moment, or at each step of a range. Pure.

Source: prometheus.io/docs/prometheus/latest/querying/api (November 2026): numbers are texts, times are seconds.
"""

import math
from decimal import Decimal
from typing import Any

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.services.monitoring.promql.evaluation import Value
from bezel_localcloud.services.monitoring.promql.values import Element, Labels, Window


def number_text(value: float) -> str:
    """A number as Prometheus writes it: without an exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    return (format(Decimal(text), "f") if "e" in text else text).removesuffix(".0")


def moment(time: float) -> float | int:
    """A time in JSON: seconds with milliseconds, whole ones without a fraction."""
    seconds = round(time, 3)
    return int(seconds) if seconds.is_integer() else seconds


def instant_answer(value: Value, time: float) -> Json:
    """The `data` of an answer about one moment."""
    if isinstance(value, float):
        return {"resultType": "scalar", "result": [moment(time), number_text(value)]}
    if isinstance(value, str):
        return {"resultType": "string", "result": [moment(time), value]}
    windows = [one for one in value if isinstance(one, Window)]
    if windows:
        result = [
            {
                "metric": dict(window.labels),
                "values": [_point(*each) for each in zip(window.times, window.values, strict=True)],
            }
            for window in windows
        ]
        return {"resultType": "matrix", "result": result}
    elements = [one for one in value if isinstance(one, Element)]
    result = [{"metric": dict(labels), "value": _point(time, number)} for labels, number in elements]
    return {"resultType": "vector", "result": result}


class RangeAnswer:
    """The answer about a range, to which the value of each step is added."""

    def __init__(self) -> None:
        self._points: dict[Labels, list[Any]] = {}

    def add(self, time: float, value: Value) -> None:
        """Add the value at a time: a number or an instant vector."""
        elements = [Element((), value)] if isinstance(value, float) else value
        for element in elements:
            if isinstance(element, Element):
                self._points.setdefault(element.labels, []).append(_point(time, element.value))

    def data(self) -> Json:
        """The `data` of the answer, its series in the order of their labels."""
        series = sorted(self._points.items())
        return {"resultType": "matrix", "result": [{"metric": dict(key), "values": points} for key, points in series]}


def _point(time: float, value: float) -> list[Any]:
    return [moment(time), number_text(value)]
