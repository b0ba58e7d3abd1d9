"""Answers of tools as a program asks for them, and the schema that each has to fit."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp_types import CallToolResult

from bezel.mcp_server.answers import BYTES_OF_A_TOKEN
from bezel.mcp_server.two_steps import CONFIRM, Offered
from bezel.operations.registry import OPERATIONS, operation
from bezel.operations.schemas import schemas_of


async def call_for_json(client: Client, tool: str, arguments: dict[str, Any], **options: Any) -> CallToolResult:
    """The result of a tool with its structured content, which fits the tool's schema."""
    result = await client.call_tool(tool, {**arguments, "detail": "json"}, **options)
    check_answer(tool, result)
    return result


def check_answer(tool: str, result: CallToolResult) -> None:
    """Check that structured content fits the schema that the files of operations have of the tool's result."""
    if result.structured_content is not None:
        _validator(tool).validate(result.structured_content)


def tokens_of(result: CallToolResult) -> int:
    """Tokens of what a model is shown of a result, whether its client shows it text or structured content."""
    shown = [each.text for each in result.content if each.type == "text"]
    structured = "" if result.structured_content is None else json.dumps(result.structured_content)
    return max(len("".join(shown).encode()), len(structured.encode())) // BYTES_OF_A_TOKEN


@cache
def _validator(tool: str) -> Draft202012Validator:
    return Draft202012Validator(_schema_of(tool))


def _schema_of(tool: str) -> dict[str, Any]:
    if tool == CONFIRM:
        changing = next(each for each in OPERATIONS if each.kind == "changing")
        outcome: dict[str, Any] = schemas_of(changing.name)["outcome"]
        return outcome
    result: dict[str, Any] = dict(schemas_of(tool)["result"])
    if operation(tool).kind != "changing":
        return result
    offered = Offered.model_json_schema(mode="serialization")
    definitions = result.pop("$defs", {})
    return {**offered, "properties": {**offered["properties"], "plan": result}, "$defs": definitions}
