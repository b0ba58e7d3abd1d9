"""How fast it may be: a roofline of the accelerator times efficiencies that soundly measured servers reached.

Owns the arithmetic. Every figure is a range, never the bare roof, and says at which load it holds. Without
speculative decoding, whose gain depends on the text; without queueing, network and cold start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.kv_cache import kv_bytes

if TYPE_CHECKING:
    from bezel.catalog import Accelerator, Model

Range = tuple[float, float]

# Share of the memory bandwidth while decoding. Two sound measurements of Gemma 4 12B (bf16) reached 55 and 66 %;
# the range reaches a little beyond both because these GPUs were not measured.
DECODE_EFFICIENCY: Range = (0.45, 0.75)
# Share of the dense bf16 peak while reading prompts in. Serving does not exceed 60 % of the peak.
PREFILL_EFFICIENCY: Range = (0.25, 0.60)
# Work of the CPU for one step and one request, seconds: scheduling, tokenising, HTTP.
STEP_SECONDS: Range = (0.001, 0.005)
REQUEST_SECONDS: Range = (0.005, 0.030)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected speed as (low, high) ranges: seconds to the first token, output tokens per second."""

    prompt_tokens: int
    context_tokens: int
    batch: int
    ttft_seconds: Range
    tokens_per_second_alone: Range
    tokens_per_second_batched: Range

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output, with the assumptions."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "ttft_seconds": _rounded(self.ttft_seconds, 3),
            "output_tokens_per_second_alone": _rounded(self.tokens_per_second_alone, 1),
            "output_tokens_per_second_batched": _rounded(self.tokens_per_second_batched, 1),
            "batch": self.batch,
            "basis": (
                f"roofline; decoding at {_percent(DECODE_EFFICIENCY)} of the memory bandwidth, "
                f"prompts at {_percent(PREFILL_EFFICIENCY)} of the bf16 peak, {self.context_tokens} tokens of context, "
                "no speculative decoding"
            ),
        }


def estimate(
    model: Model,
    accelerator: Accelerator,
    *,
    prompt_tokens: int,
    output_tokens: int,
    batch: int,
    kv_element_bytes: int,
) -> Estimate:
    """Expected speed of one instance.

    Args:
        model: the checkpoint.
        accelerator: its GPU.
        prompt_tokens: length of the prompt for the time to the first token.
        output_tokens: length of the answer; decoding is taken at half of it.
        batch: sequences that decode together.
        kv_element_bytes: bytes of one element of the KV cache.
    """
    context = prompt_tokens + output_tokens // 2

    def step(sequences: int, efficiency: float, overhead: float) -> float:
        read = read_weight_bytes(model, sequences)
        read += sequences * kv_bytes(model.architecture, context, element_bytes=kv_element_bytes)
        memory = read / accelerator.bandwidth_bytes_per_s / efficiency
        compute = 2 * model.architecture.active_parameters * sequences / accelerator.bf16_flops / PREFILL_EFFICIENCY[1]
        return max(memory, compute) + overhead

    fast = {size: step(size, DECODE_EFFICIENCY[1], STEP_SECONDS[0]) for size in (1, batch)}
    slow = {size: step(size, DECODE_EFFICIENCY[0], STEP_SECONDS[1]) for size in (1, batch)}
    prefill = 2 * model.architecture.active_parameters * prompt_tokens / accelerator.bf16_flops
    return Estimate(
        prompt_tokens=prompt_tokens,
        context_tokens=context,
        batch=batch,
        ttft_seconds=(
            max(prefill / PREFILL_EFFICIENCY[1], fast[1]) + REQUEST_SECONDS[0],
            max(prefill / PREFILL_EFFICIENCY[0], slow[1]) + REQUEST_SECONDS[1],
        ),
        tokens_per_second_alone=(1 / slow[1], 1 / fast[1]),
        tokens_per_second_batched=(batch / slow[batch], batch / fast[batch]),
    )


def read_weight_bytes(model: Model, sequences: int) -> float:
    """Weight bytes that one decoding step reads: all of a dense model, of experts those that any sequence chose."""
    shape = model.architecture
    if not shape.experts:
        return model.weight_bytes
    per_parameter = model.weight_bytes / shape.parameters
    experts = 3 * shape.layers * shape.experts * shape.hidden_size * shape.expert_intermediate_size
    touched = 1 - (1 - shape.active_experts / shape.experts) ** sequences
    return per_parameter * (shape.parameters - experts + experts * touched)


def _rounded(values: Range, digits: int) -> list[float]:
    return [round(value, digits) for value in values]


def _percent(values: Range) -> str:
    return f"{values[0]:.0%} to {values[1]:.0%}"
