"""Streamed answers of a chat completion: text, reason of its end, tokens by the server's count, and moments of arrival.

Owns one stream of server-sent events, bounded in characters and in time. Leaves out what the text means.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bezel.operations.redaction import clean_text
from bezel.operations.serving.server import DeployedServer

_DATA = "data:"
_DONE = "[DONE]"
_TOKENS = ("content", "reasoning", "reasoning_content", "tool_calls")
"""Fields of a delta that come with tokens; vLLM 0.32 names thoughts `reasoning`, other versions `reasoning_content`."""


@dataclass
class Stream:
    """What a stream has brought.

    Attributes:
        text: The answer.
        model: Name of the model, as the server gives it.
        finish_reason: Why it ended; None if it broke off.
        prompt_tokens: Tokens of the prompt by the server's count; None without one.
        output_tokens: Tokens of the answer by the server's count; None without one.
        sent_at: Moment of the request, in seconds of the monotonic clock.
        first_at: Moment of the first token, of a thought or of the answer; None before it.
        last_at: Moment of the last token; the end token has no text and comes with the finish reason.
        notes: What is to be said about it.
    """

    text: str = ""
    model: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    sent_at: float = 0.0
    first_at: float | None = None
    last_at: float = 0.0
    notes: tuple[str, ...] = ()


def read_stream(
    server: DeployedServer,
    path: str,
    body: dict[str, Any],
    *,
    seconds: float,
    max_characters: int,
    show: Callable[[str], None] | None = None,
) -> Stream:
    """Send a request and read its stream to the end.

    Args:
        server: The deployed server.
        path: Path below its address.
        body: The request, which asks for a stream with usage.
        seconds: Time limit of the whole answer.
        max_characters: Length at which the answer is cut.
        show: Called with each piece of text as it arrives.

    Raises:
        ServerError: The server refused, did not answer, or broke off before the first text.
    """
    stream = Stream(sent_at=time.monotonic())
    is_done = False
    for line in server.lines(path, body, seconds=seconds):
        if not line.startswith(_DATA):
            continue
        data = line[len(_DATA) :].strip()
        if data == _DONE:
            is_done = True
            break
        for piece in _pieces(stream, data):
            stream.text += piece
            if show is not None:
                show(piece)
        if len(stream.text) > max_characters:
            stream.notes = (*stream.notes, f"the answer is cut after {max_characters} characters")
            break
    if not is_done:
        stream.finish_reason = None
    if not is_done and not stream.notes:
        stream.notes = ("the stream ended early, without its [DONE]: the answer is incomplete",)
    return stream


def _pieces(stream: Stream, data: str) -> Iterator[str]:
    """The texts of one event; what else it says is noted in the stream."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        stream.notes = (*stream.notes[:4], "an event of the stream is not a JSON object")
        return
    if error := event.get("error"):
        message = error.get("message") if isinstance(error, dict) else error
        stream.finish_reason = None
        stream.notes = (*stream.notes[:4], f"the server reported an error: {clean_text(str(message), 500)}")
    if isinstance(model := event.get("model"), str):
        stream.model = model
    if isinstance(usage := event.get("usage"), dict):
        stream.prompt_tokens = _count(usage.get("prompt_tokens"))
        stream.output_tokens = _count(usage.get("completion_tokens"))
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and (text := _text_of(stream, choice)):
            yield text


def _text_of(stream: Stream, choice: dict[str, Any]) -> str:
    """The text of a choice; its moment and the reason of its end are noted in the stream."""
    delta = choice.get("delta")
    fields = delta if isinstance(delta, dict) else {}
    reason, text = choice.get("finish_reason"), fields.get("content")
    if reason or any(fields.get(name) for name in _TOKENS):
        stream.last_at = time.monotonic()
        stream.first_at = stream.first_at or stream.last_at
    if reason:
        stream.finish_reason = clean_text(str(reason), 60)
    return text if isinstance(text, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
