"""The grammar by which the server forces a call of a tool, as structured outputs of the call.

Source: vllm 0.32.0, parser/abstract_parser.py (`_apply_structural_tag`), parser/mistral.py, and in tool_parsers/
abstract_tool_parser.py (`adjust_request`), structural_tag_registry.py and utils.py. The tag has the form of the Hermes
models for every parser: the libraries judge the schemas in it, and the tags of the other families hold the same ones.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api.errors import api_error
from bezel_simulated_vllm.api.tool_calls.parsers import (
    constrains_free_choice,
    is_forced_by_list,
    is_forced_by_schema,
    is_forced_by_tag,
)
from bezel_simulated_vllm.api.validation.parameters import constraint
from bezel_simulated_vllm.grammars.judge import Judge

if TYPE_CHECKING:
    from bezel_simulated_vllm.api.bodies import ChatBody
    from bezel_simulated_vllm.configuration.settings import EngineSettings

_EMPTY = {"type": "object", "properties": {}}


def call_constraint(body: ChatBody, settings: EngineSettings) -> dict[str, Any] | None:
    """Return the structured outputs that force the calls of an answer; None where nothing does.

    Args:
        body: the call, whose tools and choice are valid.
        settings: of the server; its parser decides the form.

    Raises:
        ApiError: the tools cannot be joined in one schema.
    """
    functions = _functions(body)
    if not functions or not settings.tool_parser or not settings.auto_tools:
        return None
    if is_forced_by_tag(settings.tool_parser):
        return _tag(body, functions, settings.tool_parser)
    if is_forced_by_list(settings.tool_parser):
        return None if body.tool_choice == "auto" or body.structured_outputs else {"json": _native_list(functions)}
    if not is_forced_by_schema(settings.tool_parser):
        return None
    if isinstance(body.tool_choice, dict):
        return {"json": _parameters(functions[0])}
    return {"json": _list_schema(body, functions)} if body.tool_choice == "required" else None


def force_calls(body: ChatBody, settings: EngineSettings) -> None:
    """Give a call the grammar that forces its calls, in place of its own where both are there.

    Raises:
        ApiError: the tools cannot be joined in one schema.
    """
    forced = call_constraint(body, settings)
    outputs = constraint(body)
    if forced and outputs and body.tool_choice == "auto" and Judge("xgrammar").judge(outputs).refusal:
        return  # the calls are not forced beside a form that xgrammar does not take
    body.tool_constraint = forced


def _functions(body: ChatBody) -> list[dict[str, Any]]:
    """The functions that may be called: the named one, or all."""
    functions = [tool.get("function") or {} for tool in body.tools or []]
    if not isinstance(body.tool_choice, dict):
        return functions if body.tool_choice in ("auto", "required") else []
    name = (body.tool_choice.get("function") or {}).get("name")
    # The last of those with a name counts.
    return [function for function in functions if function.get("name") == name][-1:]


def _tag(body: ChatBody, functions: list[dict[str, Any]], parser: str) -> dict[str, Any] | None:
    is_free = body.tool_choice == "auto"
    has_outputs = bool(body.structured_outputs or body.response_format)
    limits = body.parallel_tool_calls is False and not (is_free and has_outputs)
    if is_free and not (
        limits or constrains_free_choice(parser) or any(each.get("strict") is True for each in functions)
    ):
        return None
    tags = [_call_tag(function) for function in functions]
    form: dict[str, Any] = {"type": "tags_with_separator", "tags": tags, "separator": "", "at_least_one": True}
    if is_free:
        form = {"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": tags}
    return {"structural_tag": json.dumps({"type": "structural_tag", "format": form})}


def _call_tag(function: dict[str, Any]) -> dict[str, Any]:
    """The tag of one function: its arguments are free unless it is strict."""
    parameters = function.get("parameters")
    schema = True if parameters is None or function.get("strict") is not True else parameters
    return {
        "type": "tag",
        "begin": f'<tool_call>\n{{"name": "{function.get("name")}", "arguments": ',
        "content": {"type": "json_schema", "json_schema": schema},
        "end": "}\n</tool_call>",
    }


def _parameters(function: dict[str, Any]) -> Any:
    parameters = function.get("parameters")
    return parameters or _EMPTY


def _native_list(functions: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of a list of calls as Mistral's first tokenizers write it; definitions stay where they are."""
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "enum": [function.get("name")]},
                "arguments": function.get("parameters") or {"type": "object"},
            },
            "required": ["name", "arguments"],
        }
        for function in functions
    ]
    return {"type": "array", "minItems": 1, "items": {"type": "object", "anyOf": calls}}


def _list_schema(body: ChatBody, functions: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of a list of calls, with the definitions of all functions in one place."""
    definitions: dict[str, Any] = {}
    calls = []
    for function in functions:
        parameters = _parameters(function)
        schemas = parameters.get("$defs", {})
        if not isinstance(schemas, dict):
            raise api_error("tool-definitions", tool=function.get("name"), kind=type(schemas).__name__)
        for name, schema in schemas.items():
            if definitions.setdefault(name, schema) != schema:
                raise api_error("tool-definition", name=name)
        arguments = {key: value for key, value in parameters.items() if key != "$defs"}
        named = {"type": "string", "enum": [function.get("name")]}
        calls.append({"properties": {"name": named, "parameters": arguments}, "required": ["name", "parameters"]})
    schema = {"type": "array", "minItems": 1, "items": {"type": "object", "anyOf": calls}}
    if body.parallel_tool_calls is False:
        schema["maxItems"] = 1
    return schema | ({"$defs": definitions} if definitions else {})
