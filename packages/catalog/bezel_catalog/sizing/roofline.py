"""Estimated speed: a roofline of the accelerators times efficiencies that sound measurements reached.

Owns the arithmetic of prompts and of decoding, alone and in a batch, on one chip or on several that share a model.
Every figure is a range, never the bare roofline, and names the load at which it holds; queueing, network and cold start
are excluded. Leaves drafts to bezel_catalog.sizing.speculation and the batch that the memory allows to
bezel_catalog.sizing.memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bezel_catalog.architectures.layers import ChunkedLayers, EncoderLayers, FullLayers, LatentLayers, SlidingLayers
from bezel_catalog.sizing.kv_cache import kept_tokens, kv_bytes

if TYPE_CHECKING:
    from bezel_catalog import Accelerator, Architecture, Model, TpuSlice
    from bezel_catalog.architectures.layers import Layers

Range = tuple[float, float]
Verdict = Literal["below", "within", "above"]

# Share of the memory bandwidth while decoding. Two sound measurements of Gemma 4 12B (bf16) with one user,
# on one and on four v6e chips, reached 66 and 55 %; the range is wider than both because GPUs were not measured.
DECODE_EFFICIENCY: Range = (0.45, 0.75)
# Share of the dense peak during prefill: assumed, not measured. Serving does not exceed 60 % of the peak.
PREFILL_EFFICIENCY: Range = (0.30, 0.60)
# CPU time of one step and of one request, seconds: scheduling, tokenising, HTTP.
STEP_SECONDS: Range = (0.001, 0.005)
REQUEST_SECONDS: Range = (0.005, 0.030)
# Documented: PCIe 4.0 x16, one way. The slowest link of the catalogue's GPUs; the RTX PRO 6000's is twice as fast.
HOST_LINK_BYTES_PER_S = 32_000_000_000
_EMBEDDING_BYTES = 2  # of one parameter: every encoding keeps embeddings in 16 bits


@dataclass(frozen=True, slots=True)
class Peaks:
    """Peak rates of one chip, in bytes/s and dense FLOP/s, and the number of chips that share the model.

    `offloaded` is the share of the weights that stays in the host's memory and is read over its link in each step.
    """

    bandwidth_bytes_per_s: int
    flops: int
    chips: int = 1
    offloaded: float = 0.0


def gpu_peaks(gpu: Accelerator, model: Model, *, count: int = 1, offloaded_bytes: int = 0) -> Peaks:
    """Peaks of GPUs for a checkpoint: weights in fp8 are multiplied in fp8, all others in bf16."""
    flops = gpu.fp8_flops if model.encoding == "fp8" else gpu.bf16_flops
    return Peaks(gpu.bandwidth_bytes_per_s, flops, count, offloaded_bytes / model.weight_bytes)


def tpu_peaks(tpu: TpuSlice) -> Peaks:
    """Peaks of a TPU slice, in bf16."""
    return Peaks(tpu.bandwidth_bytes_per_s, tpu.bf16_flops, tpu.chips)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected speed of one instance as (low, high) ranges, for `batch` users who each send one request after another.

    `step_seconds` is one decoding step of the whole batch, `prefill_seconds` the computation of one prompt.
    """

    prompt_tokens: int
    output_tokens: int
    batch: int
    ttft_seconds: Range
    step_seconds: Range
    prefill_seconds: Range
    tokens_per_second_alone: Range

    @property
    def context_tokens(self) -> int:
        """Context length at which decoding is computed: the prompt and half of the output."""
        return self.prompt_tokens + self.output_tokens // 2

    @property
    def tokens_per_second_batched(self) -> Range:
        """Output tokens a second while the whole batch decodes."""
        return self.batch / self.step_seconds[1], self.batch / self.step_seconds[0]

    @property
    def round_seconds(self) -> Range:
        """Duration of the whole batch, from its prompts to its last tokens.

        Slow: prompts are computed one after the other, with no decoding meanwhile. Fast: each prompt is computed in a
        step that reads weights for the others anyway, as far as there are enough steps and the step takes no longer.
        """
        fast, slow = (
            self.output_tokens * step + self.batch * prefill
            for step, prefill in zip(self.step_seconds, self.prefill_seconds, strict=True)
        )
        hidden = min(self.batch, self.output_tokens) * min(self.step_seconds[0], self.prefill_seconds[0])
        return fast - hidden, slow

    @property
    def tokens_per_second_served(self) -> Range:
        """Output tokens a second of the whole load, prompts included: the figure that a benchmark should measure."""
        fast, slow = self.round_seconds
        return self.batch * self.output_tokens / slow, self.batch * self.output_tokens / fast

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output, with the assumptions."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "ttft_seconds": round_range(self.ttft_seconds, 3),
            "output_tokens_per_second_alone": round_range(self.tokens_per_second_alone, 1),
            "output_tokens_per_second_batched": round_range(self.tokens_per_second_batched, 1),
            "output_tokens_per_second_served": round_range(self.tokens_per_second_served, 1),
            "batch": self.batch,
            "basis": (
                f"roofline; decoding at {percent(DECODE_EFFICIENCY)} of the memory bandwidth, "
                f"prompts at {percent(PREFILL_EFFICIENCY)} of the dense peak, {self.context_tokens} tokens of context, "
                "no speculative decoding"
            ),
        }


def estimate(
    model: Model,
    peaks: Peaks,
    *,
    prompt_tokens: int,
    output_tokens: int,
    batch: int,
    kv_element_bytes: int,
) -> Estimate:
    """Expected speed of one instance.

    Args:
        model: the checkpoint.
        peaks: peak rates of its accelerators.
        prompt_tokens: length of the prompts.
        output_tokens: length of the outputs; decoding is computed at half of it.
        batch: sequences that decode together.
        kv_element_bytes: bytes of one element of the KV cache.
    """
    context = prompt_tokens + output_tokens // 2
    prefill = prefill_seconds(model, peaks, prompt_tokens)
    alone, together = (
        step_seconds(model, peaks, sequences=size, context=context, kv_element_bytes=kv_element_bytes)
        for size in (1, batch)
    )
    return Estimate(
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        batch=batch,
        ttft_seconds=(
            max(prefill[0], alone[0]) + REQUEST_SECONDS[0],
            max(prefill[1], alone[1]) + REQUEST_SECONDS[1],
        ),
        step_seconds=together,
        prefill_seconds=prefill,
        tokens_per_second_alone=(1 / alone[1], 1 / alone[0]),
    )


def step_seconds(
    model: Model, peaks: Peaks, *, sequences: int, context: int, kv_element_bytes: int, tokens: int = 1
) -> Range:
    """Duration of a step in which each sequence gets `tokens` tokens (more than one where drafts are verified)."""
    caches = sequences * read_cache_bytes(model, context, element_bytes=kv_element_bytes, chips=peaks.chips)
    reading = weight_seconds(read_weight_bytes(model, sequences * tokens), peaks)
    reading += caches / peaks.chips / peaks.bandwidth_bytes_per_s
    work = token_flops(model.architecture) * sequences * tokens / peaks.flops / peaks.chips
    low, high = (reading / share for share in reversed(DECODE_EFFICIENCY))
    computing = work / PREFILL_EFFICIENCY[1]
    return max(low, computing) + STEP_SECONDS[0], max(high, computing) + STEP_SECONDS[1]


def weight_seconds(weight_bytes: float, peaks: Peaks) -> float:
    """Reading of weights at the full rates: those on the chips from their memory, the offloaded ones over the link."""
    weights = weight_bytes / peaks.chips
    return weights * (1 - peaks.offloaded) / peaks.bandwidth_bytes_per_s + (
        weights * peaks.offloaded / HOST_LINK_BYTES_PER_S
    )


def prefill_seconds(model: Model, peaks: Peaks, tokens: int) -> Range:
    """Computation of one prompt: that of its tokens, and the attention among them."""
    shape = model.architecture
    attention = sum(_attended_width(group, tokens) for group in shape.cache)
    work = tokens * (token_flops(shape) + 4 * shape.attention_heads * attention)
    low, high = (work / peaks.flops / peaks.chips / share for share in reversed(PREFILL_EFFICIENCY))
    return low, high


def _attended_width(group: Layers, tokens: int) -> float:
    """Numbers of one head that a token is multiplied with, on average over a prompt, in all layers of a group."""
    match group:
        case EncoderLayers():
            return group.count * group.head_dim * tokens
        case FullLayers() | SlidingLayers() | ChunkedLayers():
            return group.count * group.head_dim * min(tokens / 2, kept_tokens(group) or tokens)
        case LatentLayers() if not group.indexer:
            return group.count * group.width * min(tokens / 2, group.window or tokens)
    return 0


def token_flops(shape: Architecture) -> int:
    """Operations of one token without attention: two for each active parameter."""
    return 2 * shape.active_parameters


def read_cache_bytes(model: Model, context: int, *, element_bytes: int, chips: int) -> int:
    """Cache bytes that a step reads for one sequence, on all chips: heads that cannot be split are read by several."""
    return kv_bytes(model.architecture, context, element_bytes=element_bytes, shards=chips) * chips


def read_weight_bytes(model: Model, tokens: int) -> float:
    """Weight bytes that a step of `tokens` tokens reads: all, except experts that no token chose.

    The tied embedding is read whole. The per-layer embeddings are resident, but a step reads only one row of them for
    each token.
    """
    shape = model.architecture
    read = model.weight_bytes - _EMBEDDING_BYTES * shape.lookup_parameters
    if not shape.experts:
        return read
    tied = _EMBEDDING_BYTES * shape.vocabulary * shape.hidden_size
    parameters = shape.parameters - shape.embedding_parameters
    layers = shape.expert_layers or shape.layers
    experts = min(3 * layers * shape.experts * shape.hidden_size * shape.expert_intermediate_size, parameters)
    touched = 1 - (1 - shape.active_experts / shape.experts) ** tokens
    return tied + (read - tied) / parameters * (parameters - experts + experts * touched)


def verdict(expected: Range, measured: float) -> Verdict:
    """Place of a measured figure in a range. Outside the range, the machine or the load differs from the plan's.

    Ranges of rates are less than fourfold (slightly more only where a prompt takes as long as a step), so that a server
    twice as fast or as slow as one in the middle is outside.
    """
    if measured < expected[0]:
        return "below"
    return "above" if measured > expected[1] else "within"


def round_range(values: Range, digits: int) -> list[float]:
    """A range as rounded values for an output."""
    return [round(value, digits) for value in values]


def percent(values: Range) -> str:
    """A range of shares as text."""
    return f"{values[0]:.0%} to {values[1]:.0%}"
