"""Handlers of /v1/responses: OpenAI's Responses API over the chat path, as in vLLM.

Responses are not stored (vLLM does so only with VLLM_ENABLE_RESPONSES_API_STORE), so none can be fetched, cancelled or
continued. Tools are ignored: the path was measured on the real server for text and thoughts only.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from bezel.simulated_vllm.api import streams
from bezel.simulated_vllm.api.bodies import Body, ChatBody
from bezel.simulated_vllm.api.chat import start_chat
from bezel.simulated_vllm.api.errors import TEMPLATES, refused
from bezel.simulated_vllm.scheduling.fake_text import THOUGHT

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive

    from bezel.simulated_vllm.api.generation import Call
    from bezel.simulated_vllm.scheduling.channel import Piece
    from bezel.simulated_vllm.scheduling.engine import Engine


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
        raise refused("no-store")
    if body.previous_response_id:
        raise refused("unknown-response", name=body.previous_response_id)
    system = [{"role": "system", "content": body.instructions}] if body.instructions else []
    messages = [{"role": "user", "content": body.input}] if isinstance(body.input, str) else body.input
    chat = ChatBody(
        model=body.model,
        messages=[*system, *messages],
        max_tokens=body.max_output_tokens,
        temperature=body.temperature,
        top_p=body.top_p,
        stream=body.stream,
        cache_salt=body.cache_salt,
        chat_template_kwargs=body.chat_template_kwargs,
    )
    call = start_chat(engine, chat, "max_output_tokens")
    answer = _Answer(call, body)

    def response(pieces: list[Piece]) -> dict[str, Any]:
        call.count_parsed(pieces, ResponseStream.request_type)
        return answer.finished(pieces[0])

    return await streams.respond(call, receive, ResponseStream(call, answer) if body.stream else None, response)


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
        copied = ("instructions", "metadata", "parallel_tool_calls", "background", "user")
        return TEMPLATES["response"] | {
            "id": self._id,
            "created_at": self._created,
            "incomplete_details": incomplete,
            "model": call.model,
            "output": output,
            "temperature": 1.0 if body.temperature is None else body.temperature,
            "top_p": 1.0 if body.top_p is None else body.top_p,
            "max_output_tokens": call.choices[0].request.max_tokens,
            "reasoning": None if body.reasoning is None else effort | body.reasoning,
            "status": status,
            "usage": usage,
            **{name: getattr(body, name) for name in copied},
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
        content: list[dict[str, Any]] = [{"annotations": [], "text": text, "type": "output_text", "logprobs": None}]
        return TEMPLATES["response_message"] | {"id": self.message_id, "content": content}

    def thought(self, text: str) -> dict[str, Any]:
        """Return the item with the thoughts."""
        content = [{"text": text, "type": "reasoning_text"}]
        return TEMPLATES["response_thought"] | {"id": self.thought_id, "content": content}

    def _usage(self) -> dict[str, Any]:
        call, usage = self.call, TEMPLATES["response_usage"]
        cached = call.cached_tokens if call.engine.settings.prompt_tokens_details else 0
        return usage | {
            "input_tokens": call.prompt_tokens,
            "input_tokens_details": usage["input_tokens_details"] | {"cached_tokens": cached},
            "output_tokens": call.completion_tokens,
            "output_tokens_details": usage["output_tokens_details"] | {"reasoning_tokens": call.thought_tokens},
            "total_tokens": call.prompt_tokens + call.completion_tokens,
        }


class ResponseStream(streams.BlockStream):
    """The events of a response: created, one item for the thoughts and one for the text, completed."""

    request_type = "responses"

    def __init__(self, call: Call, answer: _Answer) -> None:
        super().__init__(call)
        self._answer = answer
        self._number = -1

    def opened(self) -> str:
        """Return the events of the accepted response, which do not wait for a token."""
        response = self._answer.whole("in_progress", [], None)
        return "".join(self._event(f"response.{kind}", response=response) for kind in ("created", "in_progress"))

    def deltas(self, piece: Piece) -> str:
        """Return the deltas of the thoughts and of the text."""
        text = ""
        if piece.thought:
            text += self.enter("thought")
            text += self._event("response.reasoning_text.delta", **self._place("thought"), delta=piece.thought)
        if piece.text:
            text += self.enter("text")
            text += self._event("response.output_text.delta", **self._place("text"), delta=piece.text, logprobs=[])
        return text

    def ended(self) -> str:
        """Return the end of the last item and the whole response."""
        closed = self.leave()
        response = {} if self.last is None else self._answer.finished(self.last)
        return closed + self._event("response.completed", response=response)

    def open_block(self, block: str) -> str:
        """Return the start of an item and of its one part."""
        if block == "text":
            item = {**self._answer.message(""), "content": [], "status": "in_progress"}
            part: dict[str, Any] = {"annotations": [], "text": "", "type": "output_text", "logprobs": []}
        else:
            item = {**self._answer.thought(""), "content": None, "status": "in_progress"}
            part = {"text": "", "type": "reasoning_text"}
        added = self._event("response.output_item.added", item=item, output_index=self.index)
        return added + self._event("response.content_part.added", **self._place(block), part=part)

    def close_block(self, block: str) -> str:
        """Return the whole text, part and item."""
        choice, place = self.call.choices[0], self._place(block)
        if block == "text":
            item = self._answer.message(choice.text)
            done = self._event("response.output_text.done", **place, logprobs=[], text=choice.text)
        else:
            text = choice.thought[len(THOUGHT) :]
            item = self._answer.thought(text) | {"status": "completed"}
            done = self._event("response.reasoning_text.done", **place, text=text)
        done += self._event("response.content_part.done", **place, part=item["content"][0])
        return done + self._event("response.output_item.done", item=item, output_index=self.index)

    def _place(self, block: str) -> dict[str, Any]:
        name = self._answer.message_id if block == "text" else self._answer.thought_id
        return {"content_index": 0, "item_id": name, "output_index": self.index}

    def _event(self, kind: str, **content: object) -> str:
        """Return one event; its keys are in alphabetical order, as in the client library's models."""
        self._number += 1
        rows = {**content, "sequence_number": self._number, "type": kind}
        return streams.typed_event(kind, dict(sorted(rows.items())))
