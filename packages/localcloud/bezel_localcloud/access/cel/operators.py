"""Operators of the Common Expression Language on values. Pure.

Each counts what it reads and makes before it does so (`Meter`), and raises an EvaluationError for what it does not
take: the types of values that are `dyn` are known only here.
"""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from bezel_localcloud.access.cel.times import Duration, Timestamp, moment, span
from bezel_localcloud.access.cel.values import EvaluationError, Meter, are_equal, has_key, in_range, kind_of, same_kind

_ORDERED = frozenset({"number", "text", "boolean"})


def equal(meter: Meter, left: Any, right: Any) -> bool:
    """Whether two values are equal.

    Raises:
        TooMuchWorkError: It takes more steps than what is left.
    """
    meter.compares(left, right)
    return are_equal(left, right)


def contain(meter: Meter, item: Any, of: Any) -> bool:
    """Whether a list has an element, or a map a key.

    Raises:
        EvaluationError: It is neither a list nor a map.
        TooMuchWorkError: It takes more steps than what is left.
    """
    if isinstance(of, Mapping):
        meter.reads(of)
        return has_key(of, item)
    if not isinstance(of, list):
        raise no_overload("in")
    return any(equal(meter, item, other) for other in of)


def element(meter: Meter, of: Any, key: Any) -> Any:
    """A list's element, or a map's value.

    Raises:
        EvaluationError: There is none.
        TooMuchWorkError: It takes more steps than what is left.
    """
    meter.work.spend()
    if isinstance(of, Mapping):
        if not isinstance(key, str):
            meter.reads(of)
        if has_key(of, key):
            return of[key]
        raise EvaluationError(f"no such key: {str(key)[:100]}")
    if isinstance(of, list) and _is_whole(key) and 0 <= key < len(of):
        return of[int(key)]
    raise EvaluationError("no such element")


def negate(meter: Meter, value: Any) -> Any:
    """A number with the other sign.

    Raises:
        EvaluationError: It is no number, or does not fit 64 bits then.
    """
    meter.work.spend()
    if kind_of(value) != "number":
        raise no_overload("-")
    return in_range(-value)


def add(meter: Meter, left: Any, right: Any) -> Any:
    """The sum of two numbers or times, or two texts or lists as one.

    Raises:
        EvaluationError: They have no sum.
        TooMuchWorkError: The value is too large.
    """
    meter.makes(meter.weight(left) + meter.weight(right))
    if type(left) is type(right) and (_are_numbers(left, right) or isinstance(left, str | list)):
        return in_range(left + right)
    match left, right:
        case (Timestamp(), Duration()) | (Duration(), Timestamp()):
            return moment(left.nanoseconds + right.nanoseconds)
        case Duration(), Duration():
            return span(left.nanoseconds + right.nanoseconds)
    raise no_overload("+")


def subtract(meter: Meter, left: Any, right: Any) -> Any:
    """The difference of two numbers or times.

    Raises:
        EvaluationError: They have none.
    """
    meter.work.spend()
    if _are_numbers(left, right):
        return in_range(left - right)
    match left, right:
        case Timestamp(), Duration():
            return moment(left.nanoseconds - right.nanoseconds)
        case (Timestamp(), Timestamp()) | (Duration(), Duration()):
            return span(left.nanoseconds - right.nanoseconds)
    raise no_overload("-")


def multiply(meter: Meter, left: Any, right: Any) -> Any:
    """The product of two numbers.

    Raises:
        EvaluationError: They are none, or it does not fit 64 bits.
    """
    meter.work.spend()
    if not _are_numbers(left, right):
        raise no_overload("*")
    return in_range(left * right)


def divide(meter: Meter, left: Any, right: Any) -> Any:
    """The quotient of two numbers; of whole numbers the whole part, towards zero.

    Raises:
        EvaluationError: They are no numbers, or the divisor is zero.
    """
    meter.work.spend()
    if not _are_numbers(left, right):
        raise no_overload("/")
    if isinstance(left, float):
        return left / right if right else _infinite(left, right)
    if right == 0:
        raise EvaluationError("division by zero")
    return in_range(_quotient(left, right))


def remainder(meter: Meter, left: Any, right: Any) -> Any:
    """The rest of a division of whole numbers, with the sign of the dividend.

    Raises:
        EvaluationError: They are no whole numbers, or the divisor is zero.
    """
    meter.work.spend()
    if not _are_numbers(left, right) or isinstance(left, float):
        raise no_overload("%")
    if right == 0:
        raise EvaluationError("modulus by zero")
    return left - right * _quotient(left, right)


def no_overload(name: str) -> EvaluationError:
    """The error of arguments that an operator or a function does not take."""
    return EvaluationError(f"no matching overload for '{name}'")


def _order(compare: Callable[[Any, Any], bool]) -> "Operation":
    def evaluate(meter: Meter, left: Any, right: Any) -> bool:
        if not same_kind(left, right) or (kind_of(left) not in _ORDERED and not isinstance(left, Timestamp | Duration)):
            raise EvaluationError("values that have no order")
        meter.compares(left, right)
        if isinstance(left, float) != isinstance(right, float):  # both as doubles, which may lose digits
            return compare(float(left), float(right))
        return compare(left, right)

    return evaluate


def _are_numbers(left: Any, right: Any) -> bool:
    """Whether two values are numbers of the same type, as only such numbers are added."""
    return type(left) is type(right) and kind_of(left) == "number"


def _is_whole(value: Any) -> bool:
    return kind_of(value) == "number" and (isinstance(value, int) or value.is_integer())


def _quotient(left: int, right: int) -> int:
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


def _infinite(left: float, right: float) -> float:
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


Operation = Callable[..., Any]
"""An operator or a function, called with the meter and the values of its arguments."""
OPERATORS: dict[str, Operation] = {
    "==": equal,
    "!=": lambda meter, left, right: not equal(meter, left, right),
    "in": contain,
    "[]": element,
    "<": _order(operator.lt),
    "<=": _order(operator.le),
    ">": _order(operator.gt),
    ">=": _order(operator.ge),
    "negate": negate,
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
}
