"""Rules of POST /v1/chat/completions and of /tokenize with messages."""

from __future__ import annotations

from typing import Any

from bezel_simulated_vllm.api.errors import api_error
from bezel_simulated_vllm.api.validation import shared


def messages(data: Any) -> Any:
    """Rename the old field of a message's thoughts, and check that its tool calls can be listed."""
    items = data.get("messages") if isinstance(data, dict) else None
    for message in items if isinstance(items, list) else ():
        if not isinstance(message, dict):
            continue
        calls = message.get("tool_calls")
        if calls is not None and not isinstance(calls, list):
            if not isinstance(calls, str | dict):
                raise api_error("python", text=f"'{type(calls).__name__}' object is not iterable")
            message["tool_calls"] = list(calls)
        thought = message.pop("reasoning_content", None)
        if thought is not None and message.get("reasoning") is None:
            message["reasoning"] = thought
    return data


def tool_calls(body: Any) -> Any:
    """Read the tool calls of the messages: each is validated then."""
    for message in body.messages:
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        if calls is not None and not isinstance(calls, list):
            message["tool_calls"] = list(calls)
    return body


def batch(data: Any) -> Any:
    """Check what a batch of conversations leaves out."""
    if not isinstance(data, dict):
        return data
    if data.get("use_beam_search"):
        raise api_error("batch-beam")
    if data.get("logprob_token_ids") and not data.get("logprobs"):
        raise api_error("batch-label-ids")
    transfer = data.get("kv_transfer_params")
    if isinstance(transfer, dict) and transfer.get("prompt_token_ids") is not None:
        raise api_error("batch-prompt-ids")
    form = data.get("response_format")
    if isinstance(form, dict) and form.get("type") == "structural_tag":
        shared.response_format(data)
    if isinstance(data.get("structured_outputs"), dict):
        shared.structural_tag(data)
    if data.get("n", 1) not in (None, 1):
        raise api_error("batch-n", value=data["n"])
    return data


def system_messages(data: Any) -> Any:
    """Look at the messages as vLLM does to warn of media in them: what cannot be looped over fails."""
    items = data.get("messages", []) if isinstance(data, dict) else []
    if not isinstance(items, list | str | dict):
        raise api_error("python", text=f"'{type(items).__name__}' object is not iterable")
    return data


def logprobs(data: Any) -> Any:
    """Check the numbers of log probabilities."""
    if not isinstance(data, dict):
        return data
    if data.get("logprob_token_ids") and data.get("use_beam_search"):
        raise api_error("label-ids-beam")
    if data.get("logprob_token_ids") and not data.get("logprobs"):
        raise api_error("label-ids-chat")
    shared.number(data, "prompt_logprobs")
    top = shared.number(data, "top_logprobs")
    shared.prompt_logprobs(data)
    if top is not None and top < 0 and top != -1:
        raise api_error("top-logprobs-negative", value=top)
    if top is not None and (top == -1 or top > 0) and not data.get("logprobs"):
        raise api_error("top-logprobs")
    return data


def structured_outputs(data: Any) -> Any:
    """Check that an answer is constrained in one way."""
    if not isinstance(data, dict) or data.get("structured_outputs") is None:
        return data
    count = shared.constraints(data)
    if count > 1:
        raise api_error("one-constraint-chat")
    if count and data.get("tool_choice", "none") not in ("none", "auto", "required"):
        raise api_error("constraint-or-tool")
    shared.structural_tag(data)
    return data


def tools(data: Any) -> Any:
    """Check that tools and the choice of one fit."""
    if not isinstance(data, dict):
        return data
    if data.get("tools") == []:
        raise api_error("tools-empty")
    if "tool_choice" not in data and data.get("tools"):
        data["tool_choice"] = "auto"
    choice = data.get("tool_choice")
    if choice in (None, "none"):
        return data
    if data.get("tools") is None:
        raise api_error("no-tools")
    if choice not in ("auto", "required") and not isinstance(choice, dict):
        raise api_error("tool-choice", choice=choice)
    if isinstance(choice, dict):
        _check_named_tool(choice, data["tools"])
    return data


def _check_named_tool(choice: dict[str, Any], tools: Any) -> None:
    function = choice.get("function")
    if not isinstance(function, dict):
        raise api_error("tool-function", function=function)
    if "name" not in function:
        raise api_error("tool-no-name")
    name = function["name"]
    if not isinstance(name, str) or not name:
        raise api_error("tool-name", name=name)
    try:
        # The real server looks at the tools before it checks their form.
        if any(tool["function"]["name"] == name for tool in tools):
            return
    except TypeError as error:
        raise api_error("python", text=error) from None
    except KeyError as error:
        raise api_error("python-500", text=error) from None
    raise api_error("unknown-tool")
