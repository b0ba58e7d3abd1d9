"""Engine in virtual time, seeded closed-loop users on it, and the upper bound of a machine's throughput.

Each step advances the clock instead of sleeping, so thousands of requests take seconds of this machine, and the same
seed gives the same figures to the last digit. For comparisons, curves and tests.
"""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, field
from statistics import fmean, quantiles
from typing import TYPE_CHECKING

from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.kv_layout import bytes_per_element
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.configuration.settings import make_settings
from bezel_simulated_vllm.scheduling.engine import Engine, RealClock
from bezel_simulated_vllm.scheduling.fake_text import key_of
from bezel_simulated_vllm.scheduling.request import Request
from bezel_simulated_vllm.synthetic_weights import model_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bezel_simulated_vllm.configuration.faults import ServingFaults
    from bezel_simulated_vllm.configuration.settings import EngineSettings
    from bezel_simulated_vllm.scheduling.request import FinishReason

_SPREAD = 0.2  # lengths of prompts and answers differ from the requested mean by at most this share


class VirtualClock(RealClock):
    """A clock whose time is set by its user."""

    time = 0.0

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

    def __init__(self, settings: EngineSettings, faults: ServingFaults | None = None) -> None:
        self.clock = VirtualClock()
        self.engine = Engine(settings, self.clock, faults)
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
        raise AssertionError("the engine did not finish its requests")

    def value(self, *series: str) -> float:
        """Return the value of a metric, by its name without `vllm:` in front and its labels' values."""
        return self.engine.metrics.value(*series)


@dataclass(frozen=True)
class Point:
    """The figures of one load; seconds are virtual.

    Attributes:
        users: Number of users, who each send the next request as soon as the last one is complete.
        prompt: Mean tokens of a prompt; `output` is the mean of an answer.
        rate: Output tokens per second while all users are active; `overall` from the first request to the last answer.
        roof: Upper bound of the output tokens per second, from arithmetic and memory of the machine.
        ttft: Seconds to the first token, the median; `ttft_p99` is the 99th percentile.
        tpot: Seconds of a further token, the median of the requests' means.
        preempted: Number of preemptions, in which a request lost its blocks.
    """

    users: int
    prompt: int
    output: int
    requests: int
    rate: float
    overall: float
    roof: float
    ttft: float
    ttft_p99: float
    tpot: float
    preempted: int

    def row(self) -> dict[str, float]:
        """Return its figures, rounded to six significant digits."""
        return {
            name: float(f"{value:.6g}") if isinstance(value, float) else value for name, value in asdict(self).items()
        }


def settings_of_server(
    folder: Path, model: str, arguments: tuple[str, ...], hardware: dict[str, object]
) -> EngineSettings:
    """Return the settings of a server of a synthetic checkpoint.

    Args:
        folder: The folder into which the checkpoint is written.
        model: Its id in the catalogue.
        arguments: The arguments after the model's path.
        hardware: The machine, as in LOCALCLOUD_HARDWARE.
    """
    (folder / "model").mkdir(parents=True)
    for name, content in model_files(model).items():
        (folder / "model" / name).write_bytes(content)
    environment = {
        "LOCALCLOUD_HARDWARE": json.dumps(hardware),
        "LOCALCLOUD_MOUNTS": json.dumps({"/mnt/models": str(folder)}),
    }
    return make_settings(parse(["/mnt/models/model", *arguments]), machine_from_environment(environment), {})


def load(
    settings: EngineSettings,
    users: int,
    *,
    prompt: int,
    output: int,
    rounds: int = 5,
    shared: float = 0.0,
    seed: int = 1,
) -> Point:
    """Run a closed-loop load and return its figures.

    Args:
        settings: The settings of the server.
        users: Number of concurrent users.
        prompt: Mean tokens of a prompt.
        output: Mean tokens of an answer.
        rounds: Number of requests per user.
        shared: Share of every prompt that is the same for all.
        seed: Seed of the lengths of prompts and answers.
    """
    rig = Rig(settings)
    chances = random.Random(seed)  # noqa: S311 - lengths
    total = users * rounds
    left = total
    last_asked = 0.0

    def length(mean: int) -> int:
        return max(1, round(mean * chances.uniform(1 - _SPREAD, 1 + _SPREAD)))

    def ask() -> None:
        nonlocal left, last_asked
        if not left:
            return
        left -= 1
        last_asked = rig.clock.time
        count = length(prompt)
        same = int(count * shared)
        rig.ask(
            [*range(same), *range(10**7 + left * 10**5, 10**7 + left * 10**5 + count - same)], length(output), then=ask
        )

    for _ in range(users):
        ask()
        rig.step()
    rig.run(10_000_000)
    outcomes = rig.outcomes
    begun = sorted(outcome.times[-1] for outcome in outcomes)[min(users, total - 1) - 1]
    window = (begun, last_asked) if last_asked > begun else (0.0, rig.clock.time)
    inside = sum(window[0] < time <= window[1] for outcome in outcomes for time in outcome.times)
    firsts = [outcome.ttft for outcome in outcomes]
    paces = [sum(outcome.gaps) / len(outcome.gaps) for outcome in outcomes if outcome.gaps]
    tokens = sum(len(outcome.tokens) for outcome in outcomes)
    return Point(
        users=users,
        prompt=prompt,
        output=output,
        requests=total,
        rate=inside / (window[1] - window[0]),
        overall=tokens / rig.clock.time,
        roof=roof(rig, users),
        ttft=quantiles(firsts, n=2)[0] if total > 1 else firsts[0],
        ttft_p99=quantiles(firsts, n=100)[98] if total > 1 else firsts[0],
        tpot=quantiles(paces, n=2)[0] if len(paces) > 1 else fmean(paces or [0.0]),
        preempted=int(rig.value("num_preemptions_total")),
    )


def roof(rig: Rig, users: int) -> float:
    """Return the most output tokens per second that the machine could reach for the requests of a completed load.

    All assumptions favour the machine: arithmetic at its whole share of the peak, weights read once for as many
    sequences as may run at a time, no overhead, and no token computed twice.
    """
    settings = rig.engine.settings
    model, chip, element = settings.model, settings.machine.accelerator, bytes_per_element(settings.kv_cache_dtype)
    batch = min(users, settings.max_num_seqs)
    operations = traffic = 0.0
    for outcome in rig.outcomes:
        prompt, output = len(outcome.request.prompt), len(outcome.tokens)
        operations += 2 * model.active_parameters * (prompt - outcome.request.cached + output - 1)
        traffic += (output - 1) * model.step_weight_bytes * model.active_fraction / batch
        traffic += (output - 1) * model.kv_bytes_read(prompt, element)
    tokens = sum(len(outcome.tokens) for outcome in rig.outcomes)
    shares = settings.tensor_parallel
    arithmetic = operations / (chip.flops_per_second * chip.compute_efficiency * shares)
    memory = traffic / (chip.memory_bytes_per_second * chip.memory_efficiency * shares)
    return tokens / max(arithmetic, memory)
