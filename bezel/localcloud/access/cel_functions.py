"""Operators and functions of the Common Expression Language on plain values (`bezel.localcloud.access.cel`). Pure.

A value is a text, a number, a boolean, None, a list or a map, as JSON has them. Values of two kinds are never equal,
and have no order.
"""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any


class EvaluationError(Exception):
    """An expression without a value for these claims, such as one that reads an absent claim."""


def boolean(value: Any) -> bool:
    """Return a condition's value.

    Raises:
        EvaluationError: It is neither true nor false.
    """
    if not isinstance(value, bool):
        raise EvaluationError("a condition that is neither true nor false")
    return value


def number(value: Any) -> Any:
    """Return a number.

    Raises:
        EvaluationError: It is of another kind.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EvaluationError("a number is needed")
    return value


def _kind(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(type(value))
    kinds: list[tuple[Any, str]] = [(int | float, "number"), (str, "text"), (list, "list"), (Mapping, "map")]
    return next((name for kind, name in kinds if isinstance(value, kind)), "other")


def same_kind(left: Any, right: Any) -> bool:
    """Whether two values are of one kind, as only such values can be equal."""
    return _kind(left) == _kind(right)


def _equal(left: Any, right: Any) -> bool:
    return same_kind(left, right) and bool(left == right)


def _contained(item: Any, of: Any) -> bool:
    if isinstance(of, Mapping):
        return any(_equal(item, key) for key in of)
    if isinstance(of, list):
        return any(_equal(item, other) for other in of)
    raise EvaluationError("no matching overload for 'in'")


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def evaluate(left: Any, right: Any) -> bool:
        if not same_kind(left, right) or _kind(left) not in {"number", "text"}:
            raise EvaluationError("values that have no order")
        return compare(left, right)

    return evaluate


def _added(left: Any, right: Any) -> Any:
    if not same_kind(left, right) or _kind(left) not in {"number", "text", "list"}:
        raise EvaluationError("no matching overload for '+'")
    return left + right


def _arithmetic(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def evaluate(left: Any, right: Any) -> Any:
        try:
            return compute(number(left), number(right))
        except ZeroDivisionError:
            raise EvaluationError("division by zero") from None

    return evaluate


def _extracted(text: str, template: str) -> str:
    """The part of a text at the place of `{name}` in a template; empty where the template does not fit."""
    parts = re.fullmatch(r"([^{}]*)\{\w+\}([^{}]*)", template)
    if parts is None:
        raise ValueError(template)
    _, found, rest = text.partition(parts[1]) if parts[1] else ("", "x", text)
    if not found:
        return ""
    return rest if not parts[2] else rest[: rest.index(parts[2])] if parts[2] in rest else ""


def _has_part(text: str, part: str) -> bool:
    return str.find(text, part) >= 0


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise TypeError


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "in": _contained,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "+": _added,
    "-": _arithmetic(operator.sub),
    "*": _arithmetic(operator.mul),
    "/": _arithmetic(lambda left, right: left / right if isinstance(left, float) else int(left / right)),
    "%": _arithmetic(lambda left, right: left - right * int(left / right)),
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"size": len, "string": _shown, "int": int}
METHODS: dict[str, Callable[..., Any]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": _has_part,
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
    "size": len,
    "lowerAscii": str.lower,
    "upperAscii": str.upper,
    "trim": str.strip,
    "split": str.split,
    "join": lambda items, by="": str.join(by, items),
    "replace": str.replace,
    "extract": _extracted,
}
