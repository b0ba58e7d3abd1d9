"""Beam search of one prompt: each token of each beam is an engine request of its own, as in vLLM 0.32.

So the metrics count a search as many requests of one token each (entrypoints/generate/beam_search/online.py): one for
the first token, then one for each beam and token. The beams' texts are those of the choices; no likelihood is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_simulated_vllm.scheduling.request import Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel_simulated_vllm.scheduling.detokenize import Choice
    from bezel_simulated_vllm.scheduling.engine import Engine
    from bezel_simulated_vllm.scheduling.request import FinishReason


class BeamSearch:
    """The beams of one prompt; each choice gets its whole answer after the last step."""

    def __init__(self, engine: Engine, choices: Sequence[Choice]) -> None:
        self._engine, self._choices = engine, choices
        self._beams: list[Request] = []
        self._place, self._pending = 0, 0

    def start(self) -> None:
        """Queue the request of the first token, which the beams share."""
        for choice in self._choices:
            choice.request.arrival = self._engine.clock.now()
        self._step(self._choices[:1])

    def abort(self) -> None:
        """Stop the step that runs; the choices get nothing more."""
        self._pending = -1
        for beam in self._beams:
            self._engine.abort(beam)

    def _step(self, choices: Sequence[Choice]) -> None:
        # A beam that has ended makes room for another candidate: every step has all of them.
        self._pending = len(choices)
        self._beams = [self._beam(choice.request) for choice in choices]
        for beam in self._beams:
            self._engine.add(beam)

    def _beam(self, answer: Request) -> Request:
        prompt = [*answer.prompt, *answer.answer]
        return Request(prompt, 1, answer.key, self._deliver, ignore_eos=True, cache_salt=answer.cache_salt)

    def _deliver(self, _: list[int], finish: FinishReason | None) -> None:
        if self._pending < 0:
            return
        if finish == "error":
            self._pending = -1
            for choice in self._choices:
                choice.deliver([], "error")
            return
        self._pending -= 1
        if self._pending == 0:
            self._settle()

    def _settle(self) -> None:
        """Extend every beam by its token, then run the next step or deliver the answers."""
        first = self._beams[0]
        for choice in self._choices:
            request = choice.request
            if request.first_token is None:
                request.scheduled, request.first_token, request.cached = (
                    first.scheduled,
                    first.first_token,
                    first.cached,
                )
            request.write(1)
            request.last_token = first.last_token
        self._place += 1
        if self._place < self._choices[0].request.max_tokens:
            self._step(self._choices)
            return
        for choice in self._choices:
            choice.deliver(choice.request.answer, choice.request.finished)
