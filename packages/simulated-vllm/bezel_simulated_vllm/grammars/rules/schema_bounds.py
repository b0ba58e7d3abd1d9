"""Rules of xgrammar's JSON schemas about bounds: of numbers, of the length of texts, of the sizes of lists and objects.

Source: the behaviour of xgrammar 0.2.8 (`Grammar.from_json_schema`, strict). Whole numbers are read as 64 bits, counts
become 32 bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.grammars.verdicts import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

Schema = dict[str, Any]
_MOST_COUNT = 2**31 - 1
# Larger multiples, and those in wider ranges, are ignored.
_MOST_STEP, _MOST_WIDTH = 1024, 10_000
# What the library's reader of JSON says of another value where it expects a text.
_NO_TEXT = '"type mismatch! call is<type>() before get<type>()" && is<std::string>()'
_LEAST, _MOST = -(2**63), 2**63 - 1


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and _LEAST <= value <= _MOST


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RefusedError("Value must be a number")
    return value


def _integer_bound(value: Any) -> int:
    number = _number(value)
    if _is_whole(number):
        return int(number)
    real = float(number) if abs(number) < 1e308 else math.inf
    if real != math.floor(real) if math.isfinite(real) else False:
        raise RefusedError("Integer constraint must be a whole number")
    if not _LEAST < real < _MOST:
        text = "Integer exceeds maximum limit due to precision loss at 64-bit boundary"
        raise RefusedError(f"Check failed: (false) is false: {text}")
    return int(real)


def _check_integer(node: Schema) -> None:
    _check_multiple(node)
    low, high = _LEAST, _MOST
    for word, step in (("minimum", 0), ("exclusiveMinimum", 1)):
        if word in node:
            low = max(low, _integer_bound(node[word]) + step)
    for word, step in (("maximum", 0), ("exclusiveMaximum", -1)):
        if word in node:
            high = min(high, _integer_bound(node[word]) + step)
    if low > high:
        raise RefusedError("Invalid range: minimum greater than maximum")
    step = node.get("multipleOf", 0)
    narrow = 0 < step <= _MOST_STEP and step == int(step) and high - low < _MOST_WIDTH
    if narrow and -(-low // int(step)) * int(step) > high:
        raise RefusedError("range contains no multipleOf value")


def _check_multiple(node: Schema) -> None:
    if "multipleOf" in node and _number(node["multipleOf"]) <= 0:
        raise RefusedError("multipleOf must be greater than 0")


def _check_number(node: Schema) -> None:
    _check_multiple(node)
    bounds = {
        word: _number(node[word])
        for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        if word in node
    }
    for low in ("minimum", "exclusiveMinimum"):
        for high in ("maximum", "exclusiveMaximum"):
            if low in bounds and high in bounds:
                least, most = bounds[low], bounds[high]
                if least > most or (least == most and (low, high) != ("minimum", "maximum")):
                    raise RefusedError("Invalid range: empty range")


def _check_text(node: Schema) -> None:
    if not all(isinstance(node.get(word, ""), str) for word in ("format", "pattern")):
        raise RefusedError(_NO_TEXT)
    low: Any = node.get("minLength", 0)
    high: Any = node.get("maxLength")
    if not _is_whole(low) or low > _MOST_COUNT:
        raise RefusedError(f"minLength must be an integer not exceeding {_MOST_COUNT}")
    if "maxLength" in node:
        if not _is_whole(high):
            raise RefusedError("maxLength must be an integer")
        most = _as_32_bits(high) if high <= _MOST_COUNT else -1
        if most != -1 and _as_32_bits(low) > most:
            raise RefusedError(f"minLength {low} is greater than maxLength {high}")


def _check_list(node: Schema) -> None:
    first = node.get("prefixItems", [])
    if not isinstance(first, list):
        raise RefusedError("prefixItems must be an array")
    for item in first:
        if not isinstance(item, dict):
            raise RefusedError("prefixItems must be an array of objects or booleans")
    word = "items" if "items" in node else "unevaluatedItems"
    if not isinstance(node.get(word, False), bool | dict):
        raise RefusedError(f"{word} must be a boolean or an object")
    low, high = _list_sizes(node)
    if high is not None and (low > high or high < len(first)):
        raise RefusedError(f"minItems is greater than maxItems: {low} > {high}")
    if node.get(word, False) is False and low > len(first):
        text = "minItems is greater than the number of prefixItems, but additional items are not allowed"
        raise RefusedError(f"{text}: {low} > {len(first)}")


def _list_sizes(node: Schema) -> tuple[int, int | None]:
    """Return the least and the largest size of a list, None where it has no bound."""
    low = 0
    for name in ("minItems", "minContains"):
        if name in node:
            if not _is_whole(node[name]):
                raise RefusedError(f"{name} must be an integer")
            low = max(low, node[name])
    high: Any = node.get("maxItems")
    if "maxItems" in node and (not _is_whole(high) or high < 0):
        raise RefusedError("maxItems must be a non-negative integer")
    if low > _MOST_COUNT:
        raise RefusedError(f"minItems and minContains must not exceed {_MOST_COUNT}")
    return low, None if high is None or high > _MOST_COUNT else high


def _check_object(node: Schema) -> None:
    for word in ("properties", "patternProperties", "propertyNames"):
        if word in node and not isinstance(node[word], dict):
            raise RefusedError(f"{word} must be an object")
    required = node.get("required", [])
    if not isinstance(required, list):
        raise RefusedError("required must be an array")
    if not all(isinstance(name, str) for name in required):
        raise RefusedError(_NO_TEXT)
    kind = node.get("propertyNames", {}).get("type")
    if isinstance(kind, str) and kind != "string":
        raise RefusedError("propertyNames must be an object that validates string")
    low, high = _object_size(node, "minProperties"), _object_size(node, "maxProperties")
    if high is not None and ((low or 0) > high or len(set(required)) > high):
        raise RefusedError(f"minProperties is greater than maxProperties: {low} > {high}")
    closed = not node.get("patternProperties") and "propertyNames" not in node and not _takes_more(node)
    if closed and (low or 0) > (count := len(node.get("properties", {}))):
        text = "minProperties is greater than the number of properties, but additional properties aren't allowed"
        raise RefusedError(f"{text}: {low} > {count}")


def _object_size(node: Schema, word: str) -> int | None:
    if word not in node:
        return None
    if not _is_whole(node[word]):
        raise RefusedError(f"{word} must be an integer")
    if _as_32_bits(node[word]) < 0:
        raise RefusedError(f"{word} must be a non-negative integer")
    return _as_32_bits(node[word])


def _takes_more(node: Schema) -> bool:
    """Whether an object may have further properties; it may not where the schema says nothing."""
    if "additionalProperties" in node:
        return node["additionalProperties"] is not False
    return node.get("unevaluatedProperties", False) is not False


def _as_32_bits(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


BOUNDS: dict[str, Callable[[Schema], None]] = {
    "integer": _check_integer,
    "number": _check_number,
    "string": _check_text,
    "array": _check_list,
    "object": _check_object,
}
