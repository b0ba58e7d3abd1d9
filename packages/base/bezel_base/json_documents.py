"""JSON documents that others wrote, read within bounds: objects of a bucket, answers of a forge, states, tokens.

`json.loads` fails on such a text in several ways: RecursionError where it nests deeply, ValueError where it is no JSON
or a whole number has more than 4,300 digits, and later OverflowError where a huge or infinite number is computed with,
or RecursionError where a deep value is written again. `read_json` knows one error, and its values cause none later.
Leaves out what the fields mean, and how large a document may be. Pure.
"""

import json
import math
import re
from typing import Any

DEEPEST = 100
"""Levels of lists and objects. The states and plans of the engine have about ten."""

MOST_VALUES = 200_000
"""Values of a document that a caller sent: to read and check more takes longer than other callers should wait."""

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_MOST_DIGITS = 22  # programs in Go and JavaScript write a float below 1e21 without an exponent


class TooManyValuesError(ValueError):
    """A document with more than `MOST_VALUES` values."""


def read_json(content: bytes | str) -> Any:
    """The value of a JSON text: finite numbers, whole ones of 22 digits at most, `DEEPEST` levels at most.

    Raises:
        ValueError: It is out of these bounds, or no JSON (RFC 8259): then it is a `json.JSONDecodeError`, but for NaN
            and Infinity.
    """
    try:
        value = json.loads(content, parse_int=_whole, parse_float=_real, parse_constant=_real)
    except RecursionError:
        raise _too_deep() from None
    check_depth(value)
    return value


def check_depth(value: Any) -> None:
    """Check how deep lists and objects nest.

    Raises:
        ValueError: Deeper than `DEEPEST` levels.
    """
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise _too_deep()


def read_encodable_json(content: bytes | str) -> Any:
    """As `read_json`, of texts that UTF-8 can encode: a server answers with what its callers sent.

    Raises:
        ValueError: As `read_json`, or a text has half a pair of surrogates (UnicodeEncodeError);
            TooManyValuesError, which is found before the document is read.
    """
    raw = content if isinstance(content, bytes) else content.encode(errors="replace")
    # The signs in texts are counted only where it matters: to find the texts takes most of the time.
    if _signs(raw) > MOST_VALUES and _signs(_STRING.sub(b"", raw)) > MOST_VALUES:
        raise TooManyValuesError(f"it has more than {MOST_VALUES} values")
    value = read_json(content)
    # `json` takes half a pair as an escape, as three bytes of UTF-8, and in UTF-16.
    if b"\\" in raw or not content.isascii():
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _signs(raw: bytes) -> int:
    """Signs that begin or separate values: as many as there are values, or more."""
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def whole_number(value: object, least: int, most: int) -> int:
    """A value of a document as a whole number.

    Raises:
        ValueError: It is of another type, or out of these bounds.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"expected a whole number from {least} to {most}")
    return value


def _whole(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a whole number of {len(text)} digits, which no field has")
    return int(text)


def _real(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]}: not a finite number")
    return number


def _too_deep() -> ValueError:
    return ValueError(f"lists and objects nest deeper than {DEEPEST} levels")
