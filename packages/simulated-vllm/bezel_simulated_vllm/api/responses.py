"""Handlers of /v1/responses: OpenAI's Responses API over the chat path, as in vLLM.

Responses are not stored (vLLM does so only with VLLM_ENABLE_RESPONSES_API_STORE), so none can be fetched, cancelled or
continued. A function is called where the choice of tools prescribes it, as in chat; any other choice is a text. A
server without a parser of tool calls answers every choice with a text here, and refuses in chat: measured on 0.32.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api import streams
from bezel_simulated_vllm.api.bodies import Body, ChatBody
from bezel_simulated_vllm.api.chat import start_chat
from bezel_simulated_vllm.api.errors import api_error
from bezel_simulated_vllm.api.response_object import ResponseObject, plain
from bezel_simulated_vllm.api.structured import required_tool
from bezel_simulated_vllm.api.validation.responses import SEPARATOR
from bezel_simulated_vllm.release import has_change
from bezel_simulated_vllm.scheduling.fake_text import THOUGHT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.responses import Response
    from starlette.types import Receive

    from bezel_simulated_vllm.api.errors import ApiError
    from bezel_simulated_vllm.api.generation import Call
    from bezel_simulated_vllm.scheduling.channel import Piece
    from bezel_simulated_vllm.scheduling.engine import Engine

_LOGPROBS = "message.output_text.logprobs"
# Fields with the name and the meaning that they have in a chat body.
_SHARED = (
    *("model", "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty"),
    *("seed", "stop_token_ids", "ignore_eos", "include_stop_str_in_output", "logit_bias", "stream"),
    *("cache_salt", "vllm_xargs", "kv_transfer_params", "ec_transfer_params", "chat_template_kwargs"),
    *("mm_processor_kwargs", "media_io_kwargs", "include_reasoning"),
)
_EXPECTED = {"background": ("bool_type", "a valid boolean"), "truncation": ("literal_error", "'auto' or 'disabled'")}
# Items of the input that are no messages, with what the template makes of them; others are refused.
_ITEMS = {
    "function_call": ("assistant", "arguments"),
    "custom_tool_call": ("assistant", "input"),
    "function_call_output": ("tool", "output"),
    "custom_tool_call_output": ("tool", "output"),
    "reasoning": ("assistant", "content"),
}


class ResponsesBody(Body):
    """POST /v1/responses; what is read is in the recorded model."""

    recorded = "responses"
    model: str | None = None


async def answer_responses(engine: Engine, body: ResponsesBody, receive: Receive) -> Response:
    """Return the response to a call of the Responses API.

    Raises:
        ApiError: the call is refused.
    """
    asked = body.validated_body
    if asked.background and asked.store:
        raise api_error("no-store")
    if asked.previous_input_messages and asked.previous_response_id:
        raise api_error("two-histories")
    if asked.previous_response_id is not None:
        raise api_error("unknown-response", name=asked.previous_response_id)
    top = asked.top_logprobs if _LOGPROBS in (asked.include or ()) else None
    chat = _chat(asked, top, calls_tools=engine.settings.tool_parser is not None)
    chat.parallel_rank = body.parallel_rank if has_change("parallel-responses") else None
    call = start_chat(engine, chat, "max_output_tokens")
    # The real server fails on null in these once it makes its response object.
    broken = next((name for name in ("background", "truncation") if getattr(asked, name) is None), None)
    if broken and not asked.stream:
        call.abort()
        kind, expected = _EXPECTED[broken]
        raise api_error("response-field", name=broken, expected=expected, kind=kind)
    answer = ResponseObject(call, asked, top, required_tool(chat))

    def response(pieces: list[Piece]) -> dict[str, Any]:
        call.count_parsed(pieces, ResponseStream.request_type)
        return answer.whole_of(pieces[0])

    stream = ResponseStream(call, answer, broken=broken is not None) if asked.stream else None
    return await streams.respond(call, receive, stream, response)


def _chat(asked: Any, top: int | None, *, calls_tools: bool) -> ChatBody:
    """Return the chat body of a call.

    Raises:
        ApiError: an item of the input is refused, or the answer has two forms.
    """
    chat = {name: getattr(asked, name) for name in _SHARED}
    form = asked.text and asked.text.format
    if form is not None and asked.structured_outputs is not None:
        raise api_error("two-forms")
    kind = getattr(form, "type", None) or (form or {}).get("type") if form is not None else None
    schema = plain(form).get("schema") if kind == "json_schema" else None
    if kind == "json_object":
        chat["response_format"] = {"type": "json_object"}
    elif schema is not None:
        chat["response_format"] = {"type": "json_schema", "json_schema": {"schema": schema}}
    outputs = asked.structured_outputs
    system = [{"role": "system", "content": asked.instructions}] if asked.instructions else []
    return ChatBody(
        **chat,
        messages=[*system, *_messages(asked.input)],
        stop=asked.stop or None,
        max_tokens=asked.max_output_tokens,
        structured_outputs=None if outputs is None else dict(vars(outputs)),
        logprobs=top is not None,
        top_logprobs=top,
        truncate_prompt_tokens=-1 if asked.truncation != "disabled" else None,
        **(_prescribed_call(asked) if calls_tools else {}),
    )


def _prescribed_call(asked: Any) -> dict[str, Any]:
    """Return the tools and the choice of a chat body, where the choice prescribes the call of a function."""
    choice, functions = plain(asked.tool_choice), list(_functions(plain(asked.tools) or []))
    named = choice.get("name") if isinstance(choice, dict) and choice.get("type") == "function" else None
    if not functions or (choice != "required" and named not in {function["name"] for function in functions}):
        return {}
    tool_choice = choice if named is None else {"type": "function", "function": {"name": named}}
    return {"tools": [{"type": "function", "function": each} for each in functions], "tool_choice": tool_choice}


def _functions(tools: list[Any], namespace: str = "") -> Iterator[dict[str, Any]]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from _functions(tool.get("tools") or [], f"{tool['name']}{SEPARATOR}")
        elif tool.get("type") == "function":
            kept = {key: tool[key] for key in ("description", "parameters") if tool.get(key) is not None}
            yield {"name": f"{namespace}{tool['name']}", **kept}


def _messages(asked: Any) -> list[dict[str, Any]]:
    """Return the messages of an input.

    Raises:
        ApiError: an item is none that a chat template knows.
    """
    if isinstance(asked, str):
        return [{"role": "user", "content": asked}]
    messages = []
    for item in map(plain, asked):
        kind = item.get("type") or "message"
        if kind == "message" and item["role"] == "assistant" and {"id", "status"} <= item.keys():
            item["content"] = _earlier_answer(item["content"])
        if kind == "message":
            messages.append({"role": item["role"], "content": item["content"]})
        elif kind in _ITEMS:
            role, field = _ITEMS[kind]
            content = item.get(field)
            messages.append({"role": role, "content": content if isinstance(content, str) else ""})
        else:
            raise api_error("item-type", kind=kind)
    return messages


def _earlier_answer(content: Any) -> Any:
    """Return the content of an answer with its id and status, of whose first part the real server reads the text.

    Raises:
        ApiError: the answer has no part, or its first one has no text.
    """
    if isinstance(content, str):
        return content
    parts = list(content)
    if not parts:
        raise api_error("python-500", text="list index out of range")
    if "text" not in parts[0]:
        raise api_error("python-500", text="'ResponseOutputRefusal' object has no attribute 'text'")
    return parts


class ResponseStream(streams.BlockStream):
    """The events of a response: created, items for the thoughts and for the text or the call, completed."""

    request_type = "responses"

    def __init__(self, call: Call, answer: ResponseObject, *, broken: bool = False) -> None:
        super().__init__(call)
        self._answer = answer
        self._broken = broken
        self._number = -1

    def refusal_event(self, _: ApiError) -> None:
        """Break the stream off, as the real server does."""

    def opening_events(self) -> str:
        """Return the events of the accepted response, which do not wait for a token."""
        if self._broken:
            raise streams.BrokenOffError
        response = self._answer.whole("in_progress", [], None)
        return "".join(self._event(f"response.{kind}", response=response) for kind in ("created", "in_progress"))

    def deltas(self, piece: Piece) -> str:
        """Return the deltas of the thoughts and of the text."""
        text = ""
        if piece.thought:
            text += self.enter("thought")
            text += self._event("response.reasoning_text.delta", **self._place("thought"), delta=piece.thought)
        if piece.text and self._answer.tool:
            text += self.enter("call")
            place = {"item_id": self._answer.call_id, "output_index": self.index}
            text += self._event("response.function_call_arguments.delta", **place, delta=piece.text)
        elif piece.text:
            text += self.enter("text")
            place = self._place("text")
            logprobs = self._answer.logprobs(piece.produced - len(piece.tokens), piece.tokens, brief=True) or []
            text += self._event("response.output_text.delta", **place, delta=piece.text, logprobs=logprobs)
        return text

    def last_events(self) -> str:
        """Return the end of the last item and the whole response."""
        closed = self.leave()
        response = {} if self.last is None else self._answer.whole_of(self.last)
        incomplete = self._answer.item_status(self.last) == "incomplete"
        return closed + self._event(f"response.{'incomplete' if incomplete else 'completed'}", response=response)

    def open_block(self, block: str) -> str:
        """Return the start of an item and of its one part; a call has none."""
        if block == "call":
            item = self._answer.function_call("") | {"status": "in_progress"}
            return self._event("response.output_item.added", item=item, output_index=self.index)
        if block == "text":
            item = {**self._answer.message(""), "content": [], "status": "in_progress"}
            part: dict[str, Any] = {"annotations": [], "text": "", "type": "output_text", "logprobs": []}
        else:
            item = {**self._answer.thought_item(""), "content": None, "status": "in_progress"}
            part = {"text": "", "type": "reasoning_text"}
        added = self._event("response.output_item.added", item=item, output_index=self.index)
        return added + self._event("response.content_part.added", **self._place(block), part=part)

    def close_block(self, block: str) -> str:
        """Return the whole text, part and item."""
        choice, place = self.call.choices[0], self._place(block)
        if block == "call":
            item = self._answer.function_call(choice.text)
            about = {"item_id": item["id"], "name": item["name"], "output_index": self.index}
            done = self._event("response.function_call_arguments.done", arguments=choice.text, **about)
            return done + self._event("response.output_item.done", item=item, output_index=self.index)
        if block == "text":
            logprobs = self._answer.logprobs(0, choice.tokens)
            item = self._answer.message(choice.text, logprobs, self._answer.item_status(self.last))
            done = self._event("response.output_text.done", **place, logprobs=[], text=choice.text)
        else:
            text = choice.thought[len(THOUGHT) :]
            item = self._answer.thought_item(text) | {"status": "completed"}
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
