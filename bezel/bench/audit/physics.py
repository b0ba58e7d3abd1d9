"""What hardware can do at most: the bare roof, without any efficiency, so that nothing true lies above it.

    compute: (computed prompt tokens + output tokens)/s x 2 x active parameters <= dense FLOP/s x chips x instances
    decoding: a step of B sequences reads the weights once and their caches: at most
        B x tokens a step / (bytes of a step / bandwidth) output tokens a second

Every value that is not stated is taken in favour of the figure: the smallest checkpoint, an 8-bit cache, drafts that
are always right. Leaves out what follows from a share of the roof: that is bezel.bench.audit.checks.roofline's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.roofline import read_cache_bytes, read_weight_bytes, token_flops

if TYPE_CHECKING:
    from bezel.bench.audit.table import System

# Tokens of a draft where drafts are used and nothing says how many.
_DRAFT_TOKENS = 5


@dataclass(frozen=True, slots=True)
class Roof:
    """One limit: what is needed and what there is, in the same unit, and the arithmetic in words."""

    needed: float
    peak: float
    text: str

    @property
    def share(self) -> float:
        """Of the peak that is needed; above 1 no hardware does it."""
        return self.needed / self.peak


def compute_roof(system: System, tokens_per_second: float, what: str) -> Roof | None:
    """The arithmetic of computing so many tokens a second; None where machine or model is not known."""
    if system.machine is None or system.shape is None:
        return None
    instances = system.instances or 1
    needed = tokens_per_second * token_flops(system.shape)
    peak = float(system.machine.flops(system.encoding) * instances)
    name = f"one {system.machine.id}" if instances == 1 else f"{instances} instances of {system.machine.id}"
    text = (
        f"{what} x 2 x {_billions(system.shape.active_parameters)} active parameters = {flops(needed)} "
        f"on {name} with {flops(peak)} at most: {share(needed / peak)}"
    )
    return Roof(needed, peak, text)


def decode_roof(system: System, output_per_second: float, users: int | None, context: int | None) -> Roof | None:
    """The reading of weights and caches for so many output tokens a second; None where too little is known."""
    machine, checkpoint = system.machine, system.checkpoint
    if machine is None or checkpoint is None or users is None:
        return None
    batch = batch_of(system, users)
    tokens = tokens_a_step(system)
    weights = read_weight_bytes(checkpoint, max(1, round(batch)))
    cache = 0.0
    if context and system.prompts not in ("identical", "shared_prefix", "multi_turn"):
        cache = batch * read_cache_bytes(checkpoint, context, element_bytes=1, chips=machine.chips)
    steps = machine.bandwidth / (weights + cache)
    most = steps * batch * tokens * (system.instances or 1)
    drafts = f", {tokens} tokens a step with drafts" if tokens > 1 else ""
    text = (
        f"{output_per_second:,.0f} output tokens/s; a step reads {(weights + cache) / 1e9:.1f} GB, at "
        f"{machine.bandwidth / 1e12:.2f} TB/s {steps:,.0f} steps/s, of {batch:.0f} sequences{drafts} at most "
        f"{most:,.0f} output tokens/s: {share(output_per_second / most)}"
    )
    return Roof(output_per_second, most, text)


def batch_of(system: System, users: int) -> float:
    """Sequences that one instance decodes together at most."""
    together = users / (system.instances or 1)
    limits = [limit for limit in (system.concurrency, system.max_num_seqs) if limit]
    return max(1.0, min([together, *limits]))


def tokens_a_step(system: System) -> int:
    """Tokens that a sequence gets in one step at most."""
    return 1 + (system.draft_tokens or _DRAFT_TOKENS) if system.drafting else 1


def flops(rate: float) -> str:
    """Operations a second for the reader."""
    return f"{rate / 1e15:.2f} PFLOP/s" if rate >= 1e15 else f"{rate / 1e12:.1f} TFLOP/s"


def share(part: float) -> str:
    """A share of a peak for the reader: percent, or times where it is above."""
    return f"{part:.0%} of it" if part <= 1.05 else f"{part:.1f} times that"


def _billions(number: int) -> str:
    return f"{number / 1e9:g}e9"
