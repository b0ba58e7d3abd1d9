"""The JSON document of a request: judged, and written again, so that what was judged is what the server reads. Pure.

A document with a key twice is read by the last one, as the server's parser does, and written with that one alone. The
server gets `stream_options` by which every event has the tokens so far. Leaves out what the caller did not ask for in
these events (`bezel_door.calls.event_stream`), and every rule of vLLM's: a wrong field is the server's to refuse.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Final

from bezel_door.calls.routes import Api

MOST_VALUES: Final = 1_000_000
"""Values of a document: more would take memory and time from other callers."""
ASSUMED_TOKENS: Final = 512
"""Tokens of an answer, for a reservation, where the request states no maximum."""

_BYTES_A_TOKEN: Final = 4
_BYTES_A_MEDIUM: Final = 1024  # 256 tokens: an image of Gemma
_LONGEST_NUMBER: Final = 100
"""Digits of a whole number: reading one takes the square of their number."""
# A string without its end goes to the end of the body, and nothing is given back: each byte is looked at once.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
_MOST_ANSWERS: Final = 16_384  # VLLM_MAX_N_SEQUENCES of vLLM 0.33.0: the server refuses more
_WITH_MEDIA: Final = frozenset({"messages", "input"})
_MEDIA: Final = frozenset({"image_url", "input_audio", "video_url", "audio_url", "source"})
# By the interface, in the order in which vLLM reads them: another one's would lower an estimate, and change nothing.
_MAXIMA: Final = {
    Api.CHAT: ("max_completion_tokens", "max_tokens"),
    Api.COMPLETIONS: ("max_tokens",),
    Api.RESPONSES: ("max_output_tokens",),
    Api.MESSAGES: ("max_tokens",),
}
_COUNTED: Final = (
    "messages",
    "prompt",
    "input",
    "system",
    "instructions",
    "tools",
    "documents",
    "query",
    "text_1",
    "text_2",
)


class DocumentError(ValueError):
    """A body that the door does not read."""


@dataclass(frozen=True, slots=True)
class RequestDocument:
    """What the door knows of a request's document.

    Attributes:
        body: The document as the server gets it.
        model: Name of the model; None where the request names none.
        is_stream: Whether the answer is a stream of events.
        shows_usage: Whether the caller asked for the tokens at the end of the stream.
        shows_usage_often: Whether the caller asked for the tokens in every event.
        computes_text: Whether the model writes an answer.
        prompts: Prompts; several only of completions.
        answers: Answers to all prompts together: `n` to each.
        prompt_tokens: An estimate: four bytes a token.
        reserved_tokens: An estimate of all tokens: the stated maximum of the answer, or `ASSUMED_TOKENS`.
        most_tokens: The stated maximum of the answers together; None where none is stated.
    """

    body: bytes
    model: str | None
    is_stream: bool
    shows_usage: bool
    shows_usage_often: bool
    computes_text: bool
    prompts: int
    answers: int
    prompt_tokens: int
    reserved_tokens: int
    most_tokens: int | None


def read_request(content: bytes, api: Api) -> RequestDocument:
    """Read the body of a request.

    Raises:
        DocumentError: It is no JSON object, has more than `MOST_VALUES` values, or a `stream` that is no boolean.
    """
    document = _read_object(content)
    model = document.get("model")
    stream = document.get("stream")
    if stream is not None and not isinstance(stream, bool):
        # The server takes 1 and "yes" for true: its stream would come without the tokens that the door asks for.
        raise DocumentError("`stream` must be true or false.")
    is_stream = stream is True and api in _MAXIMA
    shows, often = True, True
    if is_stream and api in (Api.CHAT, Api.COMPLETIONS):
        shows, often = _ask_for_usage(document)
    prompts = _prompts(document) if api == Api.COMPLETIONS else 1
    answers, most = prompts * _answers(document), _most_tokens(document, api)
    parts = (_bytes_of(document[name], has_media=name in _WITH_MEDIA) for name in _COUNTED if name in document)
    prompt = sum(parts) // _BYTES_A_TOKEN
    computes_text = api not in (Api.WHOLE, Api.FREE)
    return RequestDocument(
        body=json.dumps(document, separators=(",", ":")).encode(),
        model=model if isinstance(model, str) else None,
        is_stream=is_stream,
        shows_usage=shows,
        shows_usage_often=often,
        computes_text=computes_text,
        prompts=prompts,
        answers=answers,
        prompt_tokens=prompt,
        reserved_tokens=prompt + (answers * (ASSUMED_TOKENS if most is None else most) if computes_text else 0),
        most_tokens=None if most is None else answers * most,
    )


def _read_object(content: bytes) -> dict[str, Any]:
    if _signs(content) > MOST_VALUES and _signs(_STRING.sub(b"", content)) > MOST_VALUES:
        raise DocumentError(f"The body has more than {MOST_VALUES} values.")
    try:
        # UTF-8 alone: in UTF-16 the signs that are counted above could hide, and Python reads that too.
        document = json.loads(content.decode(), parse_int=_read_number)
    except (ValueError, RecursionError):
        raise DocumentError("The body is not JSON in UTF-8.") from None
    if not isinstance(document, dict):
        raise DocumentError("The body is not a JSON object.")
    return document


def _signs(content: bytes) -> int:
    return content.count(b",") + content.count(b"[") + content.count(b"{")


def _ask_for_usage(document: dict[str, Any]) -> tuple[bool, bool]:
    """Ask for the tokens in every event; whether the caller asked for them at the end, and in every event."""
    options = document.get("stream_options")
    if options is not None and not isinstance(options, dict):
        return True, True  # the server refuses it
    shows = bool(options and options.get("include_usage"))
    often = shows and bool(options and options.get("continuous_usage_stats"))
    document["stream_options"] = {**(options or {}), "include_usage": True, "continuous_usage_stats": True}
    return shows, often


def _prompts(document: dict[str, Any]) -> int:
    prompts = document.get("prompt")
    return len(prompts) if isinstance(prompts, list) and prompts and isinstance(prompts[0], str | list) else 1


def _answers(document: dict[str, Any]) -> int:
    answers = _whole(document.get("n"))
    return min(answers, _MOST_ANSWERS) if answers is not None and answers >= 1 else 1


def _most_tokens(document: dict[str, Any], api: Api) -> int | None:
    for name in _MAXIMA.get(api, ()):
        most = _whole(document.get(name))
        if most is not None and 0 < most <= 10**9:
            return most
    return None


def _read_number(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError
    return int(digits)


def _whole(value: object) -> int | None:
    """A whole number as the server reads it, which takes "8" and 8.0 for one too; None where it is none."""
    try:
        number = float(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(number, int | float) or not math.isfinite(number) or number != int(number):
        return None
    return int(number)


def _bytes_of(value: object, *, has_media: bool) -> int:
    """Bytes of the text in a part of the document; media of messages count as many as an image of Gemma at most."""
    total, rest = 0, [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            total += len(item) if item.isascii() else len(item.encode(errors="surrogatepass"))
        elif isinstance(item, int | float):
            total += _BYTES_A_TOKEN  # one token of a prompt of tokens
        elif isinstance(item, list):
            rest.extend(item)
        elif isinstance(item, dict):
            for name, part in item.items():
                if has_media and name in _MEDIA:
                    total += _BYTES_A_MEDIUM
                else:
                    rest.append(part)
    return total
