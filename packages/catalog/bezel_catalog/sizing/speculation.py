"""Speculative decoding's expected gain: tokens that a step yields against the cost of drafting and verifying.

Owns the gain as a range. The acceptance depends on the text and is assumed, which the output states; a deploy measures
the real one. Leaves which settings make sense to bezel.planner.vllm.speculation_checks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_catalog.sizing.roofline import DECODE_EFFICIENCY, STEP_SECONDS, percent, round_range, step_seconds

if TYPE_CHECKING:
    from bezel_catalog import Model
    from bezel_catalog.sizing.roofline import Estimate, Peaks, Range

# Probability that a drafted token is accepted where those before it were. Assumed, not measured for Gemma 4: the span
# of public reports of such drafts, from prose to code.
ASSISTANT_ACCEPTANCE: Range = (0.4, 0.8)
# Drafts copied from the text are accepted only where the text repeats itself.
COPIED_ACCEPTANCE: Range = (0.0, 0.6)


@dataclass(frozen=True, slots=True)
class Gain:
    """Speed-up over no drafts, for one user and for the batch, as (low, high) ranges."""

    draft_tokens: int
    acceptance: Range
    alone: Range
    batched: Range

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output, with the assumption."""
        return {
            "draft_tokens": self.draft_tokens,
            "gain_alone": round_range(self.alone, 2),
            "gain_batched": round_range(self.batched, 2),
            "basis": self.basis,
        }

    @property
    def basis(self) -> str:
        """The assumption behind the gain."""
        chance = percent(self.acceptance)
        return f"each of {self.draft_tokens} drafted tokens accepted with a probability of {chance} (assumed)"


def tokens_of_step(acceptance: float, draft_tokens: int) -> float:
    """Tokens that a step yields on average: the model's own, and each draft if it and all before it are accepted."""
    return sum(acceptance**place for place in range(draft_tokens + 1))


def speculative_gain(
    model: Model,
    peaks: Peaks,
    speed: Estimate,
    *,
    draft_tokens: int,
    draft_bytes: int,
    kv_element_bytes: int,
    step_tokens: float | None = None,
) -> Gain:
    """The gain at the load of an estimate.

    Args:
        model: the checkpoint.
        peaks: peak rates of its accelerators.
        speed: the estimate without drafts.
        draft_tokens: tokens drafted in a step.
        draft_bytes: weights of the draft model, read once for each token; 0 where drafts are copied from the text.
        kv_element_bytes: bytes of one element of the KV cache.
        step_tokens: measured tokens of a step (1 + accepted / drafts), in place of the assumed range.
    """
    acceptance = ASSISTANT_ACCEPTANCE if draft_bytes else COPIED_ACCEPTANCE
    low, high = (step_tokens or tokens_of_step(chance, draft_tokens) for chance in acceptance)

    def gain(sequences: int) -> Range:
        load = {"sequences": sequences, "context": speed.context_tokens, "kv_element_bytes": kv_element_bytes}
        plain = step_seconds(model, peaks, **load)
        verified = step_seconds(model, peaks, **load, tokens=draft_tokens + 1)
        factors = []
        for end, share in enumerate(reversed(DECODE_EFFICIENCY)):
            reading = draft_bytes / peaks.bandwidth_bytes_per_s / share
            draft_seconds = reading + STEP_SECONDS[end] if draft_bytes else 0.0
            factors.append(plain[end] / (verified[end] + draft_tokens * draft_seconds))
        return min(factors) * low, max(factors) * high

    return Gain(draft_tokens, acceptance, gain(1), gain(speed.batch))
