"""Request in the engine: one sequence with its parameters, its progress and the times of its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from bezel_simulated_vllm.scheduling.fake_text import answer_token, chance, natural_length
from bezel_simulated_vllm.scheduling.tokenizer import ENDS, EOS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FinishReason = Literal["stop", "length", "abort", "error", "repetition"]


@dataclass
class Group:
    """The answers of one prompt, which some metrics count as one.

    Attributes:
        size: number of requested answers.
        finished: number of finished answers.
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
        max_tokens: the most tokens of the answer.
        key: determines the text, see `fake_text.py`.
        deliver: called at the end of each step with the new tokens and, at the end, the finish reason.
        group: shared by all answers of its prompt.
        thought: tokens of the thoughts before the answer itself.
        pools: whether the model pools over the prompt: its only token stands for the result, and counts as none.
        scripted: tokens of a prescribed answer (structured output, tool calls) instead of generated text.
        call: number of its call, counted only where faults are injected.
        arrival: time of its arrival; all times here are in the clock's seconds.
        scheduled: time of its first step, None before it.
        computed: tokens of prompt and answer whose KV cache is computed.
        private_blocks: number of its private blocks.
        shared: hashes of the blocks that it shares through the prefix cache.
    """

    prompt: Sequence[int]
    max_tokens: int
    key: int
    deliver: Callable[[list[int], FinishReason | None], None]
    ignore_eos: bool = False
    min_tokens: int = 0
    group: Group = field(default_factory=Group)
    cache_salt: str = ""
    thought: Sequence[int] = ()
    scripted: Sequence[int] | None = None
    pools: bool = False
    call: int = 0
    arrival: float = 0.0
    scheduled: float | None = None
    first_token: float | None = None
    last_token: float = 0.0
    answer: list[int] = field(default_factory=list)
    computed: int = 0
    cached: int = 0
    private_blocks: int = 0
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
        """Extend the answer by up to `count` tokens and set `finished` at its end.

        Returns:
            The new tokens, with the end token where the answer ends by itself, as vLLM counts it.
        """
        start = len(self.answer)
        while len(self.answer) - start < count and self.finished is None:
            token = self._next()
            self.answer.append(token)
            if self.pools or token in ENDS:
                self.finished = "stop"
            elif len(self.answer) >= self.max_tokens:
                self.finished = "length"
        return self.answer[start:]

    def count_accepted(self, drafts: int, probability: float) -> int:
        """Return how many of `drafts` drafted tokens the model accepts at this place."""
        for position in range(drafts):
            if chance(self.key, len(self.answer), 100 + position) >= probability:
                return position
        return drafts

    def _next(self) -> int:
        place = len(self.answer) - len(self.thought)
        if place < 0:
            return self.thought[place]
        if self.scripted is not None:
            return self.scripted[place] if place < len(self.scripted) else EOS
        if self._length is None:
            self._length = max(natural_length(self.key), self.min_tokens + 1)
        if not self.ignore_eos and place + 1 >= self._length:
            return EOS
        return answer_token(self.key, place)
