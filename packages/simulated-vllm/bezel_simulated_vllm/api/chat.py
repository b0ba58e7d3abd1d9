"""Handler of POST /v1/chat/completions (and /invocations): from messages to a response or a stream of chunks."""

from __future__ import annotations

from http import HTTPStatus
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api import rendering, streams
from bezel_simulated_vllm.api.errors import TEMPLATES, ApiError, api_error, compact
from bezel_simulated_vllm.api.generation import Call, start_call, thinks
from bezel_simulated_vllm.api.structured import required_tool
from bezel_simulated_vllm.api.tool_calls.constraints import force_calls
from bezel_simulated_vllm.api.tool_calls.parsers import (
    is_forced_by_schema,
    new_id,
    reads_json_pieces,
    streams_nothing,
)
from bezel_simulated_vllm.scheduling.detokenize import chat_logprobs
from bezel_simulated_vllm.scheduling.tokenizer import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.responses import Response
    from starlette.types import Receive

    from bezel_simulated_vllm.api.bodies import ChatBody
    from bezel_simulated_vllm.scheduling.channel import Piece
    from bezel_simulated_vllm.scheduling.engine import Engine


async def answer_chat(engine: Engine, body: ChatBody, receive: Receive) -> Response:
    """Return the response to a chat call.

    Raises:
        ApiError: the call is refused.
    """
    call = start_chat(engine, body)

    def completion(pieces: list[Piece]) -> dict[str, object]:
        call.count_parsed(pieces)
        prompt = call.choices[0].request.prompt
        extra: dict[str, object] = {
            "prompt_logprobs": call.prompt_logprobs(prompt),
            "prompt_token_ids": prompt if body.return_token_ids else None,
            "prompt_text": decode(prompt) if body.return_prompt_text else None,
        }
        return call.answer("chat.completion", [chat_choice(call, body, piece) for piece in pieces], extra)

    stream = ChatStream(call, body) if body.stream else None
    return await streams.respond(call, receive, stream, completion)


def start_chat(engine: Engine, body: ChatBody, limit_name: str | None = None) -> Call:
    """Check a chat call and queue its requests.

    Args:
        engine: the engine.
        body: the call.
        limit_name: the client's name of its limit of tokens, if it is not the chat API's.

    Raises:
        ApiError: the call is refused.
    """
    _check_tools(engine, body)
    force_calls(body, engine.settings)
    rendering.check_template(body)
    limit = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    name = limit_name or ("max_tokens" if body.max_completion_tokens is None else "max_completion_tokens")
    rendering.check_length(body, limit, engine.settings.max_model_len, name)
    rendering.reused_ids(body)
    return start_call(engine, body, [prompt_tokens(engine, body)], max_tokens=limit)


def prompt_tokens(engine: Engine, body: ChatBody) -> Sequence[int]:
    """Return the prompt that the chat template makes of the messages.

    Raises:
        ApiError: there are no messages, they hold media that the model cannot read, or they are too long.
    """
    settings = engine.settings
    messages = body.messages if body.validated_body is None else body.validated_body.messages
    text = rendering.messages_text(
        messages, settings, generate=body.add_generation_prompt, think=thinks(body, settings)
    )
    if body.continue_final_message and body.add_generation_prompt:
        raise api_error("continued")
    return rendering.tokens_of(text, settings.max_model_len, body.truncate_prompt_tokens, body.truncation_side)


def _check_tools(engine: Engine, body: ChatBody) -> None:
    """Refuse a choice of tools that needs the server's parser of their calls."""
    settings, choice = engine.settings, body.tool_choice
    if choice is None and "tool_choice" not in body.model_fields_set and body.tools:
        choice = "auto"
    if choice in (None, "none") or (settings.auto_tools and settings.tool_parser):
        return
    if choice == "auto":
        raise api_error("auto-tools")
    if settings.tool_parser is None:
        shown = f'function "{choice["function"]["name"]}"' if isinstance(choice, dict) else f'"{choice}"'
        raise api_error("tool-parser", choice=shown)


def chat_choice(call: Call, body: ChatBody, piece: Piece) -> dict[str, Any]:
    """Return the choice of a whole answer."""
    tool = required_tool(body)
    # With a parser of tools or thoughts, the content of an answer without text is null.
    content = "" if tool else piece.text or (None if parses(call) else "")
    if body.echo:
        content = _echo_text(body) + (content or "")
    message: dict[str, Any] = TEMPLATES["chat_message"] | {"role": role_of(body), "content": content}
    if tool:
        function = {"name": tool.get("name", ""), "arguments": piece.text}
        call_id = new_id(call.engine.settings, body, function["name"])
        message["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
    message["reasoning"] = piece.thought or None if body.include_reasoning else None
    return {
        "index": piece.index,
        "message": message,
        "logprobs": _logprobs(call, body, piece),
        "finish_reason": finish_reason(body, piece),
        "stop_reason": piece.stop_reason,
        "token_ids": piece.tokens if body.return_token_ids and not _hides(call, body) else None,
        "routed_experts": None,
        **call.versions_of(piece.produced),
    }


def role_of(body: ChatBody) -> str:
    """Return the role of the answer: that of the last message where no new one is begun."""
    return "assistant" if body.add_generation_prompt else str(body.messages[-1].get("role"))


def _echo_text(body: ChatBody) -> str:
    """Return the text of the last message, where the answer has its role."""
    last = body.messages[-1] if body.messages else {}
    content = last.get("content")
    if last.get("role") != role_of(body) or not content:
        return ""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


def _hides(call: Call, body: ChatBody) -> bool:
    """Whether tokens and their probabilities are left out, because they would tell the thoughts."""
    return parses(call) and not body.include_reasoning


def parses(call: Call) -> bool:
    """Whether the server parses the model's text for thoughts or tool calls."""
    return call.engine.settings.reasoning_parser is not None or call.engine.settings.tool_parser is not None


def finish_reason(body: ChatBody, piece: Piece) -> str | None:
    """Return the finish reason: "tool_calls" for a required tool, but "stop" for a named one."""
    called = piece.finish == "stop" and body.tool_choice == "required"
    return "tool_calls" if called else piece.finish


def _streamed_finish(call: Call, body: ChatBody, piece: Piece) -> str | None:
    """Return the finish reason in a stream, which knows of calls what it has sent."""
    return piece.finish if streams_nothing(call.engine.settings, body) else finish_reason(body, piece)


def _logprobs(call: Call, body: ChatBody, piece: Piece) -> dict[str, object] | None:
    if not body.logprobs or _hides(call, body):
        return None
    key, start = call.choices[piece.index].request.key, piece.produced - len(piece.tokens)
    as_ids, labels = bool(body.return_tokens_as_token_ids), body.logprob_token_ids or ()
    logprobs = chat_logprobs(key, start, piece.tokens, body.top_logprobs or 0, labels, as_ids=as_ids)
    return _of_beam(logprobs) if body.use_beam_search else logprobs


def _of_beam(logprobs: dict[str, Any]) -> dict[str, object]:
    """Return the probabilities as a beam search has them: neither bytes nor other tokens."""
    return {**logprobs, "content": [row | {"bytes": None, "top_logprobs": []} for row in logprobs["content"]]}


class ChatStream(streams.OpenAiStream):
    """The chunks of a chat call: the role first, then thoughts, then the text or a tool's arguments."""

    kind = "chat.completion.chunk"

    def __init__(self, call: Call, body: ChatBody) -> None:
        super().__init__(call)
        self._body = body
        self._parses = parses(call)
        self._tool = required_tool(body)
        self._named: set[int] = set()
        scripted = call.choices[0].request.scripted if self._tool and call.choices else None
        no_arguments = scripted is not None and decode(scripted) == "{}"
        self._is_silent = no_arguments and reads_json_pieces(call.engine.settings.tool_parser)
        self._plain = not (body.logprobs or body.return_token_ids or self._tool)

    def first_events(self) -> str:
        """Return the chunks with the role of every choice, sent with the first token."""
        prompt = self.call.choices[0].request.prompt if self._body.return_token_ids else None
        text = decode(self.call.choices[0].request.prompt) if self._body.return_prompt_text else None
        extra = {"prompt_token_ids": prompt, "prompt_text": text}
        starts = [({"role": role_of(self._body), "content": ""}, extra)]
        if self._body.echo and (echoed := _echo_text(self._body)):
            starts.append(({"content": echoed}, {}))
        bare = {"logprobs": None, "finish_reason": None}
        return "".join(
            self.chunk(compact({"index": index, "delta": delta, **bare}), 0, index, more)
            for delta, more in starts
            for index in range(len(self.call.choices))
        )

    def events(self, piece: Piece) -> str:
        """Return the chunks of a piece; none where the parser has held everything back."""
        if self._parses:
            self.call.count_parsed([piece], streaming=True)
        if self._plain and piece.finish is None and not piece.thought and (piece.text or not self._parses):
            text = (
                f'{{"index":{piece.index},"delta":{{"content":{encode_basestring(piece.text)}}},"logprobs":null,'
                '"finish_reason":null,"token_ids":null}'
            )
            return self.chunk(text, piece.produced, piece.index, self.chunk_ends)
        deltas = list(self._deltas(piece))
        if not deltas and piece.finish is None and (self._plain or self._is_held()):
            return ""
        # Thoughts and text of one step are two events; tokens, probabilities and the end belong to the last.
        *first, last = deltas or [{}]
        bare = {"logprobs": None, "finish_reason": None, "token_ids": None}
        chunks = [self._event(piece, {"index": piece.index, "delta": delta, **bare}) for delta in first]
        choice: dict[str, Any] = {"index": piece.index, "delta": last}
        choice["logprobs"] = _logprobs(self.call, self._body, piece)
        choice["finish_reason"] = _streamed_finish(self.call, self._body, piece)
        if piece.finish:
            choice["stop_reason"] = piece.stop_reason
        shows_ids = self._body.return_token_ids and not _hides(self.call, self._body)
        choice["token_ids"] = piece.tokens if shows_ids else None
        if piece.finish:
            choice |= self.call.versions_of(piece.produced)
        return "".join([*chunks, self._event(piece, choice, self.finishing() if piece.finish else None)])

    def _event(self, piece: Piece, choice: dict[str, Any], extra: dict[str, Any] | None = None) -> str:
        return self.chunk(compact(choice), piece.produced, piece.index, (extra or {}) | self.chunk_ends)

    def _is_held(self) -> bool:
        """Whether nothing of the answer is sent before its end."""
        return self._tool is not None and streams_nothing(self.call.engine.settings, self._body)

    def _deltas(self, piece: Piece) -> Iterator[dict[str, Any]]:
        if piece.thought and self._body.include_reasoning:
            yield {"reasoning": piece.thought}
        if self._tool is None:
            if piece.text or not self._parses:
                yield {"content": piece.text}
            return
        if not self._is_held():
            yield from self._call_deltas(piece, self._tool)

    def _call_deltas(self, piece: Piece, tool: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The deltas of a call: its name by itself, or with the first arguments where the server reads JSON itself."""
        settings = self.call.engine.settings
        reads_json = is_forced_by_schema(settings.tool_parser)
        if piece.text and piece.index not in self._named:
            self._named.add(piece.index)
            name = str(tool.get("name", ""))
            function = {"name": name} | ({"arguments": piece.text} if reads_json else {})
            call_id = new_id(settings, self._body, name)
            yield {"tool_calls": [{"id": call_id, "type": "function", "index": 0, "function": function}]}
            if reads_json:
                return
        if reads_json and self._body.tool_choice == "required":
            if piece.text:
                yield {"tool_calls": [{"index": 0, "function": {"name": None, "arguments": piece.text}}]}
        elif not self._is_silent and (piece.text or reads_json or reads_json_pieces(settings.tool_parser)):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": piece.text}}]}

    def refusal_event(self, error: ApiError) -> str | None:
        """Return the refusal; that of a parser comes once the answer has begun."""
        begun = self.first_events() if error.status == HTTPStatus.NOT_IMPLEMENTED else ""
        return f"{begun}{super().refusal_event(error)}"

    def running_usage(self, produced: int, index: int) -> dict[str, object]:
        """Return the running usage, with the details that only chat has."""
        thought = self.call.choices[index].thought_tokens if produced else 0
        details = {"reasoning_tokens": thought} if self.call.parses_thoughts else None
        return super().running_usage(produced, index) | {"completion_tokens_details": details}
