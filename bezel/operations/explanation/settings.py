"""Settings of a stack file: type, bounds, choices, default and meaning of each key, from their one description."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from bezel.operations.explanation.entry import Entry, facts, listed
from bezel.planner.base.problems import NAMESPACE, setting
from bezel.planner.base.settings import Settings, default_as_written

_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


def names() -> list[str]:
    """Every key with its section, e.g. `scaling.max_instances`."""
    return [path for path, _, _ in _keys()]


def entries(subject: str) -> list[Entry]:
    """What the settings say about a key: by its path, with or without the namespace, or by its last part."""
    name = subject.strip().removeprefix(f"{NAMESPACE}:")
    found = [key for key in _keys() if key[0] == name] or [key for key in _keys() if key[0].rpartition(".")[2] == name]
    return [_entry(path, field, schema) for path, field, schema in found]


@cache
def _keys() -> tuple[tuple[str, Any, Mapping[str, Any]], ...]:
    """(path, field, JSON schema) of every key."""
    return tuple(_walked())


def _walked() -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    whole = Settings.model_json_schema()
    for name, field in Settings.model_fields.items():
        yield name, field, whole["properties"][name]
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            inner = whole["$defs"][kind.__name__]["properties"]
            for below, part in kind.model_fields.items():
                yield f"{name}.{below}", part, inner[below]


def _entry(path: str, field: Any, schema: Mapping[str, Any]) -> Entry:
    branches = [branch for branch in schema.get("anyOf", [schema]) if branch.get("type") != "null"]
    is_section = isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    default = "required" if field.is_required() else None if is_section else default_as_written(field)
    rows = {
        "takes": "a section"
        if is_section
        else listed(dict.fromkeys(str(part.get("type", "a map")) for part in branches)),
        "choices": listed(word for part in branches for word in part.get("enum", ())),
        "bounds": listed(
            f"{words} {part[key]:g}" for part in branches for key, words in _BOUNDS.items() if key in part
        ),
        "default": None
        if default in (None, (), {})
        else str(default).lower()
        if isinstance(default, bool)
        else str(default),
        "example": listed(field.examples or ()),
        "keys": listed(field.annotation.model_fields) if is_section else None,
    }
    return Entry(
        kind="setting",
        name=setting(path),
        meaning=(field.description or "").replace("`", ""),
        facts=facts(rows),
        why=(),
        source="bezel/planner/base/settings.py",
    )
