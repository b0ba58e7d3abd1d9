"""Inputs that correspond to the actual resource, after a refresh and after an import.

A refresh covers only the properties that the program sets, so that drift shows as a difference of exactly these: a
list has no more members than the program's, and what was added shows in the outputs alone. An import takes every
property that can be set and differs from its zero and its default.
"""

from collections.abc import Mapping
from typing import Any

from bezel_pulumi_offline.lifecycle.check import DEFAULTS
from bezel_pulumi_offline.lifecycle.comparisons import KEPT
from bezel_pulumi_offline.lifecycle.fields import Field, Fields, Kind, Mark
from bezel_pulumi_offline.lifecycle.mapping import zero
from bezel_pulumi_offline.lifecycle.values import Properties


def refresh_inputs(fields: Fields, inputs: Mapping[str, Any], actual: Mapping[str, Any]) -> Properties:
    """Return the program's inputs with the values of the actual resource."""
    by_name = {field.name: field for field in fields}
    result: Properties = {}
    for name, value in inputs.items():
        if name == DEFAULTS or name not in by_name:
            result[name] = value
            continue
        current = _refreshed_value(by_name[name], value, actual.get(name))
        if current is not None:
            result[name] = current
    if DEFAULTS in inputs:
        result[DEFAULTS] = [name for name in inputs[DEFAULTS] if result.get(name) == inputs.get(name)]
    return result


def _refreshed_value(field: Field, value: Any, current: Any) -> Any:
    if field.kind is Kind.BLOCK and isinstance(value, Mapping) and isinstance(current, Mapping):
        return refresh_inputs(field.fields, value, current)
    if field.kind is Kind.BLOCKS and isinstance(value, list) and isinstance(current, list):
        befores = _match_members(value, current) if field.marks & Mark.SET else list(enumerate(current[: len(value)]))
        return [refresh_inputs(field.fields, value[index], item) for index, item in befores]
    if zero(current) and zero(value):
        return value
    if isinstance(current, list) and isinstance(value, list):
        current = current[: len(value)]
    keeps = current is None or field.same in KEPT
    return value if field.same and field.same(current, value) and keeps else current


def _match_members(value: list[Any], current: list[Any]) -> list[tuple[int, Any]]:
    """Return the members of a set in the program's order, each with its place there; other ones get the free places."""
    free, places, others = list(range(len(value))), [], []
    for item in current:
        alike = {place: _equal_values(value[place], item) for place in free}
        best = max(alike, key=lambda place: alike[place], default=len(value))
        if alike.get(best):
            free.remove(best)
            places.append((best, item))
        else:
            others.append(item)
    return sorted([*places, *zip(free, others, strict=False)], key=lambda pair: pair[0])


def _equal_values(one: Any, other: Any) -> int:
    """Return in how many of its properties a member of the program equals one of the actual resource."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return int(one == other)
    return sum(one[name] == other.get(name) for name in one if name != DEFAULTS)


def import_inputs(fields: Fields, actual: Mapping[str, Any]) -> Properties:
    """Return the inputs that would create the actual resource."""
    result: Properties = {DEFAULTS: []}
    for field in fields:
        value = actual.get(field.name)
        if (
            value is None
            or field.marks & (Mark.OUTPUT | Mark.ECHOED | Mark.REFUSED)
            or zero(value)
            or (value == field.default and field.name != "deletionPolicy")
        ):
            continue
        if field.kind is Kind.BLOCK:
            result[field.name] = import_inputs(field.fields, value)
        elif field.kind is Kind.BLOCKS and isinstance(value, list):
            result[field.name] = [import_inputs(field.fields, item) for item in value]
        elif not field.name.startswith("effective"):
            result[field.name] = value
    return result
