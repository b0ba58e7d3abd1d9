"""Functions and methods of the Common Expression Language on values. Pure.

Each counts what it reads and makes before it does so (`Meter`). A wrong number or kind of arguments is a TypeError or a
ValueError, which `evaluator` words.
"""

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from bezel_localcloud.access.cel.operators import Operation
from bezel_localcloud.access.cel.times import (
    PARTS,
    SECOND,
    SPANS,
    Duration,
    Timestamp,
    day_of,
    duration_of,
    local_time,
    moment,
    text_of_duration,
    text_of_timestamp,
    timestamp_of,
    zone_of,
)
from bezel_localcloud.access.cel.values import EvaluationError, Meter, in_range, kind_of
from bezel_localcloud.core.patterns import regular_expression

_WHOLE = re.compile(r"[+-]?[0-9]{1,25}")
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,4})?|NaN|[+-]?Inf(?:inity)?"
)
_TEMPLATE = re.compile(r"([^{}]*)\{\w+\}([^{}]*)")
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: upper for upper, lower in _LOWER.items()}
_WIDEST_EXPONENT = 21  # of a number that is written without one


def extract(meter: Meter, text: str, template: str) -> str:
    """The part of a text at the place of `{name}` in a template; empty where the template does not fit."""
    meter.reads(_text(text), _text(template))
    parts = _TEMPLATE.fullmatch(template)
    if parts is None:
        raise ValueError(template)
    _, separator, rest = text.partition(parts[1]) if parts[1] else ("", "x", text)
    if not separator:
        return ""
    return rest if not parts[2] else rest[: rest.index(parts[2])] if parts[2] in rest else ""


def to_text(meter: Meter, value: Any) -> str:
    """A value as text.

    Raises:
        TypeError: It is a list, a map or None.
    """
    meter.work.spend()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _text_of_double(value)
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, Timestamp):
        return text_of_timestamp(value)
    if isinstance(value, Duration):
        return text_of_duration(value)
    raise TypeError


def to_int(meter: Meter, value: Any) -> int:
    """A value as a whole number, of a number without what follows its point.

    Raises:
        EvaluationError: It does not fit 64 bits.
        TypeError: It is of another kind.
        ValueError: It is a text of something else.
    """
    meter.work.spend()
    if isinstance(value, str):
        if not _WHOLE.fullmatch(value):
            raise ValueError
        return int(in_range(int(value)))
    if isinstance(value, Timestamp):
        return value.nanoseconds // SECOND
    if kind_of(value) != "number":
        raise TypeError
    if isinstance(value, float) and not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(in_range(int(value)))


def to_double(meter: Meter, value: Any) -> float:
    """A value as a number with a point.

    Raises:
        TypeError: It is neither a number nor a text.
        ValueError: It is a text of something else.
    """
    meter.work.spend()
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError
    if not isinstance(value, str) and kind_of(value) != "number":
        raise TypeError
    return float(value)


def to_timestamp(meter: Meter, value: Any) -> Timestamp:
    """A moment of its text or of seconds since 1970.

    Raises:
        EvaluationError: It is no moment of the years 1 to 9999.
    """
    meter.work.spend()
    if isinstance(value, Timestamp):
        return value
    return timestamp_of(value) if isinstance(value, str) else moment(_limit(value) * SECOND)


def to_duration(meter: Meter, value: Any) -> Duration:
    """A span of time of its text.

    Raises:
        EvaluationError: It is no such span.
    """
    meter.work.spend()
    return value if isinstance(value, Duration) else duration_of(_text(value))


def to_date(meter: Meter, value: Any) -> Timestamp:
    """Midnight in UTC of a day of its text.

    Raises:
        EvaluationError: It is no day.
    """
    meter.work.spend()
    return day_of(_text(value))


def has_only(meter: Meter, items: Any, allowed: Any) -> bool:
    """Whether a list has no elements but those of another one.

    Raises:
        TypeError: One of them is no list of texts.
    """
    if not isinstance(items, list) or not isinstance(allowed, list):
        raise TypeError
    meter.reads(items, allowed)
    return set(map(_text, items)) <= set(map(_text, allowed))


def get_attribute(meter: Meter, of: Any, name: Any, default: Any) -> Any:
    """An attribute of a request to an API, the default where the request has none."""
    meter.work.spend()
    return of.get(_text(name), default)


def _text_of_double(value: float) -> str:
    """A number as Go's shortest form writes it, which Google's evaluator uses."""
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}[str(value)]
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    place = len(digits) - 1 + int(exponent)
    if value and not -5 < place < _WIDEST_EXPONENT:
        text = "".join(map(str, digits))
        point = f".{text[1:]}" if text[1:] else ""
        return f"{'-' * sign}{text[0]}{point}e{'-' if place < 0 else '+'}{abs(place):02}"
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _part_of(name: str) -> Operation:
    """The method that returns a part of a moment in a time zone, or of a duration."""

    def evaluate(meter: Meter, when: Any, zone: Any = "UTC") -> int:
        meter.work.spend()
        if isinstance(when, Duration):
            if zone != "UTC" or name not in {*SPANS, "getMilliseconds"}:
                raise TypeError
            length = abs(when.nanoseconds)
            size = length % SECOND // 1_000_000 if name == "getMilliseconds" else length // SPANS[name]
            return -size if when.nanoseconds < 0 else size
        if not isinstance(when, Timestamp):
            raise TypeError
        if name == "getMilliseconds":
            zone_of(_text(zone))
            return when.nanoseconds % SECOND // 1_000_000
        return PARTS[name](local_time(when, _text(zone)))

    return evaluate


def _size(meter: Meter, value: Any) -> int:
    meter.work.spend()
    return len(value)


def _of_texts(function: Callable[..., Any]) -> Operation:
    """A function of texts whose result is no larger than they are."""

    def evaluate(meter: Meter, *texts: Any) -> Any:
        meter.reads(*map(_text, texts))
        return function(*texts)

    return evaluate


def _matches(meter: Meter, text: Any, pattern: Any) -> bool:
    return regular_expression(_text(pattern), meter.work).found_in(_text(text), meter.work)


def _split(meter: Meter, text: Any, separator: Any, most: int = -1) -> list[str]:
    meter.reads(_text(text), _text(separator))
    meter.makes(1 + len(text) + (text.count(separator) if separator else len(text)))
    if not _limit(most):
        return []
    if separator:
        parts: list[str] = text.split(separator, most - 1 if most > 0 else -1)
        return parts
    single = list(text)
    return single if most < 0 or len(single) <= most else [*single[: most - 1], "".join(single[most - 1 :])]


def _join(meter: Meter, items: Any, by: Any = "") -> str:
    if not isinstance(items, list):
        raise TypeError
    meter.reads(items)
    meter.makes(1 + sum(len(_text(item)) + len(_text(by)) for item in items))
    return str(by).join(items)


def _replace(meter: Meter, text: Any, old: Any, new: Any, most: int = -1) -> str:
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


_TRIMMED = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
FUNCTIONS: dict[str, Operation] = {
    "size": _size,
    ".size": _size,
    "string": to_text,
    "int": to_int,
    "double": to_double,
    "dyn": lambda _, value: value,
    "timestamp": to_timestamp,
    "duration": to_duration,
    "date": to_date,
    "matches": _matches,
    ".matches": _matches,
    ".startsWith": _of_texts(str.startswith),
    ".endsWith": _of_texts(str.endswith),
    ".contains": _of_texts(lambda text, part: part in text),
    ".lowerAscii": _of_texts(lambda text: text.translate(_LOWER)),
    ".upperAscii": _of_texts(lambda text: text.translate(_UPPER)),
    ".trim": _of_texts(lambda text: text.strip(_TRIMMED)),
    ".split": _split,
    ".join": _join,
    ".replace": _replace,
    ".extract": extract,
    ".getAttribute": get_attribute,
    ".hasOnly": has_only,
    **{f".{name}": _part_of(name) for name in (*PARTS, "getMilliseconds")},
}


def check_constants(name: str, arguments: Sequence[Any]) -> Any:
    """Check the constant arguments of a call, so that a wrong time or time zone is known before it is evaluated.

    Args:
        name: The function.
        arguments: Values of its constant arguments, None for the others.

    Returns:
        The value of a function whose arguments are all constants; None for one that is evaluated each time.

    Raises:
        EvaluationError: A time or a time zone is wrong.
    """
    if name in _CONSTANT and len(arguments) == 1 and isinstance(arguments[0], str):
        return FUNCTIONS[name](Meter(), arguments[0])
    if name[1:] in PARTS and len(arguments) == 2 and isinstance(arguments[1], str):
        zone_of(arguments[1])
    return None


_CONSTANT = frozenset({"timestamp", "duration", "date"})
