"""Values of vLLM's options against the recorded schemas of its configuration classes: bounds, words, keys of maps.

Accepts what vLLM's own classes accept: a number may be text, a switch a word or 0 and 1. Leaves what the parser itself
refuses to bezel.planner.vllm.option_checks.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_catalog.option_values import as_float, as_int

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_SWITCHES = ("true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "1", "0")
_BOUNDS: tuple[tuple[str, str, Callable[[float, float], bool]], ...] = (
    ("minimum", "of at least", operator.ge),
    ("exclusiveMinimum", "above", operator.gt),
    ("maximum", "of at most", operator.le),
    ("exclusiveMaximum", "below", operator.lt),
)


@dataclass(frozen=True, slots=True)
class Misfit:
    """A part of a value that does not fit: its path of keys and positions, its value, and what is expected.

    `choices` are the valid words or keys; `unknown_key` marks a key that is not one of them.
    """

    path: tuple[str, ...]
    value: object
    expected: str
    choices: tuple[str, ...] = ()
    unknown_key: bool = False


def misfits(schema: Mapping[str, Any], value: object, path: tuple[str, ...] = ()) -> Iterator[Misfit]:
    """Every part of the value that vLLM's class refuses."""
    if "anyOf" in schema:
        yield from _any_of(schema["anyOf"], value, path)
    elif "const" in schema or "enum" in schema:
        choices = tuple(str(word) for word in schema.get("enum", [schema.get("const")]))
        if str(value) not in choices or isinstance(value, bool):
            yield Misfit(path, value, f"one of {', '.join(choices)}", choices)
    elif schema.get("type") in ("integer", "number"):
        yield from _number(schema, value, path)
    elif schema.get("type") == "array":
        yield from _array(schema, value, path)
    elif schema.get("type") == "object":
        yield from _object(schema, value, path)
    elif not _is_plain(schema.get("type"), value):
        yield Misfit(path, value, {"boolean": "true or false", "string": "text", "null": "null"}[schema["type"]])


def _is_plain(kind: str | None, value: object) -> bool:
    if kind == "boolean":
        return isinstance(value, bool) or value in (0, 1) or (isinstance(value, str) and value.lower() in _SWITCHES)
    if kind == "string":
        return isinstance(value, str)
    return kind is None or value is None


def _any_of(branches: list[Any], value: object, path: tuple[str, ...]) -> Iterator[Misfit]:
    """Nothing where a branch accepts the value; else the misfit of the branch of its kind, or all expected kinds."""
    refusals = [list(misfits(branch, value, path)) for branch in branches]
    if not all(refusals):
        return
    deeper = [refusal for refusal in refusals if refusal[0].path != path or refusal[0].choices]
    if len(deeper) == 1:
        yield from deeper[0]
    else:
        kinds = dict.fromkeys(refusal[0].expected for refusal in refusals if refusal[0].expected != "null")
        yield Misfit(path, value, ", or ".join(kinds))


def _number(schema: Mapping[str, Any], value: object, path: tuple[str, ...]) -> Iterator[Misfit]:
    whole = schema["type"] == "integer"
    number = as_int(value) if whole else as_float(value)
    bounds = [f"{phrase} {schema[key]:g}" for key, phrase, _ in _BOUNDS if key in schema]
    expected = f"a {'whole ' if whole else ''}number{' ' if bounds else ''}{' and '.join(bounds)}"
    if isinstance(value, bool):
        number = int(value)
    if number is None or any(key in schema and not holds(number, schema[key]) for key, _, holds in _BOUNDS):
        yield Misfit(path, value, expected)


def _array(schema: Mapping[str, Any], value: object, path: tuple[str, ...]) -> Iterator[Misfit]:
    if not isinstance(value, list):
        yield Misfit(path, value, "a list")
        return
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield Misfit(path, value, f"a list of {schema.get('minItems', 0)} or more")
    for position, part in enumerate(value):
        yield from misfits(schema.get("items") or {}, part, (*path, str(position)))


def _object(schema: Mapping[str, Any], value: object, path: tuple[str, ...]) -> Iterator[Misfit]:
    if not isinstance(value, dict):
        yield Misfit(path, value, "a map, written as keys and values")
        return
    properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for key, part in value.items():
        if key in properties:
            yield from misfits(properties[key], part, (*path, str(key)))
        elif others is False:
            yield Misfit((*path, str(key)), part, "a known key", tuple(properties), unknown_key=True)
        elif isinstance(others, dict):
            yield from misfits(others, part, (*path, str(key)))
    for key in schema.get("required", ()):
        if key not in value:
            yield Misfit((*path, key), None, "a value: it is required")
