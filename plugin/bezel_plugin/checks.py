"""The engine's calls on a check, carried out by the provider class that a Python program's dynamic resource has.

Names are in camel case at the engine and in Python's spelling at the class. The URN, which the class needs for its
progress messages, and the stack, for its commands, are added to each call and are no inputs. In a preview the results
are unknown: a dynamic resource has none there either. Leaves out the protocol and secrets (`servicer`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi

from bezel_base.errors import Problem
from bezel_components.base.check_resource import camel_case
from bezel_plugin.construct import InputsError
from bezel_plugin.schema.file import schema_names
from bezel_plugin.schema.package import fields_of_row
from bezel_plugin.table import CHECKS, Check

if TYPE_CHECKING:
    from pulumi.dynamic import ResourceProvider

    from bezel_plugin.schema.types import Field

_ADDED = ("urn", "stack")
_OF_PYTHON: Mapping[type, tuple[str, tuple[type, ...]]] = {
    str: ("a text", (str,)),
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int, float)),
    float: ("a number", (int, float)),
}


class CheckCalls:
    """Calls on one check.

    Args:
        urn: The resource's URN.

    Raises:
        InputsError: The package has no such check.
    """

    def __init__(self, urn: str) -> None:
        token = urn.split("::")[2].rpartition("$")[2]
        row = CHECKS.get(token)
        if row is None:
            raise InputsError(
                Problem(
                    f"type {token}", None, "the package bezel has no such check.", f"use one of {', '.join(CHECKS)}."
                )
            )
        self._row: Check = row
        self._fields = {field.key: field for field in fields_of_row(row)}
        self._names = {
            **{key: field.name for key, field in self._fields.items()},
            **{camel_case(n): n for n in row.outputs},
        }
        self._provider: ResourceProvider = row.make_provider()
        self._added = {"urn": urn, "stack": urn.split(":")[2]}
        self._name = urn.rpartition("::")[2]

    def check(self, olds: Mapping[str, Any], news: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """The inputs, and (input, what is wrong with it) for each that is."""
        given = {key: value for key, value in news.items() if value is not None and key not in _ADDED}
        failures = [*self._wrong(given)]
        if failures:
            return given, failures
        inputs = self._defaults() | self._inside(given)
        checked = self._provider.check(self._inside(olds), {**inputs, **self._added})
        failures = [(camel_case(each.property), schema_names().in_text(each.reason)) for each in checked.failures]
        return self._outside(checked.inputs), failures

    def differs(self, id_: str, olds: Mapping[str, Any], news: Mapping[str, Any]) -> tuple[bool, list[str]]:
        """Whether it runs again, and the inputs that require another resource."""
        result = self._provider.diff(id_, self._inside(olds), {**self._inside(news), **self._added})
        return bool(result.changes), [camel_case(key) for key in result.replaces or ()]

    def create(self, inputs: Mapping[str, Any], *, preview: bool) -> tuple[str, dict[str, Any]]:
        """Run it; its id and its state."""
        if preview:
            return "", self._unknown(inputs)
        made = self._provider.create({**self._inside(inputs), **self._added})
        return str(made.id), self._outside(made.outs or {})

    def update(self, id_: str, olds: Mapping[str, Any], news: Mapping[str, Any], *, preview: bool) -> dict[str, Any]:
        """Run it again; its state."""
        if preview:
            return self._unknown(news)
        made = self._provider.update(id_, self._inside(olds), {**self._inside(news), **self._added})
        return self._outside(made.outs or {})

    def read(self, id_: str, properties: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Its id and state at present; the id is "" where what it checks is gone."""
        found = self._provider.read(id_, {**self._inside(properties), **self._added})
        return str(found.id or ""), self._outside(found.outs or {})

    def delete(self, id_: str, properties: Mapping[str, Any]) -> None:
        """End it."""
        self._provider.delete(id_, {**self._inside(properties), **self._added})

    def _unknown(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        return {**inputs, **{camel_case(name): pulumi.UNKNOWN for name in self._row.outputs}}

    def _inside(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        return {self._names[key]: value for key, value in properties.items() if key in self._names}

    def _outside(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """The state: what the class returns, without what was added, and without outputs that are not declared."""
        named = {name: key for key, name in self._names.items()}
        return {named[name]: value for name, value in properties.items() if name in named and value is not None}

    def _defaults(self) -> dict[str, Any]:
        """The defaults that the resource's class would send."""
        return {field.name: field.default for field in self._fields.values() if field.default is not None}

    def _wrong(self, given: Mapping[str, Any]) -> list[tuple[str, str]]:
        unknown = [
            (key, f"there is no such input, so it would be ignored. There are {', '.join(sorted(self._fields))}.")
            for key in sorted(given.keys() - self._fields.keys() - {camel_case(name) for name in self._row.outputs})
        ]
        missing = [
            (key, f"it is required, so nothing is checked. Set it: {field.description}")
            for key, field in self._fields.items()
            if field.required and key not in given
        ]
        of_other_type = [
            (key, f"{value!r} is of another type, so nothing is checked. Write {_OF_PYTHON[kind][0]}.")
            for key, value in given.items()
            if (kind := self._kind(key)) and not isinstance(value, pulumi.output.Unknown) and not _is(value, kind)
        ]
        return [*unknown, *missing, *of_other_type]

    def _kind(self, key: str) -> type | None:
        field: Field | None = self._fields.get(key)
        return field.annotation if field and field.annotation in _OF_PYTHON else None


def _is(value: Any, kind: type) -> bool:
    """Whether a value is of a kind; the engine sends every number as a fraction."""
    if kind is not bool and isinstance(value, bool):
        return False
    if kind is int and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _OF_PYTHON[kind][1])
