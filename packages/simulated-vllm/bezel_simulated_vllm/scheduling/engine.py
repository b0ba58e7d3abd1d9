"""Engine: queues requests, runs the scheduler's steps one after another in the clock's time, delivers tokens.

A single task sleeps until the current step ends, settles it and calls each request's `deliver` with its tokens. No task
or timer exists for a single token or request. `begin` and `end` are a step without the waiting, for a driver that has a
clock of its own.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from bezel_simulated_vllm.configuration.logs import log
from bezel_simulated_vllm.grammars.judge import Judge
from bezel_simulated_vllm.scheduling.engine_metrics import EngineMetrics
from bezel_simulated_vllm.scheduling.scheduler import Scheduler, Step

if TYPE_CHECKING:
    from bezel_simulated_vllm.configuration.faults import ServingFaults
    from bezel_simulated_vllm.configuration.settings import EngineSettings
    from bezel_simulated_vllm.scheduling.channel import Channel
    from bezel_simulated_vllm.scheduling.request import FinishReason, Request

# Seconds that the steps may lag behind the clock (on a busy host) and still catch up instead of starting late. Well
# above the time to deliver the tokens of thousands of sequences, by which every step would otherwise begin late.
_CATCH_UP = 0.5
# The most steps whose tokens are held back while the host cannot keep up.
_MOST_HELD = 7


class RealClock:
    """Wall time x speed: at speed 2 the engine's second lasts half a real one."""

    def __init__(self, speed: float = 1.0) -> None:
        self._speed = speed
        self._start = time.monotonic()

    def now(self) -> float:
        """Return the engine's seconds since this clock was created."""
        return (time.monotonic() - self._start) * self._speed

    async def sleep_until(self, when: float) -> None:
        """Wait; let other tasks run even if the time has passed."""
        await asyncio.sleep(max(0.0, (when - self.now()) / self._speed))


class EngineDeadError(Exception):
    """The engine's process has died and serves no request."""


class QueueFullError(Exception):
    """A queue limit rejected a request; `reason` is the limit's name in the metrics."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Engine:
    """One engine of one server.

    Attributes:
        judge: what the server's libraries say of constraints of answers.
        died: set when the engine's process has ended by itself.
        death_reported: set when a client has got the error about it.
    """

    def __init__(
        self,
        settings: EngineSettings,
        clock: RealClock,
        faults: ServingFaults | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.scheduler = Scheduler(settings)
        self.metrics = EngineMetrics(settings)
        self.judge = Judge(settings.grammar_backend)
        self.prompt_tokens = 0
        self.generated_tokens = 0
        self.died = asyncio.Event()
        self.death_reported = asyncio.Event()
        self._faults = faults
        self._call = 0
        self._work = asyncio.Event()
        self._busy_until = 0.0
        self._rung: list[Channel] = []
        self._held = 0

    def check_admission(self, requests: int = 1) -> None:
        """Check that the queue accepts a call of so many requests, and count the call for the faults.

        Raises:
            QueueFullError: a limit is reached; the rejection is counted.
        """
        queue = self.scheduler
        reason = None
        limit, token_limit = self.settings.max_queued_requests, self.settings.max_queued_tokens
        # Despite its name the first limit counts all unfinished requests, the second prompts not yet computed.
        if limit is not None and len(queue.waiting) + len(queue.running) + requests > limit:
            reason = "max_num_queued_reqs"
        elif token_limit is not None and queue.prompt_tokens() >= token_limit:
            reason = "max_num_queued_tokens"
        if reason:
            self.metrics.count_rejection(reason)
            raise QueueFullError(reason)
        self._call = self._faults.take() if self._faults else 0

    def add(self, request: Request) -> None:
        """Queue a request; its tokens are passed to its `deliver`."""
        request.arrival = self.clock.now()
        request.call = self._call
        self.scheduler.add(request)
        self.metrics.levels(self.scheduler)
        self._work.set()

    def abort(self, request: Request) -> None:
        """Stop a request whose client has disconnected; deliver nothing more and count no success."""
        self._finish(request, "abort")

    def stop(self, request: Request) -> None:
        """End a request early because its text is complete (a stop string was found)."""
        if self._finish(request, "stop"):
            self.metrics.count_finish(request, self.clock.now())

    def _finish(self, request: Request, reason: FinishReason) -> bool:
        if request.finished is not None:
            return False
        request.finished = reason
        self.scheduler.remove(request)
        self.metrics.levels(self.scheduler)
        return True

    def ring(self, channel: Channel) -> None:
        """Register a channel with pieces to fetch; its handler is woken after the step's tokens are delivered."""
        self._rung.append(channel)

    def _wake(self) -> None:
        rung, self._rung, self._held = self._rung, [], 0
        for channel in rung:
            channel.wake()

    async def run(self) -> None:
        """Run steps until the engine dies; cancel the task to end it."""
        while not self.died.is_set():
            now = self.clock.now()
            start = max(self._busy_until, now - _CATCH_UP, self.scheduler.idle_until)
            step = self.begin(start)
            if step is None:
                self._wake()
                self._work.clear()
                await self._work.wait()
                self._busy_until = self.clock.now()
                continue
            self._busy_until = start + step.seconds
            await self.clock.sleep_until(self._busy_until)
            # If the next step should be over already, the host has no time for writing: a stream then gets the tokens
            # of several steps in one write, as from a busy real server.
            late = self.clock.now() > self._busy_until + step.seconds
            self.end(step, self._busy_until, hold=late and self._held < _MOST_HELD)

    def begin(self, start: float) -> Step | None:
        """Plan the step that begins at `start`; None if there is nothing to run."""
        step = self.scheduler.next_step(start)
        if step is None:
            return None
        for request in step.admitted:
            self.metrics.count_admission(request)
        self.metrics.levels(self.scheduler)
        return step

    def end(self, step: Step, end: float, *, hold: bool = False) -> None:
        """Settle a step that ended at `end` and deliver its tokens; requests that were stopped meanwhile get none.

        Args:
            step: the step that `begin` planned.
            end: the clock's time at which it ended.
            hold: whether the handlers are woken only after a later step.
        """
        live = [share for share in step.shares if share.request.finished is None]
        if self._faults and any(self._deadly(share.request) for share in live):
            self._die()
            return
        step.shares = live
        yielded = {share.request: self.scheduler.settle(share) for share in live}
        for request, tokens in yielded.items():
            self.generated_tokens += 0 if request.pools else len(tokens)
            if tokens and request.first_token is None:
                self.prompt_tokens += len(request.prompt)
        self.metrics.step(step, yielded, end)
        for request, tokens in yielded.items():
            if tokens:
                request.deliver(tokens, request.finished)
        self.metrics.levels(self.scheduler)
        if hold:
            self._held += 1
        else:
            self._wake()

    def _deadly(self, request: Request) -> bool:
        """Whether a fault kills the engine in this step: during the answer to the named call, or at its only token."""
        amid = len(request.answer) > 0 or request.max_tokens == 1
        return amid and self._faults is not None and self._faults.kills_engine(request.call)

    def _die(self) -> None:
        """End as if the worker's process had been killed; the gauges keep their values."""
        log("worker-died")
        log("engine-died")
        log("output-handler-died")
        self.died.set()
        for request in [*self.scheduler.running, *self.scheduler.waiting]:
            request.finished = "error"
            request.deliver([], "error")
        self._wake()
