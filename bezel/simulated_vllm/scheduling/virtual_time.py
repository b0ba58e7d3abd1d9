"""Engine in virtual time: each step advances the clock instead of sleeping, with closed-loop users if needed.

For comparisons, for curves and for tests; a server with clients runs in real time (`clock.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel.simulated_vllm.scheduling.engine import Engine
from bezel.simulated_vllm.scheduling.fake_text import key_of
from bezel.simulated_vllm.scheduling.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bezel.simulated_vllm.configuration.faults import ServingFaults
    from bezel.simulated_vllm.configuration.settings import EngineSettings
    from bezel.simulated_vllm.scheduling.request import FinishReason


class VirtualClock:
    """A clock whose time is set by its user."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        """Return the time that was set last."""
        return self.time

    async def sleep_until(self, when: float) -> None:
        """Set the time."""
        self.time = max(self.time, when)


@dataclass
class Outcome:
    """The outcome of a request, in virtual seconds."""

    request: Request
    times: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    chunks: int = 0
    finish: str | None = None

    @property
    def ttft(self) -> float:
        """Seconds to the first token."""
        return self.times[0] - self.request.arrival

    @property
    def latency(self) -> float:
        """Seconds to the last token."""
        return self.times[-1] - self.request.arrival

    @property
    def gaps(self) -> list[float]:
        """Seconds between one delivery and the next."""
        return [later - earlier for earlier, later in zip(self.times, self.times[1:], strict=False)]


class Rig:
    """One engine, its clock, and the outcomes of its requests."""

    def __init__(self, settings: EngineSettings, strikes: ServingFaults | None = None) -> None:
        self.clock = VirtualClock()
        self.engine = Engine(settings, self.clock, strikes)
        self.outcomes: list[Outcome] = []

    def ask(
        self,
        prompt: Sequence[int] | int,
        output: int = 16,
        *,
        seed: int = 0,
        ignore_eos: bool = True,
        then: Callable[[], None] | None = None,
    ) -> Outcome:
        """Queue a request at the present time; an int is the length of a prompt that shares no block with another."""
        number = len(self.outcomes)
        tokens = [1000 + number, *range(2, prompt + 1)] if isinstance(prompt, int) else prompt
        outcome: Outcome

        def deliver(new: list[int], finish: FinishReason | None) -> None:
            outcome.times.append(self.clock.time)
            outcome.tokens += new
            outcome.chunks += 1
            outcome.finish = finish
            if finish and then:
                then()

        request = Request(tokens, output, key_of(tokens, seed), deliver, ignore_eos=ignore_eos)
        outcome = Outcome(request)
        self.outcomes.append(outcome)
        self.engine.check_admission()
        self.engine.add(request)
        return outcome

    def step(self) -> bool:
        """Run one step; False if there was nothing to do."""
        start = self.clock.time
        step = self.engine.begin(start)
        if step is None:
            return False
        self.clock.time = start + step.seconds
        self.engine.end(step, self.clock.time)
        return True

    def run(self, limit: int = 100_000) -> None:
        """Run steps until no request is left."""
        for _ in range(limit):
            if not self.step():
                return
        raise AssertionError("the engine never came to an end")

    def value(self, *series: str) -> float:
        """Return the value of a metric, by its name without `vllm:` in front and its labels' values."""
        return self.engine.metrics.value(*series)
