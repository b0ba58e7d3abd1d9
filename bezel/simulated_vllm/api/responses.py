"""Handlers of /v1/responses: OpenAI's Responses API over the chat path, as in vLLM.

Responses are not stored (vLLM does so only with VLLM_ENABLE_RESPONSES_API_STORE), so none can be fetched, cancelled or
continued. Tools are ignored: the path was measured on the real server for text and thoughts only.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from bezel.simulated_vllm.api import streams
from bezel.simulated_vllm.api.bodies import Body, ChatBody
from bezel.simulated_vllm.api.chat import count_parsed, start_chat
from bezel.simulated_vllm.api.errors import ApiError, compact, json_response
from bezel.simulated_vllm.scheduling.fake_text import THOUGHT

if TYPE_CHECKING:
    from starlette.types import Receive

    from bezel.simulated_vllm.api.generation import Call
    from bezel.simulated_vllm.scheduling.channel import Piece
    from bezel.simulated_vllm.scheduling.engine import Engine

_NO_STORE = (
    "This vLLM engine does not support `store=True` and therefore does not support the background mode. To enable "
    "these features, set the environment variable `VLLM_ENABLE_RESPONSES_API_STORE=1` when launching the vLLM server."
)


class ResponsesBody(Body):
    """POST /v1/responses."""

    model: str | None = None
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    max_output_tokens: int | None = None
    background: bool | None = False
    previous_response_id: str | None = None
    metadata: dict[str, Any] | None = None
    parallel_tool_calls: bool | None = True
    reasoning: dict[str, Any] | None = None
    stream: bool | None = False
    temperature: float | None = None
    top_p: float | None = None
    user: str | None = None
    cache_salt: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None


async def answer_responses(engine: Engine, body: ResponsesBody, receive: Receive) -> Response:
    """Return the response to a call of the Responses API.

    Raises:
        ApiError: the call is refused.
    """
    if body.background:
        raise ApiError(_NO_STORE, "invalid_request_error", "background")
    if body.previous_response_id:
        raise unknown_response(body.previous_response_id)
    system = [{"role": "system", "content": body.instructions}] if body.instructions else []
    asked = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    chat = ChatBody(
        model=body.model,
        messages=[*system, *asked],
        max_tokens=body.max_output_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        stream=body.stream,
        cache_salt=body.cache_salt,
        chat_template_kwargs=body.chat_template_kwargs,
    )
    call = start_chat(engine, chat, "max_output_tokens")
    answer = _Answer(call, body)
    if body.stream:
        return ResponseStream(call, chat, answer)
    pieces = await streams.whole(call, receive)
    if pieces is None:
        return Response()
    count_parsed(call, chat, pieces, kind="responses")
    return json_response(answer.finished(pieces[0]))


def unknown_response(name: str) -> ApiError:
    """Return the error of an unknown response: none is stored."""
    return ApiError(f"Response with id '{name}' not found.", "invalid_request_error", "response_id", 404)


class _Answer:
    """The response object of a call, before and after its text."""

    def __init__(self, call: Call, body: ResponsesBody) -> None:
        self.call = call
        self._body = body
        self._id = f"resp_{secrets.token_hex(8)}"
        self.message_id = f"msg_{secrets.token_hex(8)}"
        self.thought_id = f"rs_{secrets.token_hex(8)}"
        self._created = int(time.time())

    def whole(
        self, status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None, incomplete: object = None
    ) -> dict[str, Any]:
        """Return the object with all its keys."""
        body, call = self._body, self.call
        effort = {"context": None, "effort": None, "generate_summary": None, "mode": None, "summary": None}
        return {
            "id": self._id,
            "created_at": self._created,
            "incomplete_details": incomplete,
            "instructions": body.instructions,
            "metadata": body.metadata,
            "model": call.model,
            "object": "response",
            "output": output,
            "parallel_tool_calls": body.parallel_tool_calls,
            "temperature": 1.0 if body.temperature is None else body.temperature,
            "tool_choice": "none",
            "tools": [],
            "top_p": 1.0 if body.top_p is None else body.top_p,
            "background": body.background,
            "max_output_tokens": call.choices[0].request.max_tokens,
            "max_tool_calls": None,
            "previous_response_id": None,
            "prompt": None,
            "reasoning": None if body.reasoning is None else effort | body.reasoning,
            "service_tier": "auto",
            "status": status,
            "text": None,
            "top_logprobs": None,
            "truncation": "disabled",
            "usage": usage,
            "user": body.user,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "kv_transfer_params": None,
            "ec_transfer_params": None,
            "input_messages": None,
            "output_messages": None,
        }

    def finished(self, piece: Piece) -> dict[str, Any]:
        """Return the object of a completed answer."""
        choice = self.call.choices[0]
        thought = choice.thought[len(THOUGHT) :]
        output = [self.thought(thought)] if thought else []
        if choice.text:
            output.append(self.message(choice.text))
        if piece.finish == "length":
            return self.whole("incomplete", output, self._usage(), {"reason": "max_output_tokens"})
        return self.whole("completed", output, self._usage())

    def message(self, text: str) -> dict[str, Any]:
        """Return the item with the text."""
        return {
            "id": self.message_id,
            "content": [{"annotations": [], "text": text, "type": "output_text", "logprobs": None}],
            "role": "assistant",
            "status": "completed",
            "type": "message",
            "phase": None,
        }

    def thought(self, text: str) -> dict[str, Any]:
        """Return the item with the thoughts."""
        content = [{"text": text, "type": "reasoning_text"}]
        head = {"id": self.thought_id, "summary": [], "type": "reasoning", "content": content}
        return {**head, "encrypted_content": None, "status": None}

    def _usage(self) -> dict[str, Any]:
        call = self.call
        read = {"cached_tokens": 0, "cache_write_tokens": 0, "input_tokens_per_turn": [], "cached_tokens_per_turn": []}
        if call.engine.settings.prompt_tokens_details:
            read["cached_tokens"] = call.cached_tokens
        written = {"reasoning_tokens": call.thought_tokens, "tool_output_tokens": 0}
        return {
            "input_tokens": call.prompt_tokens,
            "input_tokens_details": read,
            "output_tokens": call.completion_tokens,
            "output_tokens_details": {**written, "output_tokens_per_turn": [], "tool_output_tokens_per_turn": []},
            "total_tokens": call.prompt_tokens + call.completion_tokens,
        }


class ResponseStream(streams.EventStream):
    """The events of a response: created, one item for the thoughts and one for the text, completed."""

    def __init__(self, call: Call, chat: ChatBody, answer: _Answer) -> None:
        super().__init__(call)
        self._chat = chat
        self._answer = answer
        self._number = -1
        self._item: str | None = None
        self._output = -1
        self._last: Piece | None = None

    def opened(self) -> str:
        """Return the events of the accepted response, which do not wait for a token."""
        response = self._answer.whole("in_progress", [], None)
        return self._event("response.created", {"response": response}) + self._event(
            "response.in_progress", {"response": response}
        )

    def events(self, piece: Piece) -> str:
        """Return the deltas, with the events that open and close items around them."""
        self._last = piece
        count_parsed(self.call, self._chat, [piece], kind="responses", streaming=True)
        text = ""
        if piece.thought:
            text += self._enter("thought") + self._delta("response.reasoning_text.delta", piece.thought)
        if piece.text:
            text += self._enter("text")
            text += self._delta("response.output_text.delta", piece.text, logprobs=[])
        return text

    def ended(self) -> str:
        """Return the end of the last item and the whole response."""
        left = self._leave()
        done = {} if self._last is None else self._answer.finished(self._last)
        return left + self._event("response.completed", {"response": done})

    def _enter(self, item: str) -> str:
        if self._item == item:
            return ""
        left = self._leave()
        self._item = item
        self._output += 1
        if item == "text":
            opened = {**self._answer.message(""), "content": [], "status": "in_progress"}
            part: dict[str, Any] = {"annotations": [], "text": "", "type": "output_text", "logprobs": []}
        else:
            opened = {**self._answer.thought(""), "content": None, "status": "in_progress"}
            part = {"text": "", "type": "reasoning_text"}
        added = self._event("response.output_item.added", {"item": opened, "output_index": self._output})
        return left + added + self._event("response.content_part.added", {**self._place(item), "part": part})

    def _leave(self) -> str:
        item, self._item = self._item, None
        if item is None:
            return ""
        choice, place = self.call.choices[0], self._place(item)
        if item == "text":
            whole = self._answer.message(choice.text)
            done = self._event("response.output_text.done", {**place, "logprobs": [], "text": choice.text})
        else:
            text = choice.thought[len(THOUGHT) :]
            whole = self._answer.thought(text) | {"status": "completed"}
            done = self._event("response.reasoning_text.done", {**place, "text": text})
        done += self._event("response.content_part.done", {**place, "part": whole["content"][0]})
        return done + self._event("response.output_item.done", {"item": whole, "output_index": self._output})

    def _place(self, item: str | None) -> dict[str, Any]:
        name = self._answer.message_id if item == "text" else self._answer.thought_id
        return {"content_index": 0, "item_id": name, "output_index": self._output}

    def _delta(self, kind: str, text: str, **more: object) -> str:
        return self._event(kind, {**self._place(self._item), "delta": text, **more})

    def _event(self, kind: str, content: dict[str, Any]) -> str:
        """Return one event; its keys are in alphabetical order, as in the client library's models."""
        self._number += 1
        rows = dict(sorted({**content, "sequence_number": self._number, "type": kind}.items()))
        return f"event: {kind}\ndata: {compact(rows)}\n\n"
