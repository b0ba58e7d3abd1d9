"""A served model as arithmetic: what a closed loop of users would measure on it, with the noise of real runs.

Shares no rule with the audit: it goes from hardware to figures (a step reads weights and caches, a prompt is computed
at part of the peak, users wait for each other), the audit from figures to what hardware must have done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bezel_catalog import Model, accelerators, models, tpus

if TYPE_CHECKING:
    import random

# Name in labels, catalogue id, chips; and the encodings that are served there.
MACHINES = (
    ("l4", "nvidia-l4", 1, ("w4a16", "fp8")),
    ("rtx6000", "nvidia-rtx-pro-6000", 1, ("fp8", "bf16", "w4a16")),
    ("l4x8", "nvidia-l4", 8, ("bf16", "fp8")),
    ("v6e1", "v6e-1", 1, ("bf16",)),
    ("v6e4", "v6e-4", 4, ("bf16",)),
    ("v6e8", "v6e-8", 8, ("bf16",)),
)


@dataclass(frozen=True)
class Served:
    """One system. Efficiencies are shares of the peaks; `speed` is how this run's machine differs from others."""

    label: str
    hardware: str
    chips: int
    model: Model
    decode: float
    prefill: float
    overhead: float
    max_num_seqs: int
    draft_tokens: int = 0
    acceptance: float = 0.0
    cached: float = 0.0
    instances: int = 1
    speed: float = 1.0

    @property
    def size(self) -> str:
        """The model's size in labels, e.g. "12b"."""
        return self.model.architecture.id.removeprefix("gemma-4-")

    @property
    def tpu(self) -> bool:
        """Whether it is a TPU."""
        return self.hardware in tpus()

    @property
    def tokens_a_step(self) -> float:
        """Tokens that a sequence gets in a step, on average."""
        return 1 + sum(self.acceptance**position for position in range(1, self.draft_tokens + 1))

    def peaks(self) -> tuple[float, float, float]:
        """Bytes/s, FLOP/s and bytes of memory of all chips."""
        unit = tpus()[self.hardware] if self.tpu else accelerators()[self.hardware]
        flops = unit.bf16_flops
        if not self.tpu and self.model.encoding == "fp8":
            flops = accelerators()[self.hardware].fp8_flops
        return (
            unit.bandwidth_bytes_per_s * float(self.chips),
            float(flops) * self.chips,
            unit.memory_bytes * float(self.chips),
        )


@dataclass(frozen=True)
class Load:
    """One cell's true figures: rates a second, latencies in seconds."""

    context: int
    users: int
    output: int
    rate: float
    ttft: float
    tpot: float
    e2e: float


def some_server(dice: random.Random) -> Served:
    """Any machine with any checkpoint that fits it."""
    while True:
        label, hardware, chips, encodings = dice.choice(MACHINES)
        fitting = [
            model
            for model in models().values()
            if model.encoding in encodings and not model.refused_on("tpu" if hardware in tpus() else "")
        ]
        served = Served(
            label=label,
            hardware=hardware,
            chips=chips,
            model=dice.choice(fitting),
            decode=dice.uniform(0.40, 0.72),
            prefill=dice.uniform(0.15, 0.50),
            overhead=dice.uniform(0.004, 0.25),
            max_num_seqs=dice.choice((8, 16, 64, 128, 256)),
        )
        if served.model.weight_bytes < 0.85 * served.peaks()[2]:
            return served


def measure(served: Served, context: int, users: int, output: int) -> Load:
    """What a closed loop of users measures in the steady state, without noise."""
    bandwidth, flops, memory = served.peaks()
    shape = served.model.architecture
    together = min(users / served.instances, served.max_num_seqs)
    token = 2 * 2 * (shape.sliding_layers * shape.sliding_kv_heads * shape.sliding_head_dim)
    full = 2 * 2 * (shape.full_layers * shape.full_kv_heads * shape.full_head_dim)
    length = context + output / 2
    cache = token * min(length, shape.window) + full * length
    room = (0.9 * memory - served.model.weight_bytes) / cache
    batch = max(1.0, min(together, room))
    touched = 1.0
    if shape.experts:
        touched = 0.25 + 0.75 * (1 - (1 - shape.active_experts / shape.experts) ** (batch * (1 + served.draft_tokens)))
    reading = (served.model.weight_bytes * touched + batch * cache) / bandwidth / served.decode
    work = 2 * shape.active_parameters / flops / served.prefill
    step = max(reading, batch * (1 + served.draft_tokens) * work) + 0.001 + 0.0001 * batch
    prompt = max(1.0, context * (1 - served.cached)) * work
    steps = max(0.0, (output - 1) / served.tokens_a_step)
    # Prompts of the others are computed between the steps; what a request does besides, others do not wait for.
    busy = batch * prompt + steps * step
    round_ = (served.overhead + busy) / served.speed
    alone = min(users, batch * served.instances) / round_  # instances beyond the users answer no request
    limit = batch * served.instances / (busy / served.speed)
    rate = min(alone, 0.97 * limit)
    e2e = users / rate
    decoding = steps * (step + prompt * (batch - 1) / max(1.0, steps + 1)) / served.speed if output > 1 else 0.0
    decoding = min(decoding, 0.95 * e2e)
    return Load(
        context=context,
        users=users,
        output=output,
        rate=rate,
        ttft=e2e - decoding,
        tpot=decoding / (output - 1) if output > 1 else 0.0,
        e2e=e2e,
    )


def noisy(load: Load, dice: random.Random, spread: float) -> Load:
    """The same load as one run saw it; the parts of a latency stay parts of it."""
    rate = load.rate * dice.lognormvariate(0, spread)
    e2e = load.users / rate * dice.uniform(0.97, 1.0)
    decoding = load.tpot * (load.output - 1) * e2e / load.e2e * dice.lognormvariate(0, spread / 2)
    decoding = min(decoding, 0.98 * e2e)
    return replace(
        load,
        rate=rate,
        e2e=e2e,
        ttft=e2e - decoding,
        tpot=decoding / (load.output - 1) if load.output > 1 else 0.0,
    )
