"""Detokenizer: from the engine's tokens to pieces of text, with thoughts, stop strings and log probabilities.

A choice is one answer of a call. The engine calls `deliver` once a step; the handler is woken once for all pieces since
its last fetch, and only at the end where it does not stream. Every single token passes here, so the code must be fast.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel_simulated_vllm.scheduling.channel import Channel, Piece
from bezel_simulated_vllm.scheduling.fake_text import THOUGHT, log_probability
from bezel_simulated_vllm.scheduling.tokenizer import CHANNEL, CHANNEL_END, ENDS, decode, raw_byte, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel_simulated_vllm.scheduling.engine import Engine
    from bezel_simulated_vllm.scheduling.request import FinishReason, Request

_MARKS = frozenset({CHANNEL, CHANNEL_END})


@dataclass(slots=True)
class Choice:
    """One answer while it is generated.

    Attributes:
        parses: whether thoughts are separated from the answer (--reasoning-parser).
        thought_tokens: tokens of the thoughts so far.
    """

    index: int
    stops: Sequence[str]
    keep_stop: bool
    streams: bool
    parses: bool
    channel: Channel
    engine: Engine
    request: Request = field(init=False)
    text: str = ""
    thought: str = ""
    thought_tokens: int = 0
    produced: int = 0
    tokens: list[int] = field(default_factory=list)
    finish: FinishReason | None = None
    stop_reason: str | int | None = None
    _thinks: bool = False
    _sent: int = 0
    _thought_sent: int = len(THOUGHT)
    _pending: list[int] = field(default_factory=list)
    _bytes: codecs.IncrementalDecoder | None = None

    def deliver(self, tokens: list[int], finish: FinishReason | None) -> None:
        """Process a step's tokens from the engine."""
        if self.finish is not None:
            return
        for token in tokens:
            self.produced += 1
            self.tokens.append(token)
            self._pending.append(token)
            before = len(self.text)
            if self._take(token) and self.stops and self._cut_at_stop(before):
                finish = "stop"
                break
        if finish:
            if self.request.finished is None:
                self.engine.stop(self.request)
            self.finish = finish
        if self.streams or finish:
            self._push(finish)

    def _take(self, token: int) -> bool:
        """Add a token to the text or the thought; return whether the text has grown."""
        if self.parses and token in _MARKS:
            self._thinks = token == CHANNEL
            return False
        if token in ENDS:
            return False
        text = self._decode(token)
        if self._thinks:
            self.thought += text
            self.thought_tokens += 1
            return False
        self.text += text
        return True

    def _decode(self, token: int) -> str:
        """Return a token's text; bytes of one character are held back until it is complete."""
        byte = raw_byte(token)
        if byte is None and self._bytes is None:
            return text_of(token)
        if self._bytes is None:
            self._bytes = codecs.getincrementaldecoder("utf-8")("replace")
        return self._bytes.decode(text_of(token).encode() if byte is None else byte)

    def _push(self, finish: FinishReason | None) -> None:
        # Text that could still become a stop string is held back.
        hold = 0 if finish or not self.stops else max(map(len, self.stops)) - 1
        end = max(self._sent, len(self.text) - hold)
        fresh, self._sent = self.text[self._sent : end], end
        thought = ""
        if self.thought:
            thought = self.thought[self._thought_sent :]
            self._thought_sent = max(self._thought_sent, len(self.thought))
        pending, self._pending = self._pending, []
        self.channel.push(Piece(self.index, fresh, thought, pending, self.produced, finish, self.stop_reason))

    def _cut_at_stop(self, before: int) -> bool:
        start = max(0, before - max(map(len, self.stops)) + 1)
        stops = [(at, stop) for stop in self.stops if (at := self.text.find(stop, start)) >= 0]
        if not stops:
            return False
        at, stop = min(stops)
        self.text = self.text[: at + (len(stop) if self.keep_stop else 0)]
        self.stop_reason = stop
        return True


def chat_logprobs(
    key: int, start: int, tokens: Sequence[int], top: int, labels: Sequence[int] = (), *, as_ids: bool = False
) -> dict[str, object]:
    """Return the `logprobs` of a chat choice.

    Args:
        key: the key of the text.
        start: the place of the first token.
        tokens: the tokens.
        top: how many likely tokens are returned beside each.
        labels: the tokens that are returned beside each instead, where there are any.
        as_ids: whether tokens are shown as their ids.
    """
    content = []
    for place, token in enumerate(tokens, start):
        row = _logprob(key, place, token, 0, as_ids=as_ids)
        beside = [token, *labels] if labels else [token + rank for rank in range(top)]
        ranks = [_logprob(key, place, other, rank, as_ids=as_ids) for rank, other in enumerate(beside)]
        content.append({**row, "top_logprobs": ranks})
    return {"content": content}


def _logprob(key: int, place: int, token: int, rank: int, *, as_ids: bool) -> dict[str, object]:
    text = decode((token,))
    return {
        "token": shown_text(token, as_ids=as_ids),
        "logprob": log_probability(key, place, rank),
        "bytes": list(text.encode()),
    }


def shown_text(token: int, *, as_ids: bool, skip_special: bool = False) -> str:
    """Return a token as it is shown beside its probability: its text, or its id."""
    return f"token_id:{token}" if as_ids else decode((token,), skip_special=skip_special)


def prompt_logprobs(key: int, prompt: Sequence[int], top: int) -> list[dict[str, object] | None]:
    """Return the probabilities of a prompt's tokens after the first: each with its likely ones, by their ids."""
    return [
        None
        if place == 0
        else {
            str(token + rank): {
                "logprob": log_probability(key, place, rank),
                "rank": rank + 1,
                "decoded_token": decode((token + rank,)),
            }
            for rank in range(max(top, 1))
        }
        for place, token in enumerate(prompt)
    ]


def completion_logprobs(
    key: int,
    tokens: Sequence[int],
    top: int,
    start: int = 0,
    offset: int = 0,
    *,
    first: bool = False,
    as_ids: bool = False,
) -> dict[str, object]:
    """Return the `logprobs` of a /v1/completions choice; each token itself is always the most likely one.

    Args:
        key: the key of the text.
        tokens: the tokens.
        top: how many likely tokens are returned beside each.
        start: the place of the first token.
        offset: the place of the first character.
        first: whether the first token begins a prompt, and has no probability.
        as_ids: whether tokens are shown as their ids.
    """
    texts = [shown_text(token, as_ids=as_ids, skip_special=True) for token in tokens]
    offsets = [offset + sum(map(len, texts[:at])) for at in range(len(texts))]
    values: list[float | None] = [log_probability(key, place) for place in range(start, start + len(tokens))]
    ranked: list[dict[str, float] | None] = [
        {shown_text(token + rank, as_ids=as_ids): log_probability(key, start + at, rank) for rank in range(max(top, 1))}
        for at, token in enumerate(tokens)
    ]
    if first:
        values[0], ranked[0] = None, None
    return {"text_offset": offsets, "token_logprobs": values, "tokens": texts, "top_logprobs": ranked}
