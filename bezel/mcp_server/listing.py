"""Schemas of arguments as the list of tools has them: what a model needs to know before a call, in few words. Pure.

Leaves out what a refusal names with its repair (lengths, forms, examples, unknown names), null, which is the same as an
argument that is not given, and what the name says already. What is accepted is said by the models of arguments.
"""

from collections.abc import Mapping
from typing import Any

from bezel.mcp_server.answers import DETAIL, DETAIL_SCHEMA

_LEFT_OUT = {"title", "maxLength", "minLength", "maxItems", "minItems", "pattern", "examples"}
_UNMET = 10**9
"""A maximum that no caller meets by intention."""
_SAID_BY_THE_NAME = {"stack": "name of the stack"}


def listed_schema(schema: Mapping[str, Any], *, is_long: bool) -> dict[str, Any]:
    """The schema of a tool's arguments as the list has it.

    Args:
        schema: The schema of what is accepted.
        is_long: Whether the answer may be a long one: then its form is offered as an argument. Every tool takes it.
    """
    properties = {name: _listed_argument(each) for name, each in schema.get("properties", {}).items()}
    for name, text in _SAID_BY_THE_NAME.items():
        if properties.get(name, {}).get("description") == text:
            del properties[name]["description"]
    offered = {DETAIL: DETAIL_SCHEMA} if is_long else {}
    listed = {"type": "object", "properties": {**properties, **offered}}
    if schema.get("required"):
        listed["required"] = schema["required"]
    return listed


def _listed_argument(schema: Mapping[str, Any]) -> dict[str, Any]:
    shown = {key: part for key, part in schema.items() if key not in _LEFT_OUT}
    variants = [each for each in shown.get("anyOf", ()) if each != {"type": "null"}]
    if len(variants) == 1:
        del shown["anyOf"]
        shown = {**_listed_argument(variants[0]), **shown}
    default = shown.get("default")
    if default is None or default is False or default in ([], ""):
        shown.pop("default", None)  # as for every argument that is left out
    if shown.get("exclusiveMinimum") == 0:
        del shown["exclusiveMinimum"]  # a number of things, or a time
    if shown.get("maximum", 0) >= _UNMET:
        del shown["maximum"]
    if isinstance(shown.get("items"), Mapping):
        shown["items"] = _listed_argument(shown["items"])
    return shown
