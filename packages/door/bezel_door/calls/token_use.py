"""Tokens of a call, by what the server reports: of whole answers, and of streams up to their last event. Pure.

| interface | of a whole answer | of a stream |
|---|---|---|
| chat, completions | `usage` | `usage` of each event: its choice's tokens so far; of the last one: all |
| messages | `usage` | `message_start`, `message_delta` |
| responses | `usage` | the last event |
| others | `usage` | |

Where a stream ends before the server reported, events with text are counted, one token each: an estimate. Source:
vLLM 0.33.0, `entrypoints/openai` and `entrypoints/anthropic` (November 2026).
"""

import json
from dataclasses import dataclass
from typing import Any, Final

from bezel_door.calls.request_document import RequestDocument
from bezel_door.calls.routes import Api

TOKENS_A_SECOND: Final = 30
"""Tokens of an answer that are taken for a second, of a whole answer that its caller did not wait for."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a call.

    Attributes:
        prompt: Tokens of the prompt.
        completion: Tokens of the answers.
        is_estimate: Whether the server did not report all of them.
    """

    prompt: int = 0
    completion: int = 0
    is_estimate: bool = False


def tokens_of(usage: object) -> Tokens | None:
    """Tokens of a `usage` of any interface; None where it is none."""
    if not isinstance(usage, dict):
        return None
    prompt = _first(usage, "prompt_tokens", "input_tokens")
    completion = _first(usage, "completion_tokens", "output_tokens")
    if prompt is None and completion is None:
        return None
    # Anthropic leaves cached tokens out of `input_tokens`.
    cached = sum(_first(usage, name) or 0 for name in ("cache_read_input_tokens", "cache_creation_input_tokens"))
    return Tokens((prompt or 0) + cached, completion or 0)


def tokens_of_answer(content: bytes) -> Tokens | None:
    """Tokens of a whole answer; None where it has none."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    meta = document.get("meta")
    billed = meta.get("billed_units") if isinstance(meta, dict) else None  # Cohere's form, of /v2/embed
    return tokens_of(document.get("usage")) or tokens_of(billed)


def estimated_tokens(asked: RequestDocument, seconds: float) -> Tokens:
    """Tokens of a call whose whole answer its caller did not wait for."""
    made = int(seconds * TOKENS_A_SECOND) * asked.answers if asked.computes_text else 0
    return Tokens(
        asked.prompt_tokens, made if asked.most_tokens is None else min(made, asked.most_tokens), is_estimate=True
    )


def stalled_tokens(reported: Tokens, asked: RequestDocument, seconds: float) -> Tokens:
    """Tokens of a stream whose caller did not read it, and left: the server computes on while no event is taken."""
    made = estimated_tokens(asked, seconds).completion
    return Tokens(reported.prompt, max(reported.completion, made), is_estimate=True)


class StreamUse:
    """Tokens of one stream, as its events come."""

    def __init__(self, api: Api, asked: RequestDocument) -> None:
        self._api, self._asked = api, asked
        self._of_choices: dict[int, Tokens] = {}
        self._last: Tokens | None = None
        self._prompt: int | None = None
        self._events = 0

    def count_event(self, event: bytes) -> None:
        """Count an event without tokens."""
        if b"delta" in event or b'"text"' in event:
            self._events += 1

    def read(self, document: dict[str, Any]) -> None:
        """Read an event that may have tokens."""
        if self._api in (Api.CHAT, Api.COMPLETIONS):
            self._read_chunk(document)
        elif self._api == Api.MESSAGES:
            self._read_message(document)
        else:
            response = document.get("response")
            tokens = tokens_of(response.get("usage")) if isinstance(response, dict) else None
            self._last = tokens or self._last

    def now(self) -> Tokens:
        """Tokens up to the last event."""
        if self._last is not None:
            return self._last
        if self._of_choices:
            each = max(1, self._asked.answers // self._asked.prompts)
            prompts = {index // each: tokens.prompt for index, tokens in self._of_choices.items()}
            completion = sum(tokens.completion for tokens in self._of_choices.values())
            return Tokens(sum(prompts.values()), completion, is_estimate=len(prompts) < self._asked.prompts)
        prompt = self._asked.prompt_tokens if self._prompt is None else self._prompt
        return Tokens(prompt, self._events, is_estimate=True)

    def _read_chunk(self, document: dict[str, Any]) -> None:
        tokens, choices = tokens_of(document.get("usage")), document.get("choices")
        if tokens is None:
            self._events += 1
        elif not choices:
            self._last = tokens
        elif isinstance(choices, list) and isinstance(choices[0], dict):
            index = choices[0].get("index")
            self._of_choices[index if isinstance(index, int) else 0] = tokens

    def _read_message(self, document: dict[str, Any]) -> None:
        message = document.get("message")
        if isinstance(message, dict):
            tokens = tokens_of(message.get("usage"))
            self._prompt = tokens.prompt if tokens else None
            return
        tokens = tokens_of(document.get("usage"))
        if tokens is not None:
            self._last = Tokens(tokens.prompt or self._prompt or 0, tokens.completion)


def _first(usage: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**12:
            return value
    return None
