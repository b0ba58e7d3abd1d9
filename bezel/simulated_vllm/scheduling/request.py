"""One sequence on its way through the engine: what was asked, how far it is, and when what happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from bezel.simulated_vllm.scheduling.fake_text import chance, natural_length, token_at
from bezel.simulated_vllm.scheduling.tokenizer import ENDS, EOS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FinishReason = Literal["stop", "length", "abort", "error", "repetition"]


@dataclass
class Group:
    """The answers of one prompt, which some metrics count as one.

    Attributes:
        size: how many were asked for.
        finished: how many have come to their end.
        longest: tokens of the longest of them.
    """

    size: int = 1
    finished: int = 0
    longest: int = 0


@dataclass(eq=False)
class Request:
    """A prompt with one answer; a call with n > 1 is n of these.

    Attributes:
        prompt: token ids.
        max_tokens: tokens of the answer at most.
        key: decides the text, see `writing.py`.
        deliver: called at the end of each step with the new tokens and, at the end, why it ended.
        group: shared by all answers of its prompt.
        thought: tokens that come before the answer itself.
        scripted: tokens to answer with instead of made-up prose (structured output, tool calls).
        call: number of the call that it belongs to, counted only where faults are ordered.
        arrival: when it came to the engine, like all times here in the clock's seconds.
        scheduled: when it first ran, None while it never has.
        computed: tokens of prompt and answer whose KV cache is computed.
        held: private blocks it holds.
        shared: hashes of the blocks it shares through the prefix cache.
    """

    prompt: Sequence[int]
    max_tokens: int
    key: int
    deliver: Callable[[list[int], FinishReason | None], None]
    ignore_eos: bool = False
    min_tokens: int = 0
    group: Group = field(default_factory=Group)
    end_token: int = EOS
    cache_salt: str = ""
    thought: Sequence[int] = ()
    scripted: Sequence[int] | None = None
    call: int = 0
    arrival: float = 0.0
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float = 0.0
    answer: list[int] = field(default_factory=list)
    computed: int = 0
    cached: int = 0
    held: int = 0
    shared: list[int] = field(default_factory=list)
    hashes: list[int] | None = None
    preemptions: int = 0
    finished: FinishReason | None = None
    _length: int | None = None

    @property
    def tokens(self) -> int:
        """Tokens of prompt and answer so far."""
        return len(self.prompt) + len(self.answer)

    @property
    def decoding(self) -> bool:
        """Whether only the newest token is still to be computed."""
        return bool(self.answer) and self.computed == self.tokens - 1

    def write(self, count: int) -> list[int]:
        """Extend the answer by up to `count` tokens and note whether it is finished.

        Returns:
            The new tokens; the end token is among them where the answer ends by itself, as vLLM counts it.
        """
        start = len(self.answer)
        while len(self.answer) - start < count and self.finished is None:
            token = self._next()
            self.answer.append(token)
            if token in ENDS:
                self.finished = "stop"
            elif len(self.answer) >= self.max_tokens:
                self.finished = "length"
        return self.answer[start:]

    def accepted(self, drafts: int, probability: float) -> int:
        """How many of `drafts` drafted tokens the model agrees with at this place."""
        for position in range(drafts):
            if chance(self.key, len(self.answer), 100 + position) >= probability:
                return position
        return drafts

    def _next(self) -> int:
        place = len(self.answer) - len(self.thought)
        if place < 0:
            return self.thought[place]
        if self.scripted is not None:
            return self.scripted[place] if place < len(self.scripted) else self.end_token
        if self._length is None:
            self._length = max(natural_length(self.key), self.min_tokens + 1)
        if not self.ignore_eos and place + 1 >= self._length:
            return self.end_token
        return token_at(self.key, place)
