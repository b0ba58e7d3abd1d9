"""Structured answers: JSON that fits a schema, and calls of a tool that the client requires.

The answer is the smallest value that fits. Leaves out a schema's `pattern` and `format`, and the regular expressions
and grammars that vLLM takes beside schemas.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api.bodies import ChatBody
from bezel_simulated_vllm.scheduling.tokenizer import encode

if TYPE_CHECKING:
    from bezel_simulated_vllm.api.bodies import CompletionBody

_DEEPEST = 8


def scripted_answer(body: ChatBody | CompletionBody) -> list[int] | None:
    """Return the tokens of an answer whose form the call prescribes, None for free text."""
    tool = required_tool(body) if isinstance(body, ChatBody) else None
    if tool is not None:
        return _tokens(tool.get("parameters") or {"type": "object"})
    form, outputs = body.response_format or {}, body.structured_outputs or {}
    if outputs.get("choice"):
        return encode(str(outputs["choice"][0]), specials=False)
    if form.get("type") == "json_object":
        return encode("{}", specials=False)
    schema = form["json_schema"].get("schema") if form.get("type") == "json_schema" else outputs.get("json")
    if schema is None:
        return None
    return _tokens(json.loads(schema) if isinstance(schema, str) else schema)


def _tokens(schema: Any) -> list[int]:
    try:
        value = smallest(schema, Room())
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
        value = None  # a schema that was not judged may have words of any form
    return encode(json.dumps(value, separators=(", ", ": ")), specials=False)


def tool_call_id() -> str:
    """Return a new id of a tool call."""
    return f"chatcmpl-tool-{secrets.token_hex(8)}"


class Room:
    """What an answer may still grow by: no model's context holds more, so that its end is never sent.

    Attributes:
        left: Characters.
    """

    def __init__(self, left: int = 1 << 18) -> None:
        self.left = left

    def take(self, characters: int) -> int:
        """As many of these characters as there is room for."""
        taken = max(0, min(characters, self.left))
        self.left -= taken
        return taken


def smallest(schema: Any, room: Room, depth: int = 0) -> Any:
    """Return the smallest value that a JSON schema allows, cut off where there is no more room."""
    if not isinstance(schema, dict):
        return {}
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key) and depth < _DEEPEST:
            return smallest(schema[key][0], room, depth + 1)
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kind = kind[0] if kind else "object"
    if kind == "object":
        properties = schema.get("properties") or {}
        required = schema.get("required", []) if depth < _DEEPEST else []
        names = [name for name in dict.fromkeys(required) if room.take(len(name))]
        return {name: smallest(properties.get(name, {}), room, depth + 1) for name in names}
    if kind == "array":
        count = int(schema.get("minItems", 0))
        item = smallest(schema.get("items") or {}, room, depth + 1) if count > 0 else None
        size = len(json.dumps(item)) + 2
        return [item] * min(count, 1 + room.take(size * (count - 1)) // size)
    plain: dict[str, Any] = {
        "string": "a" * (room.take(int(schema.get("minLength", 0))) if kind == "string" else 0),
        "integer": int(schema.get("minimum", 0)),
        "number": float(schema.get("minimum", 0)),
        "boolean": False,
    }
    return plain.get(kind)


def required_tool(body: ChatBody) -> dict[str, Any] | None:
    """Return the tool that the answer must call, None where it may be free text."""
    tools = [tool.get("function") or {} for tool in body.tools or []]
    if body.tool_choice == "required" and tools:
        return tools[0]
    if isinstance(body.tool_choice, dict):
        name = (body.tool_choice.get("function") or {}).get("name")
        return next((tool for tool in tools if tool.get("name") == name), None)
    return None
