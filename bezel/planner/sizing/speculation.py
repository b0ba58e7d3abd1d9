"""What drafts may gain: tokens that a step yields by an acceptance range, against what drafting and verifying cost.

Owns the expected gain of speculative decoding as a range. The acceptance depends on the text and is assumed, which the
output says; a deploy measures the real one. Leaves which settings make sense to bezel.planner.vllm.speculation_checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.sizing.roofline import DECODE_EFFICIENCY, STEP_SECONDS, percent, rounded, step_seconds

if TYPE_CHECKING:
    from bezel.catalog import Model
    from bezel.planner.sizing.roofline import Estimate, Peaks, Range

# Chance that a drafted token is taken where those before it were. Assumed, not measured for Gemma 4: what public
# reports of such drafts span, from prose to code.
ASSISTANT_ACCEPTANCE: Range = (0.4, 0.8)
# Drafts copied from the text itself are right where it repeats itself and nowhere else.
COPIED_ACCEPTANCE: Range = (0.0, 0.6)


@dataclass(frozen=True, slots=True)
class Gain:
    """How many times faster the answers are than without drafts, alone and together, as (low, high) ranges."""

    draft_tokens: int
    acceptance: Range
    alone: Range
    batched: Range

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output, with the assumption."""
        return {
            "draft_tokens": self.draft_tokens,
            "gain_alone": rounded(self.alone, 2),
            "gain_batched": rounded(self.batched, 2),
            "basis": self.basis,
        }

    @property
    def basis(self) -> str:
        """What it rests on."""
        return f"each of {self.draft_tokens} drafted tokens taken with a chance of {percent(self.acceptance)} (assumed)"


def tokens_of_step(acceptance: float, draft_tokens: int) -> float:
    """Tokens that a step yields on average: the model's own, and each draft if it and all before it are taken."""
    return sum(acceptance**place for place in range(draft_tokens + 1))


def speculative_gain(
    model: Model,
    peaks: Peaks,
    found: Estimate,
    *,
    draft_tokens: int,
    draft_bytes: int,
    kv_element_bytes: int,
    step_tokens: float | None = None,
) -> Gain:
    """The gain at the load of an estimate.

    Args:
        model: the checkpoint.
        peaks: what its accelerators can do.
        found: the estimate without drafts.
        draft_tokens: tokens drafted in a step.
        draft_bytes: weights of the draft model, read once for each token; 0 where the text itself is copied.
        kv_element_bytes: bytes of one element of the KV cache.
        step_tokens: tokens that a step was seen to yield (1 + accepted / drafts), in place of the assumed range.
    """
    acceptance = ASSISTANT_ACCEPTANCE if draft_bytes else COPIED_ACCEPTANCE
    least, most = (step_tokens or tokens_of_step(chance, draft_tokens) for chance in acceptance)

    def gain(sequences: int) -> Range:
        load = {"sequences": sequences, "context": found.context_tokens, "kv_element_bytes": kv_element_bytes}
        plain = step_seconds(model, peaks, **load)
        verified = step_seconds(model, peaks, **load, tokens=draft_tokens + 1)
        factors = []
        for end, share in enumerate(reversed(DECODE_EFFICIENCY)):
            one = draft_bytes / peaks.bandwidth_bytes_per_s / share + STEP_SECONDS[end] if draft_bytes else 0.0
            factors.append(plain[end] / (verified[end] + draft_tokens * one))
        return min(factors) * least, max(factors) * most

    return Gain(draft_tokens, acceptance, gain(1), gain(found.batch))
