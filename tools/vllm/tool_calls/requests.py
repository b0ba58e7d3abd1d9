"""Chat requests with tools, made from a seed: each choice of tools with each form of a tool, streamed and not.

The schemas have a shortest value that the bias of the model's tokens leads to, so that random weights write whole
calls where the server's grammar asks for them.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import tools.package_tests  # noqa: F401 - it finds the helpers
from simulated_vllm_support.client_requests import Asked

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNT, SEED = 40, 44
_LEFT_OUT = object()
_PLACE: dict[str, Any] = {"type": "string", "enum": ["here", "there"]}
_SCHEMAS: dict[str, Any] = {
    "place": {"type": "object", "properties": {"place": _PLACE}, "required": ["place"]},
    "closed": {"type": "object", "properties": {"place": _PLACE}, "required": ["place"], "additionalProperties": False},
    "two": {
        "type": "object",
        "properties": {"on": {"type": "boolean"}, "count": {"type": "integer", "enum": [1, 2]}},
        "required": ["on", "count"],
    },
    "nested": {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {"b": {"const": "x"}}, "required": ["b"]}},
        "required": ["a"],
    },
    "optional": {"type": "object", "properties": {"place": _PLACE}},
    "empty": {"type": "object", "properties": {}},
    "bare": {},
    "absent": _LEFT_OUT,
    "null": None,
    "defined": {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/place"}},
        "required": ["p"],
        "$defs": {"place": _PLACE},
    },
}
_BROKEN: dict[str, Any] = {
    "type": {"type": "thing"},
    "field type": {"type": "object", "properties": {"a": {"type": "thing"}}, "required": ["a"]},
    "reference": {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}, "required": ["a"]},
    "pattern": {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}, "required": ["a"]},
    "bounds": {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 9, "maximum": 1}},
        "required": ["a"],
    },
    "no value": {"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]},
    "items": {"type": "object", "properties": {"a": {"type": "array", "items": 5}}, "required": ["a"]},
    "properties": {"type": "object", "properties": [1]},
    "required": {"type": "object", "properties": {"a": _PLACE}, "required": "a"},
    "multiple": {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 3}}, "required": ["a"]},
    "text": "no schema",
    "list": [1],
}
_NAMES = ("look", "get_weather", "open-door", "a.b")
_WRONG_NAMES: tuple[Any, ...] = ("", "with space", 'quo"te', "ü", 5, None, "x" * 70)
KINDS = ("auto", "none", "required", "named", "broken", "choice", "wrong tool", "outputs", "history", "broken")


def requests_of_tools(bias: Mapping[str, float], count: int = COUNT, seed: int = SEED) -> list[Asked]:
    """Return that many different requests.

    Args:
        bias: of the model's tokens, with which it writes the shortest answer.
        count: how many.
        seed: the same gives the same requests.
    """
    rng = random.Random(seed)  # noqa: S311 - the same requests each time
    asked: list[Asked] = []
    seen: set[bytes] = set()
    while len(asked) < count:
        kind = KINDS[len(asked) % len(KINDS)]
        body = {
            "model": "tiny",
            "messages": [{"role": "user", "content": rng.choice(("look", "where is it", "say x"))}],
            "max_tokens": 120,
            "temperature": 0,
            "logit_bias": dict(bias),
            **_body(kind, rng),
        }
        if rng.random() < 0.4:
            body["stream"] = True
        content = json.dumps(body).encode()
        if content not in seen:
            seen.add(content)
            headers = (("content-type", "application/json"),)
            asked.append(Asked(kind, "POST", "/v1/chat/completions", headers, content))
    return asked


def _body(kind: str, rng: random.Random) -> dict[str, Any]:
    if kind == "broken":
        schema = _BROKEN[rng.choice(tuple(_BROKEN))]
        choice = rng.choice(("auto", "required", "named", "none", "required"))
        strict = rng.choice((True, True, False, None))
        return _with_choice(choice, [_tool("look", schema, strict)])
    tools = _tools(rng)
    parallel = rng.choice((None, None, False, True))
    body = {} if parallel is None else {"parallel_tool_calls": parallel}
    if kind in ("auto", "none", "required", "named"):
        return _with_choice(kind, tools) | body
    if kind == "choice":
        return {"tools": tools, "tool_choice": _wrong_choice(rng)} if rng.random() < 0.7 else _without_tools(rng)
    if kind == "wrong tool":
        return _with_choice(rng.choice(("auto", "required", "named")), [_wrong_tool(rng)])
    if kind == "outputs":
        form = rng.choice(
            (
                {"response_format": {"type": "json_object"}},
                {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": _SCHEMAS["place"]}}},
                {"structured_outputs": {"choice": ["yes", "no"]}},
                {"structured_outputs": {"regex": "[ab]"}},
            )
        )
        return _with_choice(rng.choice(("auto", "none", "required", "named")), tools) | form
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"place": "here"}'}}
    history = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
    ]
    return {"messages": history} | _with_choice(rng.choice(("auto", "required", "named")), tools) | body


def _tools(rng: random.Random) -> list[dict[str, Any]]:
    names = rng.sample(_NAMES, rng.choice((1, 1, 2)))
    return [_tool(name, _SCHEMAS[rng.choice(tuple(_SCHEMAS))], rng.choice((None, True, False))) for name in names]


def _tool(name: Any, schema: Any, strict: bool | None) -> dict[str, Any]:
    function: dict[str, Any] = {"name": name}
    if schema is not _LEFT_OUT:
        function["parameters"] = schema
    if strict is not None:
        function["strict"] = strict
    return {"type": "function", "function": function}


def _with_choice(choice: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    named = {"type": "function", "function": {"name": tools[0].get("function", {}).get("name")}}
    return {"tools": tools, "tool_choice": named if choice == "named" else choice}


def _wrong_choice(rng: random.Random) -> Any:
    return rng.choice(
        (
            {"type": "function", "function": {"name": "other"}},
            {"type": "function"},
            {"type": "function", "function": {}},
            {"type": "function", "name": "look"},
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
            {"function": {"name": "look"}},
            "any",
            "",
            5,
            [],
            True,
            None,
        )
    )


def _without_tools(rng: random.Random) -> dict[str, Any]:
    choice = rng.choice(("auto", "none", "required", {"type": "function", "function": {"name": "look"}}))
    return {"tool_choice": choice} | rng.choice(({}, {"tools": []}, {"tools": None}))


def _wrong_tool(rng: random.Random) -> dict[str, Any]:
    tool = _tool(rng.choice(_WRONG_NAMES), _SCHEMAS["place"], None)
    return rng.choice(
        (
            tool,
            tool,
            {"type": "function"},
            {"type": "search", "function": {"name": "look"}},
            {"function": {"name": "look", "parameters": _SCHEMAS["place"]}},
            {"type": "function", "name": "look", "parameters": _SCHEMAS["place"]},
            {"type": "function", "function": {"name": "look", "strict": "yes"}},
            {"type": "function", "function": {"name": "look", "description": 5}},
            {"type": "function", "function": {"parameters": _SCHEMAS["place"]}},
        )
    )
