"""Descriptions of every setting, generated from `Settings`: Pulumi.yaml's `config` and the table of docs/stacks.md.

Owns both renderings, so that no key is described twice. The engine's schema types only top-level keys (string, integer,
boolean, array, object); keys below one are listed in its description.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import NAMESPACE
from bezel.planner.render.settings_schema import Key, setting_keys, settings_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

# Types that the engine calls by another name.
_ENGINES = {"map": "object", "list": "array"}
_WORDS = ("required", "computed", "empty", "none")


# Provider settings that every stack needs, whatever its stack file contains.
PROVIDER_SETTINGS: dict[str, dict[str, object]] = {
    # Digests come from the registry alone, and a pipeline has no Docker daemon for the provider to connect to.
    "docker:disableDockerDaemonCheck": {"value": True},
}


def project_config() -> dict[str, dict[str, Any]]:
    """The `config` section of Pulumi.yaml.

    Every key has a default here, its own or an empty one: the engine refuses a stack that lacks a key without one,
    with a message that does not mention a misspelt key beside it. The planner reports missing required keys.
    """
    keys = setting_keys()
    names = [key.path[0] for key in keys if len(key.path) == 1]
    return {name: _declaration([key for key in keys if key.path[0].removesuffix("[]") == name]) for name in names}


def project_yaml() -> str:
    """project_config and PROVIDER_SETTINGS as text for Pulumi.yaml, descriptions as readable blocks."""
    lines = [
        "# Made by `python -m tools.docs.planner.settings --pulumi` from bezel/planner/base/settings.py.",
        "config:",
    ]
    for name, declared in project_config().items():
        lines += [f"  {name}:", f"    type: {declared['type']}"]
        if "items" in declared:
            lines += ["    items:", f"      type: {declared['items']['type']}"]
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
    settings = settings_schema()
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
                "anyOf": [{"required": [f"{NAMESPACE}:{name}"]} for name in ("region", "regions")],
                "propertyNames": {"anyOf": [{"enum": sorted(keys)}, {"not": {"pattern": f"^{NAMESPACE}:"}}]},
            }
        },
        "required": ["config"],
        "$defs": settings["$defs"],
    }


def configuration_table() -> str:
    """Every key with type, default and meaning as a Markdown table."""
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key in setting_keys():
        dots = "· " * (len(key.path) - 1)
        name = f"{dots}`{key.path[-1]}`" if dots else f"`{NAMESPACE}:{key.path[0]}`"
        default = key.default_text if key.default_text in _WORDS else f"`{key.default_text}`"
        rows.append(f"| {name} | {key.type_text} | {default} | {key.description} |")
    return "\n".join(rows) + "\n"


def _declaration(keys: Sequence[Key]) -> dict[str, Any]:
    """The declaration of a key, of which the first of `keys` is itself, and the others are in it."""
    top, *inner = keys
    described = [top.description + (f": one of {', '.join(top.choices)}" if top.choices else "")]
    described += [f"{'.'.join(key.path[1:])} ({key.type_text}; {key.default_text}): {key.description}" for key in inner]
    if top.is_required and (examples := top.schema.get("examples")):
        described[0] += f", e.g. {examples[0]} (required)"
    is_map = top.kind == "map"
    return {
        "type": _ENGINES.get(top.kind, top.kind),
        # The engine wants the type of a list's entries.
        **({"items": {"type": top.schema["items"].get("type", "object")}} if top.kind == "list" else {}),
        "description": "\n".join(described).replace("`", ""),
        "default": {} if is_map else "" if top.is_required else top.default,
    }
