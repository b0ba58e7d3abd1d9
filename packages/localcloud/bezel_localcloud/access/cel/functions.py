"""Operators and functions of the Common Expression Language on plain values. Pure.

Each counts what it reads and makes before it does so (`Meter`). A wrong number or kind of arguments is a TypeError or a
ValueError, which `evaluator` words.
"""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from bezel_localcloud.access.cel.values import EvaluationError, Meter, in_range, kind_of, number, same_kind
from bezel_localcloud.core.patterns import regular_expression

Operation = Callable[[Meter, Any, Any], Any]

_WHOLE = re.compile(r"[+-]?[0-9]{1,25}")
_TEMPLATE = re.compile(r"([^{}]*)\{\w+\}([^{}]*)")
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: upper for upper, lower in _LOWER.items()}


def _equal(meter: Meter, left: Any, right: Any) -> bool:
    meter.compares(left, right)
    return same_kind(left, right) and bool(left == right)


def _contained(meter: Meter, item: Any, of: Any) -> bool:
    if not isinstance(of, list | Mapping):
        raise EvaluationError("no matching overload for 'in'")
    return any(_equal(meter, item, other) for other in of)


def _ordered(compare: Callable[[Any, Any], bool]) -> Operation:
    def evaluate(meter: Meter, left: Any, right: Any) -> bool:
        if not same_kind(left, right) or kind_of(left) not in {"number", "text"}:
            raise EvaluationError("values that have no order")
        meter.compares(left, right)
        return compare(left, right)

    return evaluate


def _added(meter: Meter, left: Any, right: Any) -> Any:
    if not same_kind(left, right) or kind_of(left) not in {"number", "text", "list"}:
        raise EvaluationError("no matching overload for '+'")
    meter.makes(meter.weight(left) + meter.weight(right))
    return in_range(left + right)


def _arithmetic(compute: Callable[[Any, Any], Any]) -> Operation:
    def evaluate(meter: Meter, left: Any, right: Any) -> Any:
        meter.work.spend()
        try:
            return in_range(compute(number(left), number(right)))
        except ZeroDivisionError:
            raise EvaluationError("division by zero") from None
        except OverflowError:  # a whole number of 64 bits fits a float, but not the other way round
            raise EvaluationError("a number that is too large") from None

    return evaluate


def _quotient(left: Any, right: Any) -> Any:
    """The quotient; of whole numbers the whole part, towards zero."""
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, float) or isinstance(right, float):
        raise EvaluationError("no matching overload for '%'")
    return left - right * _quotient(left, right)


def _extracted(meter: Meter, text: str, template: str) -> str:
    """The part of a text at the place of `{name}` in a template; empty where the template does not fit."""
    meter.reads(_text(text), _text(template))
    parts = _TEMPLATE.fullmatch(template)
    if parts is None:
        raise ValueError(template)
    _, found, rest = text.partition(parts[1]) if parts[1] else ("", "x", text)
    if not found:
        return ""
    return rest if not parts[2] else rest[: rest.index(parts[2])] if parts[2] in rest else ""


def _text_of(_: Meter, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise TypeError


def _whole(meter: Meter, value: Any) -> int:
    meter.work.spend()
    if isinstance(value, str):
        if not _WHOLE.fullmatch(value):
            raise ValueError
        return int(in_range(int(value)))
    if kind_of(value) != "number":
        raise TypeError
    try:
        return int(in_range(int(value)))
    except OverflowError:  # infinite
        raise ValueError from None


def _size(meter: Meter, value: Any) -> int:
    meter.work.spend()
    return len(value)


def _of_texts(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of texts whose result is no larger than they are."""

    def evaluate(meter: Meter, *texts: Any) -> Any:
        meter.reads(*map(_text, texts))
        return function(*texts)

    return evaluate


def _matches(meter: Meter, text: Any, pattern: Any) -> bool:
    return regular_expression(_text(pattern), meter.work).found_in(_text(text), meter.work)


def _split(meter: Meter, text: Any, separator: Any, most: int = -1) -> list[str]:
    meter.reads(_text(text), _text(separator))
    if not separator:
        raise ValueError
    meter.makes(1 + len(text) + text.count(separator))
    found: list[str] = text.split(separator, _limit(most) - 1 if most > 0 else -1)
    return found if _limit(most) else []


def _joined(meter: Meter, items: Any, by: Any = "") -> str:
    if not isinstance(items, list):
        raise TypeError
    meter.reads(items)
    meter.makes(1 + sum(len(_text(item)) + len(_text(by)) for item in items))
    return str(by).join(items)


def _replaced(meter: Meter, text: Any, old: Any, new: Any, most: int = -1) -> str:
    meter.reads(_text(text), _text(old), _text(new))
    count = text.count(old) if _limit(most) < 0 else min(most, text.count(old))
    meter.makes(1 + len(text) + max(0, count * (len(new) - len(old))))
    return str(text).replace(old, new, most)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _limit(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


OPERATIONS: dict[str, Operation] = {
    "==": _equal,
    "!=": lambda meter, left, right: not _equal(meter, left, right),
    "in": _contained,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "+": _added,
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(_quotient),
    "%": _arithmetic(_remainder),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"size": _size, "string": _text_of, "int": _whole}
METHODS: dict[str, Callable[..., Any]] = {
    "startsWith": _of_texts(str.startswith),
    "endsWith": _of_texts(str.endswith),
    "contains": _of_texts(lambda text, part: part in text),
    "matches": _matches,
    "size": _size,
    "lowerAscii": _of_texts(lambda text: text.translate(_LOWER)),
    "upperAscii": _of_texts(lambda text: text.translate(_UPPER)),
    "trim": _of_texts(lambda text: text.strip()),
    "split": _split,
    "join": _joined,
    "replace": _replaced,
    "extract": _extracted,
}
