"""Estimated speed of a model that pools: inputs a second, by the same roofline as prompts of models that generate.

Owns the arithmetic of a step of whole inputs. An input is one text, or one pair of texts for a cross-encoder. Leaves
peaks and efficiencies to bezel_catalog.sizing.roofline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_catalog.sizing.roofline import (
    DECODE_EFFICIENCY,
    PREFILL_EFFICIENCY,
    REQUEST_SECONDS,
    STEP_SECONDS,
    Range,
    percent,
    prefill_seconds,
    read_weight_bytes,
    round_range,
    weight_seconds,
)

if TYPE_CHECKING:
    from bezel_catalog import Model
    from bezel_catalog.sizing.roofline import Peaks


@dataclass(frozen=True, slots=True)
class PooledEstimate:
    """Expected speed of one instance as (low, high) ranges, for inputs of `prompt_tokens` tokens.

    `batch` is the number of inputs in one step, `input_seconds` the answer to one input alone, `step_seconds` a full
    step.
    """

    prompt_tokens: int
    batch: int
    input_seconds: Range
    step_seconds: Range

    @property
    def inputs_per_second(self) -> Range:
        """Inputs a second while every step is full."""
        return self.batch / self.step_seconds[1], self.batch / self.step_seconds[0]

    @property
    def tokens_per_second(self) -> Range:
        """Tokens of inputs a second while every step is full."""
        low, high = self.inputs_per_second
        return low * self.prompt_tokens, high * self.prompt_tokens

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output, with the assumptions."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "input_seconds": round_range(self.input_seconds, 3),
            "inputs_per_second": round_range(self.inputs_per_second, 1),
            "input_tokens_per_second": round_range(self.tokens_per_second, 1),
            "batch": self.batch,
            "basis": (
                f"roofline; inputs at {percent(PREFILL_EFFICIENCY)} of the dense peak, weights read at "
                f"{percent(DECODE_EFFICIENCY)} of the memory bandwidth, every step full; the server's process for HTTP "
                "and tokenising is not counted, and may be slower than a small model"
            ),
        }


def pooled_estimate(
    model: Model, peaks: Peaks, *, prompt_tokens: int, sequences: int, step_tokens: int
) -> PooledEstimate:
    """Expected speed of one instance with a model that pools.

    Args:
        model: the checkpoint.
        peaks: peak rates of its accelerators.
        prompt_tokens: length of an input.
        sequences: inputs that may be computed together, by max-num-seqs and the memory.
        step_tokens: tokens of one step, max-num-batched-tokens.
    """
    batch = max(1, min(sequences, step_tokens // prompt_tokens))
    alone, full = (_step(model, peaks, inputs=inputs, tokens=prompt_tokens) for inputs in (1, batch))
    return PooledEstimate(
        prompt_tokens=prompt_tokens,
        batch=batch,
        input_seconds=(alone[0] + REQUEST_SECONDS[0], alone[1] + REQUEST_SECONDS[1]),
        step_seconds=full,
    )


def _step(model: Model, peaks: Peaks, *, inputs: int, tokens: int) -> Range:
    """Duration of a step of whole inputs: their computation, or the reading of the weights where that takes longer."""
    computing = prefill_seconds(model, peaks, tokens)
    reading = weight_seconds(read_weight_bytes(model, inputs * tokens), peaks)
    low, high = (reading / share for share in reversed(DECODE_EFFICIENCY))
    return max(inputs * computing[0], low) + STEP_SECONDS[0], max(inputs * computing[1], high) + STEP_SECONDS[1]
