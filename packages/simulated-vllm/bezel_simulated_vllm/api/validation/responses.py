"""Rules of POST /v1/responses."""

from __future__ import annotations

from typing import Any

from bezel_simulated_vllm.api.errors import api_error

SEPARATOR = "__"


def image_details(item: Any) -> Any:
    """Return an input item with the default detail of its images."""
    if not isinstance(item, dict) or not isinstance(item.get("content"), list):
        return item
    parts = [
        {**part, "detail": "auto"}
        if isinstance(part, dict) and part.get("type") == "input_image" and "detail" not in part
        else part
        for part in item["content"]
    ]
    return {**item, "content": parts}


def cache_retention(value: Any) -> Any:
    """Return the retention of cached prompts, as it is written now."""
    return "in_memory" if value == "in-memory" else value


def background(data: Any) -> Any:
    """Check that a response in the background is stored."""
    if isinstance(data, dict) and data.get("background") and not data.get("store", True):
        raise api_error("background-store")
    return data


def prompt(data: Any) -> Any:
    """Refuse a stored prompt."""
    if isinstance(data, dict) and data.get("prompt") is not None:
        raise api_error("prompt-template")
    return data


def items(data: Any) -> Any:
    """Complete the items of the input that may leave out required fields."""
    value = data.get("input") if isinstance(data, dict) else None
    if isinstance(value, dict):
        value = list(value)
    if isinstance(value, list):
        data["input"] = [_complete(item) for item in value]
    return data


def _complete(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    if item.get("type") == "reasoning" and "id" not in item:
        return {**item, "id": "rs_0"}
    if item.get("type") == "message" and item.get("role") == "assistant" and isinstance(item.get("content"), list):
        parts = [
            {"annotations": [], **part} if isinstance(part, dict) and part.get("type") == "output_text" else part
            for part in item["content"]
        ]
        return {"id": "msg_0", "status": "completed", **item, "content": parts}
    return item


def custom_tools(data: Any) -> Any:
    """Refuse tools with a grammar of their own."""
    tools = data.get("tools") if isinstance(data, dict) else None
    for tool in tools if isinstance(tools, list) else ():
        form = tool.get("format") if isinstance(tool, dict) else None
        if isinstance(form, dict) and tool.get("type") == "custom" and form.get("type") == "grammar":
            raise api_error("tool-grammar")
    return data


def tools(data: Any) -> Any:
    """Check that tools and the choice of one fit."""
    if not isinstance(data, dict):
        return data
    tool_list, choice = data.get("tools"), data.get("tool_choice", "auto")
    if tool_list is not None and not isinstance(tool_list, list | str | dict):
        raise api_error("python", text=f"object of type '{type(tool_list).__name__}' has no len()")
    named = isinstance(choice, dict) and choice.get("type") in ("function", "custom")
    if not tool_list:
        if choice in ("auto", "none"):
            data["tool_choice"] = "none"
        elif choice == "required":
            raise api_error("required-tool")
        elif named:
            raise api_error("tool-not-found")
    elif named:
        if not choice.get("name"):
            raise api_error("tool-not-found")
        data["tool_choice"] = {**choice, "name": _whole_name(choice["name"], tool_list)}
    return data


def _whole_name(name: Any, tool_list: Any) -> Any:
    """Return the whole name of a tool, with its namespace."""
    exact: set[str] = set()
    local: dict[str, list[str]] = {}
    for tool in (tool for tool in tool_list if isinstance(tool, dict)):
        if tool.get("type") == "namespace":
            if not isinstance(tool.get("tools"), list) or not isinstance(tool.get("name"), str):
                return name
            for inner in tool["tools"]:
                if isinstance(inner, dict) and isinstance(inner.get("name"), str):
                    whole = f"{tool['name']}{SEPARATOR}{inner['name']}"
                    exact.add(whole)
                    local.setdefault(inner["name"], []).append(whole)
        elif isinstance(tool.get("name"), str):
            exact.add(tool["name"])
    candidates = local.get(name, [])
    if name in exact:
        return name
    if len(candidates) > 1:
        raise api_error("tool-ambiguous", name=name, candidates=", ".join(candidates))
    if not candidates:
        raise api_error("tool-not-found")
    return candidates[0]
