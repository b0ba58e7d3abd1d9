"""Descriptions of every setting, generated from `Settings`: Pulumi.yaml's `config` and the README's table.

Owns both renderings, so that no key is described twice. The engine's schema types only top-level keys (string, integer,
boolean, array, object); keys below one are listed in its description.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from bezel.planner.assemble.provenance import by_rule
from bezel.planner.base.problems import NAMESPACE
from bezel.planner.base.settings import Settings, default_as_written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

# The engine's type, by the first of these that occurs in an annotation.
_TYPES = {
    "WithJsonSchema": "string",
    "dict": "map",
    "tuple": "list",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
}


# Provider settings that every stack needs, whatever its stack file contains.
PROVIDER_SETTINGS: dict[str, dict[str, object]] = {
    # Digests come from the registry alone, and a pipeline has no Docker daemon for the provider to connect to.
    "docker:disableDockerDaemonCheck": {"value": True},
}


def project_config() -> dict[str, dict[str, object]]:
    """The `config` section of Pulumi.yaml.

    Every key has a default here, its own or an empty one: the engine refuses a stack that lacks a key without one,
    with a message that does not mention a misspelt key beside it. The planner reports missing required keys.
    """
    return {name: _declaration(field) for name, field in Settings.model_fields.items()}


def project_yaml() -> str:
    """project_config and PROVIDER_SETTINGS as text for Pulumi.yaml, descriptions as readable blocks."""
    lines = ["# Made by `python -m tools.docs.settings --pulumi` from bezel/planner/base/settings.py.", "config:"]
    for name, declared in project_config().items():
        lines += [f"  {name}:", f"    type: {declared['type']}"]
        first, *rest = str(declared["description"]).split("\n")
        lines += (
            ["    description: |-", f"      {first}", *(f"      {line}" for line in rest)]
            if rest
            else [f"    description: {json.dumps(first)}"]
        )
        lines.append(f"    default: {json.dumps(declared['default'])}")
    for name, fixed in PROVIDER_SETTINGS.items():
        lines += [f"  {name}:", f"    value: {json.dumps(fixed['value'])}"]
    return "\n".join(lines) + "\n"


def stack_file_schema() -> dict[str, object]:
    """The JSON Schema of a stack file, for editors: keys of `bezel:`; keys of other namespaces are not checked."""
    settings = Settings.model_json_schema()
    keys = {f"{NAMESPACE}:{name}": value for name, value in settings["properties"].items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Stack file of Bezel",
        "type": "object",
        "properties": {
            "config": {
                "type": "object",
                "properties": keys,
                "required": [f"{NAMESPACE}:{name}" for name in settings["required"]],
                "propertyNames": {"anyOf": [{"enum": sorted(keys)}, {"not": {"pattern": f"^{NAMESPACE}:"}}]},
            }
        },
        "required": ["config"],
        "$defs": settings["$defs"],
    }


def configuration_table() -> str:
    """Every key with type, default and meaning as a Markdown table."""
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        rows.append(_row(f"{NAMESPACE}:{name}", field))
        rows += [_row(f"· {inner}", part) for inner, part in _parts(field)]
    return "\n".join(rows) + "\n"


def _declaration(field: FieldInfo) -> dict[str, object]:
    described = [field.description or ""]
    described += [f"{inner} ({_type(part)}, {_default(part)}): {part.description}" for inner, part in _parts(field)]
    if field.is_required() and field.examples:
        described[0] += f", e.g. {field.examples[0]} (required)"
    kind = _type(field)
    return {
        "type": "object" if kind == "map" else kind,
        "description": "\n".join(described).replace("`", ""),
        "default": {} if kind == "map" else "" if field.is_required() else field.default,
    }


def _row(key: str, field: FieldInfo) -> str:
    default = _default(field)
    default = default if default in ("required", "computed", "empty", "none") else f"`{default}`"
    return f"| `{key}` | {_type(field)} | {default} | {field.description} |".replace("`· ", "· `")


def _parts(field: FieldInfo) -> Iterator[tuple[str, FieldInfo]]:
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from kind.model_fields.items()


def _type(field: FieldInfo) -> str:
    kind: Any = field.annotation
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "map"
    text = f"{getattr(kind, '__name__', kind) if isinstance(kind, type) else kind} {field.metadata}"
    return next((known for name, known in _TYPES.items() if name in text), "string")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = default_as_written(field)
    if value is None:
        return "computed" if by_rule(field) else "none"
    if isinstance(value, bool):
        return str(value).lower()
    return "empty" if isinstance(value, BaseModel) or value in ((), {}) else str(value)
