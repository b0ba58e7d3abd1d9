"""Answers of a given form: JSON that fits a schema, and calls of a tool that the client requires.

The smallest value that fits is made up; a schema's `pattern` and `format` are not looked at.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from bezel.localcloud.vllm.tokenizer import encode

if TYPE_CHECKING:
    from bezel.localcloud.vllm.bodies import ChatBody

_DEEPEST = 8


def scripted_answer(body: ChatBody) -> list[int] | None:
    """The tokens of an answer whose form the call prescribes, None for free text."""
    tool = _required_tool(body)
    if tool is not None:
        return encode(_text(smallest(tool.get("parameters") or {"type": "object"})), specials=False)
    form = body.response_format or {}
    if form.get("type") == "json_object":
        return encode("{}", specials=False)
    if form.get("type") == "json_schema":
        return encode(_text(smallest((form.get("json_schema") or {}).get("schema") or {})), specials=False)
    return None


def tool_call(body: ChatBody, text: str) -> dict[str, Any] | None:
    """The tool call that an answer is, None if it is prose."""
    tool = _required_tool(body)
    if tool is None:
        return None
    function = {"name": tool.get("name", ""), "arguments": text}
    return {"id": f"chatcmpl-tool-{secrets.token_hex(8)}", "type": "function", "function": function}


def smallest(schema: dict[str, Any], depth: int = 0) -> Any:
    """The smallest value that a JSON schema allows."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key) and depth < _DEEPEST:
            return smallest(schema[key][0], depth + 1)
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties") or {}
        wanted = schema.get("required", []) if depth < _DEEPEST else []
        return {name: smallest(properties.get(name, {}), depth + 1) for name in wanted}
    if kind == "array":
        return [smallest(schema.get("items") or {}, depth + 1)] * int(schema.get("minItems", 0))
    plain: dict[str, Any] = {
        "string": "a" * int(schema.get("minLength", 0)),
        "integer": int(schema.get("minimum", 0)),
        "number": float(schema.get("minimum", 0)),
        "boolean": False,
    }
    return plain.get(kind)


def _required_tool(body: ChatBody) -> dict[str, Any] | None:
    tools = [tool.get("function") or {} for tool in body.tools or []]
    if body.tool_choice == "required" and tools:
        return tools[0]
    if isinstance(body.tool_choice, dict):
        name = (body.tool_choice.get("function") or {}).get("name")
        return next((tool for tool in tools if tool.get("name") == name), None)
    return None


def _text(value: object) -> str:
    return json.dumps(value, separators=(", ", ": "))
