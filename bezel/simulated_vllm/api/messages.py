"""Handlers of POST /v1/messages and /v1/messages/count_tokens: Anthropic's API over the chat path, as in vLLM.

Owns the translation of a body into a chat body, of its pieces into content blocks, and of refusals into Anthropic's
shape (a body of the wrong shape is refused in OpenAI's, as by the real server). Of content blocks it reads only text.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from bezel.simulated_vllm.api import streams
from bezel.simulated_vllm.api.bodies import Body, ChatBody, StreamOptions
from bezel.simulated_vllm.api.chat import prompt_tokens, start_chat
from bezel.simulated_vllm.api.errors import ApiError, json_response, refused
from bezel.simulated_vllm.api.structured import required_tool, tool_call_id
from bezel.simulated_vllm.scheduling.engine import EngineDeadError

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive

    from bezel.simulated_vllm.api.generation import Call
    from bezel.simulated_vllm.scheduling.channel import Piece
    from bezel.simulated_vllm.scheduling.engine import Engine


def _positive(value: int) -> int:
    if value <= 0:
        raise ValueError("max_tokens must be positive")
    return value


class CountBody(Body):
    """POST /v1/messages/count_tokens."""

    model: str
    messages: list[dict[str, Any]]
    system: str | list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class MessagesBody(CountBody):
    """POST /v1/messages."""

    max_tokens: Annotated[int, AfterValidator(_positive)]
    stop_sequences: list[str] | None = None
    stream: bool | None = False
    temperature: float | None = None
    tool_choice: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    top_k: int | None = None
    top_p: float | None = None
    cache_salt: str | None = None


async def answer_messages(engine: Engine, body: MessagesBody, receive: Receive) -> Response:
    """Return the response to a call of the Messages API.

    Raises:
        ApiError: the call is refused.
        EngineDeadError: the engine died during the call.
    """
    chat = _chat(body)
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
    count = len(prompt_tokens(engine, ChatBody.model_validate({"messages": _messages(body)})))
    return json_response({"input_tokens": count, "context_management": {"original_input_tokens": count}})


def refusal(error: ApiError | EngineDeadError) -> Response:
    """Return an error in Anthropic's shape."""
    if isinstance(error, EngineDeadError):
        error = refused("engine-dead")
    body = error.body["error"]
    return json_response({"type": "error", "error": {"type": body["type"], "message": body["message"]}}, error.status)


def _chat(body: MessagesBody) -> ChatBody:
    functions = [
        {"name": tool.get("name"), "parameters": tool.get("input_schema") or {"type": "object"}}
        for tool in body.tools or []
    ]
    choice = body.tool_choice or {}
    named = {"type": "function", "function": {"name": choice.get("name")}}
    choices: dict[str | None, Any] = {"any": "required", "tool": named, "auto": "auto", "none": "none"}
    return ChatBody(
        model=body.model,
        messages=_messages(body),
        max_completion_tokens=body.max_tokens,
        stop=body.stop_sequences,
        temperature=body.temperature,
        top_p=body.top_p,
        top_k=body.top_k,
        stream=body.stream,
        stream_options=StreamOptions(include_usage=True, continuous_usage_stats=True) if body.stream else None,
        tools=[{"type": "function", "function": function} for function in functions] or None,
        tool_choice=choices.get(choice.get("type")) if functions else None,
        cache_salt=body.cache_salt,
        chat_template_kwargs=body.chat_template_kwargs,
    )


def _messages(body: CountBody) -> list[dict[str, Any]]:
    if not body.system:
        return body.messages
    parts = [{"type": "text", "text": body.system}] if isinstance(body.system, str) else body.system
    return [{"role": "system", "content": parts}, *body.messages]


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

    def begun(self) -> str:
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

    def ended(self) -> str:
        """Return the end of the last block, the stop reason and the end of the message."""
        reason, sequence = _stop(self._chat, self.last) if self.last else ("end_turn", None)
        delta = {"stop_reason": reason, "stop_sequence": sequence}
        usage = _usage(self.call, self.call.completion_tokens)
        return self.leave() + _event("message_delta", delta=delta, usage=usage) + _event("message_stop")

    def broken(self) -> str:
        """Return the error event of a dead engine, in Anthropic's form."""
        return _event("error", error={"type": "internal_error", "message": "Invalid data format received"})

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
