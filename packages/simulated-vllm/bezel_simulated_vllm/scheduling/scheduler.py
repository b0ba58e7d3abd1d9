"""Scheduler of the engine's steps: continuous batching with chunked prefill, preemption and prefix cache.

Follows vLLM's scheduler: running sequences first, in the order of their arrival, then waiting ones while there are
places (`--max-num-seqs`), tokens (`--max-num-batched-tokens`) and blocks. A sequence that lacks a block takes those of
the one that came last, which is preempted and restarts from the head of the queue.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel_simulated_vllm.scheduling.blocks import BlockPool, chained_hashes
from bezel_simulated_vllm.scheduling.fake_text import chance
from bezel_simulated_vllm.scheduling.roofline import Load, Roofline

if TYPE_CHECKING:
    from bezel_simulated_vllm.configuration.settings import EngineSettings
    from bezel_simulated_vllm.scheduling.request import Request


@dataclass(frozen=True)
class Share:
    """The share of one sequence in a step: computed tokens, drafted tokens among them, whether it is prefill."""

    request: Request
    tokens: int
    drafts: int
    prefill: bool


@dataclass
class Step:
    """One step of the engine: its shares and its duration in seconds."""

    shares: list[Share]
    seconds: float
    preempted: list[Request] = field(default_factory=list)
    admitted: list[Request] = field(default_factory=list)


class Scheduler:
    """Holds the queue, the running batch and the block pool."""

    def __init__(self, settings: EngineSettings) -> None:
        self._settings = settings
        self._layout = settings.memory.layout
        self.pool = BlockPool(settings.memory.blocks)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self._roofline = Roofline(
            settings.model,
            settings.machine.accelerator,
            kv_cache_dtype=settings.kv_cache_dtype,
            tensor_parallel=settings.tensor_parallel,
            speculation=settings.speculation,
            offloaded=settings.memory.offloaded,
        )

    def add(self, request: Request) -> None:
        """Queue a request."""
        self.waiting.append(request)

    def remove(self, request: Request) -> None:
        """Remove a request from the queue or the batch and free its blocks."""
        if request in self.running:
            self.running.remove(request)
        elif request in self.waiting:
            self.waiting.remove(request)
        self._free(request)

    @property
    def idle_until(self) -> float:
        """The arrival of the first waiting request if none is running; 0 otherwise."""
        return self.waiting[0].arrival if self.waiting and not self.running else 0.0

    def prompt_tokens(self) -> int:
        """Return the tokens of all prompts that are not completely computed."""
        return sum(len(request.prompt) for request in (*self.waiting, *self.running) if not request.answer)

    def next_step(self, now: float) -> Step | None:
        """Plan the next step; None if nothing can run."""
        step = Step([], 0.0)
        budget = self._continue(step, self._settings.max_batched_tokens)
        if not step.preempted:
            self._admit(step, budget, now)
        if not step.shares:
            return None
        load = Load(drafting=self._settings.speculation is not None and any(share.drafts for share in step.shares))
        for share in step.shares:
            self._roofline.add(load, computed=share.request.computed, new=share.tokens)
        step.seconds = self._roofline.seconds(load)
        return step

    def settle(self, share: Share) -> list[int]:
        """Account for a share whose step has ended.

        Returns:
            The new tokens: none while the prompt is not completely computed.
        """
        request = share.request
        whole = request.computed + share.tokens - share.drafts >= request.tokens
        request.computed += share.tokens - share.drafts
        if not whole:
            return []
        self._publish(request)
        accepted = (
            request.count_accepted(share.drafts, self._settings.speculation.acceptance)
            if self._settings.speculation
            else 0
        )
        new = request.write(1 + accepted)
        request.computed = request.tokens - 1
        if request.finished:
            self.running.remove(request)
            self._free(request)
        return new

    def _continue(self, step: Step, budget: int) -> int:
        """Give running sequences their tokens; return the rest of the budget."""
        drafting = self._settings.speculation is not None
        place = 0
        while place < len(self.running):  # preemptions may shorten the list in the loop
            request = self.running[place]
            place += 1
            length = request.tokens
            drafts = self._drafts(request) if drafting else 0
            tokens = min(length - request.computed + drafts, budget)
            if tokens <= 0 or not self._room(request, request.computed + tokens, step):
                continue
            decodes = request.computed == length - 1 and bool(request.answer)
            step.shares.append(Share(request, tokens, min(drafts, tokens - 1), prefill=not decodes))
            budget -= tokens
        return budget

    def _drafts(self, request: Request) -> int:
        """Return the number of drafted tokens that are checked along with the newest one."""
        drafting = self._settings.speculation
        if not drafting or not request.decoding:
            return 0
        if chance(request.key, len(request.answer), 99) >= drafting.proposes:
            return 0
        return min(drafting.tokens, self._settings.max_model_len - request.tokens)

    def _room(self, request: Request, tokens: int, step: Step) -> bool:
        """Take the blocks for a running sequence, if necessary from sequences that came later."""
        while not self._grow(request, tokens):
            victim = self.running[-1]
            self._preempt(victim, step)
            if victim is request:
                return False
        return True

    def _grow(self, request: Request, tokens: int) -> bool:
        missing = self._layout.blocks(tokens) - request.private_blocks - len(request.shared)
        if missing > 0:
            if not self.pool.take(missing):
                return False
            request.private_blocks += missing
        return True

    def _preempt(self, victim: Request, step: Step) -> None:
        self.running.remove(victim)
        self._free(victim)
        victim.preemptions += 1
        self.waiting.appendleft(victim)
        step.preempted.append(victim)

    def _admit(self, step: Step, budget: int, now: float) -> None:
        while self.waiting and budget > 0 and len(self.running) < self._settings.max_num_seqs:
            request = self.waiting[0]
            if request.arrival > now:  # the step began before its arrival, as the engine is catching up
                return
            hashes = self._hits(request)
            self.pool.use(hashes)
            request.shared = hashes
            # The whole prompt must fit, or two half-computed prompts could wait for each other's blocks.
            if self._layout.blocks(request.tokens) - len(hashes) > self.pool.available:
                self._free(request)
                return
            self.waiting.popleft()
            request.computed = len(hashes) * self._layout.full_block
            tokens = min(request.tokens - request.computed, budget)
            self._grow(request, request.computed + tokens)
            if request.scheduled is None:
                request.scheduled = now
                request.cached = request.computed
                step.admitted.append(request)
            self.running.append(request)
            step.shares.append(Share(request, tokens, 0, prefill=True))
            budget -= tokens

    def _hits(self, request: Request) -> list[int]:
        """Return the hashes of the leading blocks that are cached; the last token is always computed."""
        if not self._settings.prefix_caching:
            return []
        if request.hashes is None:
            request.hashes = chained_hashes(request.prompt, self._layout.full_block, request.cache_salt)
        usable = (request.tokens - 1) // self._layout.full_block
        return request.hashes[: min(self.pool.count_cached(request.hashes), usable)]

    def _publish(self, request: Request) -> None:
        """Share the blocks of a prompt once it is computed."""
        if not self._settings.prefix_caching or request.answer or request.hashes is None:
            return
        new = request.hashes[len(request.shared) :]
        request.private_blocks -= self.pool.publish(new)
        request.shared = request.shared + new

    def _free(self, request: Request) -> None:
        self.pool.give_back(request.private_blocks)
        self.pool.release(request.shared)
        request.private_blocks, request.shared = 0, []
