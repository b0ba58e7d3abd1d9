"""Roofline model of a step's duration: the larger of arithmetic and memory traffic, plus overhead.

Prefill is bound by arithmetic (2 FLOP per active parameter and token, plus attention), decode by memory (all weights
that the batch touches once, plus every sequence's KV cache). The attainable shares of the peak rates are parameters of
`hardware.toml`; they are localcloud's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_simulated_vllm.configuration.kv_layout import bytes_per_element

if TYPE_CHECKING:
    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint
    from bezel_simulated_vllm.configuration.hardware import Accelerator
    from bezel_simulated_vllm.configuration.speculation import Speculation

# A drafting pass is small and launches fewer kernels than a step of the model.
_DRAFT_OVERHEAD = 0.3


@dataclass
class Load:
    """The work of one step.

    Attributes:
        tokens: tokens that pass through the weights, drafted ones included.
        attention_flops: floating-point operations of the attention itself.
        kv_bytes: bytes of KV cache read.
        drafting: whether the draft model runs after the step.
        sequences: number of sequences of these tokens.
    """

    tokens: int = 0
    attention_flops: float = 0.0
    kv_bytes: float = 0.0
    drafting: bool = False
    sequences: int = 0


class Roofline:
    """Times steps of one model on one accelerator (or several that share it by tensor parallelism)."""

    def __init__(
        self,
        model: Checkpoint,
        chip: Accelerator,
        *,
        kv_cache_dtype: str,
        tensor_parallel: int = 1,
        speculation: Speculation | None = None,
        offloaded: int = 0,
    ) -> None:
        self._model = model
        self._offloaded = offloaded * tensor_parallel / model.weight_bytes
        self._host_link = chip.host_bytes_per_second * tensor_parallel
        self._flops = chip.flops_per_second * chip.compute_efficiency * tensor_parallel
        self._bandwidth = chip.memory_bytes_per_second * chip.memory_efficiency * tensor_parallel
        self._overhead = chip.step_overhead_seconds
        self._sequence_overhead = chip.sequence_overhead_seconds
        self._element = bytes_per_element("auto" if chip.xla else kv_cache_dtype)
        self._speculation = speculation

    def add(self, load: Load, *, computed: int, new: int) -> None:
        """Add `new` tokens of a sequence that has `computed` tokens in the cache."""
        model = self._model
        end = computed + new
        load.tokens += new
        load.sequences += 1
        load.kv_bytes += model.kv_bytes_read(end, self._element)
        context = (computed + end) / 2
        sliding_layers, full_layers = model.attending_layers
        full = full_layers * model.full_head_dim * context
        sliding = sliding_layers * model.sliding_head_dim * min(context, model.window)
        load.attention_flops += 4.0 * new * model.attention_heads * (full + sliding)

    def seconds(self, load: Load) -> float:
        """Return the seconds that the step takes."""
        arithmetic = (2 * self._model.active_parameters * load.tokens + load.attention_flops) / self._flops
        touched = self._weights_touched(load.tokens)
        traffic = (touched * (1 - self._offloaded) + load.kv_bytes) / self._bandwidth
        traffic += touched * self._offloaded / self._host_link
        overhead = self._overhead + self._sequence_overhead * load.sequences
        return max(arithmetic, traffic) + overhead + self._drafting(load)

    def _weights_touched(self, tokens: int) -> float:
        """Return the bytes of weights read: more experts for a larger batch, a dense model and the embedding whole."""
        share, whole = self._model.active_fraction, 2 * self._model.vocabulary * self._model.hidden_size
        return whole + (self._model.step_weight_bytes - whole) * (1 - (1 - share) ** tokens)

    def _drafting(self, load: Load) -> float:
        if not load.drafting or not self._speculation or not self._speculation.draft:
            return 0.0
        draft = self._speculation.draft.weight_bytes / self._bandwidth
        return self._speculation.tokens * (draft + _DRAFT_OVERHEAD * self._overhead)
