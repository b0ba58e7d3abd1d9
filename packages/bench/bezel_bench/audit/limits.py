"""Upper bounds of hardware: the bare roof, without any efficiency, so that no true figure exceeds it.

    compute: (computed prompt tokens + output tokens)/s x 2 x active parameters <= dense FLOP/s x chips x instances
    decoding: a step of B sequences reads the weights once and their caches: at most
        B x tokens a step / (bytes of a step / bandwidth) output tokens a second

Every value that is not stated is assumed in favour of the figure: the smallest checkpoint, an 8-bit cache, drafts that
are always right. Leaves out the conclusions from a share of the roof (bezel_bench.audit.checks.hardware.roofline).
"""

import functools
from dataclasses import dataclass, replace

from bezel_bench.audit.figure import StatedFigure
from bezel_bench.audit.labels import MachineLabel, machine_in
from bezel_bench.audit.table import System
from bezel_bench.audit.words import count
from bezel_catalog import accelerators, models, tpus
from bezel_catalog.sizing.roofline import read_cache_bytes, read_weight_bytes

# Assumed tokens of a draft where drafts are used and their number is not stated.
_DRAFT_TOKENS = 5


@dataclass(frozen=True, slots=True)
class Roof:
    """One limit.

    Attributes:
        needed: What the figure needs.
        peak: The most that the machine supplies, in the same unit.
        need: The need in words.
        supply: The supply in words; "" where the words of the need have it.
    """

    needed: float
    peak: float
    need: str
    supply: str = ""

    @property
    def text(self) -> str:
        """The arithmetic in words."""
        return f"{'; '.join(filter(None, (self.need, self.supply)))}: {share(self.share)}"

    @property
    def share(self) -> float:
        """Return the needed share of the peak; above 1 no hardware does it."""
        return self.needed / self.peak


def compute_roof(system: System, tokens_per_second: float, what: str) -> Roof | None:
    """Return the arithmetic of computing that many tokens per second; None where machine or model is unknown."""
    model = system.shape or system.stated_model
    if system.machine is None or model is None:
        return None
    instances = system.instances or 1
    needed = tokens_per_second * 2 * model.active_parameters
    peak = float(system.machine.flops(system.encoding) * instances)
    name = f"one {system.machine.id}" if instances == 1 else f"{instances} instances of {system.machine.id}"
    text = (
        f"{what} x 2 x {model.active_parameters / 1e9:g}e9 active parameters = {flops(needed)} "
        f"on {name} with {flops(peak)} at most"
    )
    return Roof(needed, peak, text)


def decode_roof(system: System, output_per_second: float, users: int | None, context: int | None) -> Roof | None:
    """Return the reads of weights and caches for that many output tokens per second; None where too little is known."""
    machine = system.machine
    if machine is None or users is None or (system.checkpoint is None and system.stated_model is None):
        return None
    batch = batch_of(system, users)
    tokens = tokens_a_step(system)
    weights, cache = _step_reads(system, machine, batch, context or 0)
    if system.prompts in ("identical", "shared_prefix", "multi_turn"):
        cache = 0.0
    steps = machine.bandwidth / (weights + cache)
    roof = steps * batch * tokens * (system.instances or 1)
    drafts = f", {tokens} tokens a step with drafts" if tokens > 1 else ""
    supply = (
        f"a step reads {(weights + cache) / 1e9:.1f} GB, at {machine.bandwidth / 1e12:.2f} TB/s {steps:,.0f} steps/s, "
        f"of {count(round(batch), 'sequence')}{drafts} at most {roof:,.0f} output tokens/s"
    )
    return Roof(output_per_second, roof, f"{output_per_second:,.0f} output tokens/s", supply)


def token_roof(system: System, tpot: StatedFigure, context: int | None) -> Roof:
    """Return the time for each token of one response, against the time of reading the weights for it.

    Drafts count as used unless the source denies them. Where machine or model is unknown, the catalogue's smallest
    checkpoint on its fastest machine is assumed.
    """
    seconds = tpot.high
    roof = decode_roof(replace(system, instances=1, speculation=system.speculation or "any"), 1 / seconds, 1, context)
    need = f"{tpot.value * 1e3:.4g} ms a token are {1 / tpot.value:,.0f} output tokens/s for one user"
    if roof:
        return replace(roof, need=need)
    machine, weights = _fastest()
    most = machine.bandwidth / weights * (1 + _DRAFT_TOKENS)
    return Roof(
        1 / seconds,
        most,
        need,
        f"{machine.id}, the fastest of the catalogue, reads the smallest model's {weights / 1e9:.1f} GB "
        f"{machine.bandwidth / weights:,.0f} times a second: with {_DRAFT_TOKENS} drafts at most {most:,.0f} output "
        "tokens/s",
    )


def _step_reads(system: System, machine: MachineLabel, batch: float, context: int) -> tuple[float, float]:
    """Return the fewest bytes of weights and of caches that a step of so many sequences reads."""
    if system.checkpoint is not None:
        weights = read_weight_bytes(system.checkpoint, max(1, round(batch)))
        cache = read_cache_bytes(system.checkpoint, context, element_bytes=1, chips=machine.chips)
        return weights, batch * cache
    model = system.stated_model
    return (model.read_bytes, batch * context * model.cache_bytes_per_token) if model else (0.0, 0.0)


@functools.cache
def _fastest() -> tuple[MachineLabel, float]:
    """Return the machine with the highest bandwidth, and the fewest bytes that a step of a model reads."""
    machines = [machine for name in (*accelerators(), *tpus()) if (machine := machine_in(name))]
    return (
        max(machines, key=lambda machine: machine.bandwidth),
        min(read_weight_bytes(model, 1) for model in models().values()),
    )


def batch_of(system: System, users: int) -> float:
    """Return the most sequences that one instance decodes together."""
    together = users / (system.instances or 1)
    limits = [limit for limit in (system.concurrency, system.max_num_seqs) if limit]
    return max(1.0, min([together, *limits]))


def tokens_a_step(system: System) -> int:
    """Return the most tokens that a sequence gets in one step."""
    return 1 + (system.draft_tokens or _DRAFT_TOKENS) if system.drafting else 1


def flops(rate: float) -> str:
    """Format operations per second."""
    return f"{rate / 1e15:.2f} PFLOP/s" if rate >= 1e15 else f"{rate / 1e12:.1f} TFLOP/s"


def share(part: float) -> str:
    """Format a share of a peak: percent, or times where it is above."""
    return f"{part:.0%} of it" if part <= 1.05 else f"{part:.1f} times that"
