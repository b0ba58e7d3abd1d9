"""POST /v1/chat/completions (and /invocations): from messages to an answer or a stream of chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bezel.localcloud.vllm import bodies, streams
from bezel.localcloud.vllm.call import Call, check_max_tokens, start_call, tokens_of
from bezel.localcloud.vllm.choices import Piece, chat_logprobs
from bezel.localcloud.vllm.errors import ApiError, invalid, json_response
from bezel.localcloud.vllm.structured import scripted_answer, tool_call

if TYPE_CHECKING:
    from starlette.types import Receive

    from bezel.localcloud.vllm.bodies import ChatBody
    from bezel.localcloud.vllm.engine import Engine

_AUTO_TOOLS = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'


async def answer_chat(engine: Engine, body: ChatBody, fingerprint: str, receive: Receive) -> Response:
    """Answer a chat call.

    Raises:
        ApiError: the call is refused.
    """
    settings = engine.settings
    if body.tools and body.tool_choice in (None, "auto") and not (settings.auto_tools and settings.tool_parser):
        raise ApiError(_AUTO_TOOLS)
    if body.tool_choice not in (None, "none") and not body.tools:
        raise invalid("When using `tool_choice`, `tools` must be set.", "tool_choice")
    if not body.messages:
        raise ApiError("Cannot apply chat template to an empty conversation. Provide at least one message.")
    if bodies.media(body.messages) and not settings.model.multimodal:
        raise ApiError(f"{settings.served_names[0]} is not a multimodal model")
    asked = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    check_max_tokens(asked, settings.max_model_len)
    text = bodies.messages_text(body.messages, generate=body.add_generation_prompt)
    prompt = tokens_of(text, settings.max_model_len)
    call = start_call(engine, body, [prompt], max_tokens=asked, scripted=scripted_answer(body))
    if body.stream:
        return ChatStream(call, body, fingerprint)
    pieces = await streams.whole(call, receive)
    if pieces is None:
        return Response()
    choices = [_choice(call, body, piece) for piece in pieces]
    extra = dict.fromkeys(("prompt_logprobs", "prompt_token_ids", "prompt_text"))
    return json_response(call.answer("chat.completion", choices, fingerprint, extra))


def _choice(call: Call, body: ChatBody, piece: Piece) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": piece.text,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "reasoning": None,
    }
    finish: str | None = piece.finish
    called = tool_call(body, piece.text)
    if called:
        message |= {"content": None, "tool_calls": [called]}
        finish = finish if isinstance(body.tool_choice, dict) else "tool_calls"
    return {
        "index": piece.index,
        "message": message,
        "logprobs": _logprobs(call, body, piece),
        "finish_reason": finish,
        "stop_reason": piece.stop_reason,
        "token_ids": None,
        "routed_experts": None,
    }


def _logprobs(call: Call, body: ChatBody, piece: Piece) -> dict[str, object] | None:
    if not body.logprobs:
        return None
    key = call.choices[piece.index].request.key
    return chat_logprobs(key, piece.produced - len(piece.tokens), piece.tokens, body.top_logprobs or 0)


class ChatStream(streams.EventStream):
    """The chunks of a chat call: the role first, then the text."""

    kind = "chat.completion.chunk"

    def __init__(self, call: Call, body: ChatBody, fingerprint: str) -> None:
        super().__init__(call, fingerprint)
        self._body = body

    def opening(self, index: int) -> dict[str, Any]:
        """The role, which arrives with the first token."""
        delta = {"role": "assistant", "content": ""}
        return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}

    def choice(self, piece: Piece) -> dict[str, Any]:
        """Some text."""
        choice: dict[str, Any] = {"index": piece.index, "delta": {"content": piece.text}}
        choice |= {"logprobs": _logprobs(self.call, self._body, piece), "finish_reason": piece.finish}
        if piece.finish:
            choice["stop_reason"] = piece.stop_reason
        return {**choice, "token_ids": None}

    def running_usage(self, produced: int) -> dict[str, object]:
        """With the details that only chat has."""
        details = {"reasoning_tokens": 0} if self.call.engine.settings.reasoning_parser else None
        return super().running_usage(produced) | {"completion_tokens_details": details}
