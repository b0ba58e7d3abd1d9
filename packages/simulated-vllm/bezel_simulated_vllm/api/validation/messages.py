"""Rules of POST /v1/messages and /v1/messages/count_tokens. They are reported as pydantic's errors, as in vLLM."""

from __future__ import annotations

from typing import Any

_CHANGES = ("tool_addition", "tool_removal")


def model(value: str) -> str:
    """Check that a model is named."""
    if not value:
        raise ValueError("Model is required")
    return value


def max_tokens(value: int) -> int:
    """Check the limit of output tokens."""
    if value <= 0:
        raise ValueError("max_tokens must be positive")
    return value


def no_tool_changes(content: Any) -> Any:
    """Refuse changes of the tools outside of system messages."""
    for block in content if isinstance(content, list) else ():
        if block.type in _CHANGES:
            raise ValueError(f'{block.type} blocks are only allowed in messages with role "system"')
    return content


def message(value: Any) -> Any:
    """Check that only system messages change the tools."""
    if value.role != "system":
        no_tool_changes(value.content)
    return value


def block(value: Any) -> Any:
    """Check that a block that changes the tools names one."""
    if value.type not in _CHANGES:
        return value
    if value.tool is None:
        raise ValueError(f"tool is required for {value.type} blocks")
    if value.type == "tool_removal" and value.tool.type != "tool_reference":
        raise ValueError("tool_removal only accepts a tool_reference")
    return value


def input_schema(value: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool's input, an object by default."""
    return {**value, "type": value.get("type", "object")}


def tool_choice(value: Any) -> Any:
    """Check that a named tool has a name."""
    if value.type == "tool" and not value.name:
        raise ValueError("tool_choice.name is required when type is 'tool'")
    return value


def thinking(body: Any) -> Any:
    """Check that thoughts leave room for an answer."""
    if (body.kv_transfer_params or {}).get("do_remote_decode"):
        return body
    if getattr(body.thinking, "type", None) == "enabled" and body.thinking.budget_tokens >= body.max_tokens:
        raise ValueError("thinking.budget_tokens must be less than max_tokens")
    return body
