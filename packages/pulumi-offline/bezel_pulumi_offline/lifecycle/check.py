"""Check of the inputs before they are planned: kinds, required properties, defaults, names.

Each object gets a list `__defaults` of the properties that were filled in here, as the published plugin records them:
a default is not set by the program and is replaced as soon as the program sets a value. Unknown values pass.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bezel_pulumi_offline.lifecycle.fields import Field, Fields, Kind, Mark
from bezel_pulumi_offline.lifecycle.values import Properties, unknown

DEFAULTS = "__defaults"
RANDOM = 7  # digits at the end of a generated name


@dataclass(slots=True)
class Checked:
    """The normalised inputs and their failures (property, reason)."""

    inputs: Properties
    failures: list[tuple[str, str]] = field(default_factory=list)


def check(fields: Fields, inputs: Mapping[str, Any], token: str) -> Checked:
    """Convert the inputs to their kinds, fill in the defaults, and collect every failure.

    Args:
        fields: The type's properties.
        inputs: The inputs of the program, or of a state.
        token: The type, for the messages.
    """
    work = _Check(token, [])
    return Checked(work.object(fields, inputs, ""), work.failures)


def autoname(name: str, seed: bytes) -> str:
    """Return the provider's name for a resource: its own name and seven hexadecimal digits, the same for one seed."""
    return f"{name}-{hashlib.sha256(seed or name.encode()).hexdigest()[:RANDOM]}"


@dataclass(slots=True)
class _Check:
    token: str
    failures: list[tuple[str, str]]

    def object(self, fields: Fields, inputs: Mapping[str, Any], path: str) -> Properties:
        by_name = {field.name: field for field in fields}
        result: Properties = {}
        defaulted: list[str] = []
        for name, value in inputs.items():
            if name == DEFAULTS or value is None:
                continue
            declared = by_name.get(name)
            if declared is None or declared.marks & (Mark.OUTPUT | Mark.ECHOED | Mark.REFUSED):
                output = declared is not None and not declared.marks & Mark.REFUSED
                self.failures.append((path + name, self._unsupported_text(name, output=output)))
            else:
                result[name] = self._value(declared, value, path + name)
        for name, declared in by_name.items():
            # deletionPolicy has a default in the provider's state, but none in Check, as recorded.
            if name not in result and declared.default not in (None, "", 0) and name != "deletionPolicy":
                result[name] = declared.default
                defaulted.append(name)
            elif name not in result and declared.marks & Mark.REQUIRED:
                reason = f'Missing required argument: {self.token} cannot be created without "{path}{name}". Set it.'
                self.failures.append((path + name, reason))
        result[DEFAULTS] = defaulted
        return result

    def _unsupported_text(self, name: str, *, output: bool) -> str:
        if output:
            return f'"{name}" of {self.token} is set by Google and cannot be set here. Remove it.'
        return (
            f'The stand-in provider does not support "{name}" of {self.token}, so localcloud would ignore it. '
            "Remove it, correct its spelling, or run with PROVIDER=real."
        )

    def _value(self, field: Field, value: Any, path: str) -> Any:
        if unknown(value) or field.kind is Kind.ASSET:
            return value
        match field.kind, value:
            case (Kind.BLOCK, Mapping()):
                return self.object(field.fields, value, path + ".")
            case (Kind.BLOCKS, list()):
                return [self._member(field, item, f"{path}[{index}]") for index, item in enumerate(value)]
            case (Kind.BLOCKS, Mapping()):
                return [self._member(field, value, f"{path}[0]")]  # the provider takes a single value for a list of one
            case (Kind.TABLE, Mapping()):
                items = {key: item for key, item in value.items() if item is not None and key != DEFAULTS}
                return {key: self._item(item, f"{path}.{key}") for key, item in items.items()}
            case (Kind.ITEMS, list()):
                return [self._item(item, f"{path}[{index}]") for index, item in enumerate(value)]
            case (Kind.ITEMS, str() | bool() | int() | float()):
                return [_text(value)]
        scalar = _scalar(field.kind, value)
        return self._refuse(value, _WORDS[field.kind], path) if scalar is None else scalar

    def _member(self, field: Field, item: Any, path: str) -> Any:
        """Check one object of a list."""
        if unknown(item):
            return item
        if isinstance(item, Mapping):
            return self.object(field.fields, item, path + ".")
        return self._refuse(item, _WORDS[Kind.BLOCK], path)

    def _item(self, item: Any, path: str) -> Any:
        """Check one text of a list or a map."""
        return (
            self._refuse(item, _WORDS[Kind.TEXT], path)
            if isinstance(item, (Mapping, list)) or item is None
            else (_text(item))
        )

    def _refuse(self, value: Any, word: str, path: str) -> Any:
        """Note a value of another kind; the message does not show it, since it may be a secret of the program."""
        actual = "null" if value is None else f"a {type(value).__name__}"
        self.failures.append((path, f"{path} of {self.token} is a {word}, not {actual}. Write it as a {word}."))
        return value


def _scalar(kind: Kind, value: Any) -> str | bool | int | float | None:
    """Return a scalar converted to its kind, or None where it has another kind."""
    if kind is Kind.TEXT and isinstance(value, (str, bool, int, float)):
        return _text(value)
    if kind is Kind.FLAG and value in (True, False, "true", "false"):
        return value in (True, "true")
    numeric = kind in (Kind.WHOLE, Kind.BIG, Kind.REAL)
    return _number(value) if numeric and not isinstance(value, bool) else None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: Any) -> int | float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() else number


_WORDS = {
    Kind.TEXT: "text",
    Kind.FLAG: "boolean",
    Kind.WHOLE: "number",
    Kind.BIG: "number",
    Kind.REAL: "number",
    Kind.TABLE: "map",
    Kind.ITEMS: "list",
    Kind.BLOCK: "object",
    Kind.BLOCKS: "list of objects",
    Kind.ASSET: "asset",
}
