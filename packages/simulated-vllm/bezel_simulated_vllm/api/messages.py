"""Handlers of POST /v1/messages and /v1/messages/count_tokens: Anthropic's API over the chat path, as in vLLM.

Owns the translation of a body into a chat body, of its pieces into content blocks, and of refusals into Anthropic's
shape (a body of the wrong shape is refused in OpenAI's, as by the real server).
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api import rendering, streams
from bezel_simulated_vllm.api.bodies import Body, ChatBody, StreamOptions, check
from bezel_simulated_vllm.api.chat import prompt_tokens, start_chat
from bezel_simulated_vllm.api.errors import ApiError, api_error, json_response
from bezel_simulated_vllm.api.structured import required_tool, tool_call_id
from bezel_simulated_vllm.release import has_change
from bezel_simulated_vllm.scheduling.engine import EngineDeadError

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive

    from bezel_simulated_vllm.api.generation import Call
    from bezel_simulated_vllm.scheduling.channel import Piece
    from bezel_simulated_vllm.scheduling.engine import Engine


class CountBody(Body):
    """POST /v1/messages/count_tokens; what is read is in the recorded model."""

    recorded = "count_tokens"
    model: str


class MessagesBody(CountBody):
    """POST /v1/messages."""

    recorded = "messages"
    stream: bool | None = False


async def answer_messages(engine: Engine, body: MessagesBody, receive: Receive) -> Response:
    """Return the response to a call of the Messages API.

    Raises:
        ApiError: the call is refused.
        EngineDeadError: the engine died during the call.
    """
    chat = _chat(body)
    chat.parallel_rank = body.parallel_rank
    call = start_chat(engine, chat, "max_completion_tokens")

    def message(pieces: list[Piece]) -> dict[str, Any]:
        call.count_parsed(pieces)
        return _message(call, chat, pieces[0])

    return await streams.respond(call, receive, MessageStream(call, chat) if body.stream else None, message)


def count_tokens(engine: Engine, body: CountBody) -> Response:
    """Return the number of tokens in a call's prompt.

    Raises:
        ApiError: the prompt is refused.
    """
    chat = {"model": body.model, "messages": _messages(body.validated_body), **_template(body.validated_body)}
    check(ChatBody.recorded, chat)
    asked = ChatBody(**chat)
    rendering.check_template(asked)
    count = len(prompt_tokens(engine, asked))
    return json_response({"input_tokens": count, "context_management": {"original_input_tokens": count}})


def refusal(error: ApiError | EngineDeadError) -> Response:
    """Return an error in Anthropic's shape."""
    if isinstance(error, EngineDeadError):
        error = api_error("engine-dead")
    return json_response({"type": "error", "error": _error(error)}, error.status)


_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def _error(error: ApiError) -> dict[str, str]:
    """Return the error with its type: Anthropic's by the status, or in older releases vLLM's."""
    body = error.body["error"]
    by_status = _ERROR_TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    kind = by_status if has_change("anthropic-errors") else str(body["type"])
    return {"type": kind, "message": str(body["message"])}


# Fields with the name and the meaning that they have in a chat body.
_SHARED = (
    *("model", "max_tokens", "temperature", "top_p", "top_k", "cache_salt"),
    *("kv_transfer_params", "ec_transfer_params", "vllm_xargs"),
)


def _chat(body: MessagesBody) -> ChatBody:
    """Return the chat body of a call.

    Raises:
        ApiError: the chat API refuses it.
    """
    asked = body.validated_body
    base = {
        **{name: getattr(asked, name) for name in _SHARED},
        **_template(asked),
        "messages": _messages(asked),
        "max_completion_tokens": asked.max_tokens,
        "stop": asked.stop_sequences,
    }
    check(ChatBody.recorded, base)
    functions = [
        {"name": tool.name, "parameters": {"type": "object", **tool.input_schema}} for tool in asked.tools or ()
    ]
    choice = asked.tool_choice
    named = {"type": "function", "function": {"name": choice and choice.name}}
    choices: dict[str | None, Any] = {"any": "required", "tool": named, "auto": "auto", "none": "none"}
    form = asked.output_config and asked.output_config.format
    schema = form and form.json_schema
    thoughts = asked.thinking.budget_tokens if asked.thinking and asked.thinking.type == "enabled" else None
    return ChatBody(
        **base,
        stream=asked.stream,
        stream_options=StreamOptions(include_usage=True, continuous_usage_stats=True) if asked.stream else None,
        tools=[{"type": "function", "function": function} for function in functions] or None,
        tool_choice=choices.get(choice.type) if functions and choice else None,
        response_format={"type": "json_schema", "json_schema": {"schema": schema}} if schema else None,
        thinking_token_budget=thoughts,
    )


def _template(asked: Any) -> dict[str, Any]:
    return {"chat_template_kwargs": asked.chat_template_kwargs}


def _messages(asked: Any) -> list[dict[str, Any]]:
    """Return the messages of a chat body: texts, images, calls of tools and what those found."""
    system = asked.system if isinstance(asked.system, str) else "".join(map(_text, asked.system or ()))
    messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for message in asked.messages:
        if isinstance(message.content, str):
            text = message.content
            messages += [{"role": message.role, "content": text}] if text or message.role != "system" else []
        elif message.role == "system":
            text = "".join(map(_text, message.content))
            messages += [{"role": "system", "content": text}] if text else []
        else:
            messages += _messages_of_blocks(message.role, message.content)
    return messages


def _text(block: Any) -> str:
    return (block.text or "") if block.type == "text" else ""


def _messages_of_blocks(role: str, blocks: list[Any]) -> list[dict[str, Any]]:
    """Return a message of the user or of the assistant, after the results of tools that it holds."""
    results: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for block in blocks:
        if _text(block):
            parts.append({"type": "text", "text": block.text})
        elif block.type == "image" and block.source:
            parts.append({"type": "image_url", "image_url": {"url": str(block.source.get("url", ""))}})
        elif block.type == "tool_use":
            function = {"name": block.name or "", "arguments": json.dumps(block.input or {})}
            calls.append({"id": block.id or "call_0", "type": "function", "function": function})
        elif block.type == "tool_result" and role == "user":
            inner = block.content if isinstance(block.content, list) else []
            lines = [part.get("text", "") for part in inner if part.get("type") == "text"]
            text = block.content if isinstance(block.content, str) else "\n".join(lines)
            results.append({"role": "tool", "tool_call_id": block.tool_use_id or "", "content": text})
        elif block.type == "tool_result":
            parts.append({"type": "text", "text": f"Tool result: {block.content or ''}"})
    message = {"role": role} | ({"content": parts} if parts else {}) | ({"tool_calls": calls} if calls else {})
    thought = any(block.type == "thinking" and block.thinking is not None for block in blocks)
    empty = role == "user" and not parts
    return results if empty else [*results, message | ({"reasoning": ""} if thought else {})]


def _message(call: Call, chat: ChatBody, piece: Piece) -> dict[str, Any]:
    tool = required_tool(chat)
    content: list[dict[str, Any]] = []
    if piece.thought:
        content.append({"type": "thinking", "thinking": piece.thought, "signature": uuid.uuid4().hex})
    if tool and piece.finish == "stop":
        content.append(
            {"type": "tool_use", "id": tool_call_id(), "name": tool["name"], "input": json.loads(piece.text)}
        )
    elif piece.text or not content:
        content.append({"type": "text", "text": piece.text})
    reason, sequence = _stop(chat, piece)
    stopped = {"stop_reason": reason} | ({"stop_sequence": sequence} if sequence else {})
    head = {"id": call.id, "type": "message", "role": "assistant", "content": content, "model": call.model}
    return {**head, **stopped, "usage": _usage(call, call.completion_tokens)}


def _stop(chat: ChatBody, piece: Piece) -> tuple[str, str | None]:
    """Return Anthropic's stop reason, and the stop sequence that caused it."""
    if piece.finish == "length":
        return "max_tokens", None
    if required_tool(chat):
        return "tool_use", None
    if isinstance(piece.stop_reason, str):
        return "stop_sequence", piece.stop_reason
    return "end_turn", None


def _usage(call: Call, produced: int) -> dict[str, int]:
    if not call.engine.settings.prompt_tokens_details:
        return {"input_tokens": call.prompt_tokens, "output_tokens": produced}
    cached, created = call.cached_tokens, call.created_tokens
    read = call.prompt_tokens - cached - created
    details = {"cache_creation_input_tokens": created, "cache_read_input_tokens": cached}
    return {"input_tokens": read, "output_tokens": produced, **details}


class MessageStream(streams.BlockStream):
    """Anthropic's events: a message with blocks of thinking, text or a tool's input, one after another."""

    def __init__(self, call: Call, chat: ChatBody) -> None:
        super().__init__(call)
        self._chat = chat
        self._tool = required_tool(chat)

    def first_events(self) -> str:
        """Return the event of the empty message, sent with the first token."""
        call = self.call
        head = {"id": call.id, "type": "message", "role": "assistant", "content": [], "model": call.model}
        usage = {"input_tokens": call.prompt_tokens, "output_tokens": 0}
        return _event("message_start", message={**head, "stop_reason": None, "stop_sequence": None, "usage": usage})

    def deltas(self, piece: Piece) -> str:
        """Return the deltas of the thoughts, and of the text or the tool's input."""
        text = self._delta("thinking", "thinking_delta", "thinking", piece.thought)
        if self._tool:
            return text + self._delta("tool_use", "input_json_delta", "partial_json", piece.text)
        return text + self._delta("text", "text_delta", "text", piece.text)

    def last_events(self) -> str:
        """Return the end of the last block, the stop reason and the end of the message."""
        reason, sequence = _stop(self._chat, self.last) if self.last else ("end_turn", None)
        delta = {"stop_reason": reason, "stop_sequence": sequence}
        usage = _usage(self.call, self.call.completion_tokens)
        return self.leave() + _event("message_delta", delta=delta, usage=usage) + _event("message_stop")

    def failure_event(self) -> str:
        """Return the error event of a dead engine, in Anthropic's form."""
        if has_change("anthropic-errors"):
            return _event("error", error=_error(api_error("engine-dead")))
        return _event("error", error={"type": "internal_error", "message": "Invalid data format received"})

    def refusal_event(self, error: ApiError) -> str:
        """Return the error event; older releases do not translate a refusal inside a stream."""
        return _event("error", error=_error(error)) if has_change("anthropic-errors") else self.failure_event()

    def open_block(self, block: str) -> str:
        """Return the start of a block without content."""
        content: dict[str, Any] = {"type": block, block: ""}
        if self._tool and block == "tool_use":
            content = {"type": block, "id": tool_call_id(), "name": self._tool.get("name"), "input": {}}
        return _event("content_block_start", content_block=content, index=self.index)

    def close_block(self, _: str) -> str:
        """Return the stop of a block."""
        return _event("content_block_stop", index=self.index)

    def _delta(self, block: str, kind: str, key: str, text: str) -> str:
        if not text:
            return ""
        return self.enter(block) + _event("content_block_delta", delta={"type": kind, key: text}, index=self.index)


def _event(kind: str, **content: object) -> str:
    return streams.typed_event(kind, {"type": kind, **content})
