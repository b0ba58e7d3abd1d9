"""Memory fit on a TPU slice with tpu-inference's layout, part by part over all chips.

Owns the cache without a window: sliding layers hold the full length there, a head that does not divide by the chips is
copied to each, and fp8 saves nothing on v6e. Leaves GPUs to bezel_catalog.sizing.memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bezel_catalog.quantities import GIB, as_gib
from bezel_catalog.sizing.kv_cache import layers_bytes
from bezel_catalog.sizing.memory import Part, logits_bytes

if TYPE_CHECKING:
    from bezel_catalog import Architecture, Model, TpuSlice

# Fitted: 26.01 GiB were in use on a v6e-4 before the cache of the 12B, whose bf16 weights are 24 GB: compiled programs,
# activations and copies, over all chips. With the same figure the 12B boots at 8192 tokens on one chip, as observed.
TPU_OVERHEAD_BYTES = int(26.01 * GIB) - 24_000_000_000
# v6e has no native fp8: with kv-cache-dtype fp8 the cache was as large as without (measured twice, 1.000x).
KV_ELEMENT_BYTES = 2
DEFAULT_UTILIZATION = 0.92
WITHOUT_CACHE_BASIS = (
    f"usable memory of a chip as measured; overhead {TPU_OVERHEAD_BYTES / GIB:.2f} GiB over all chips (fitted to the "
    "12B on a v6e-4)"
)
TPU_MEMORY_BASIS = (
    f"{WITHOUT_CACHE_BASIS}; sliding layers at full length, 2 bytes an element whatever kv-cache-dtype says"
)


@dataclass(frozen=True, slots=True)
class TpuFit:
    """The memory of a slice, part by part, in bytes over all its chips; `kv_token_bytes` for one token.

    `sampling_bytes` is the memory of a whole batch's logits on each chip. It is not part of the budget, and must fit
    into what the utilization leaves of the chip.
    """

    chips: int
    slice_bytes: int
    utilization: float
    weight_bytes: int
    overhead_bytes: int
    kv_token_bytes: int
    sampling_bytes: int
    max_model_len: int
    max_num_seqs: int
    draft_bytes: ClassVar = 0
    offloaded_bytes: ClassVar = 0

    @property
    def budget_bytes(self) -> int:
        """Memory that vLLM may use."""
        return int(self.slice_bytes * self.utilization)

    @property
    def resident_bytes(self) -> int:
        """All memory except the cache."""
        return self.weight_bytes + self.overhead_bytes

    @property
    def kv_available_bytes(self) -> int:
        """Memory left for the cache; negative where the rest alone does not fit."""
        return self.budget_bytes - self.resident_bytes

    @property
    def kv_tokens(self) -> int:
        """Tokens that the cache holds, as the server reports them; without a cache as many as run at a time."""
        if not self.kv_token_bytes:
            return self.max_model_len * self.max_num_seqs
        return max(0, self.kv_available_bytes // self.kv_token_bytes)

    @property
    def starts(self) -> bool:
        """Whether one sequence of full length fits, and the logits of a batch beside the budget."""
        return self.breaks is None

    @property
    def full_context_sequences(self) -> int:
        """Number of sequences of max-model-len that the cache holds at a time."""
        return self.kv_tokens // self.max_model_len if self.starts else 0

    @property
    def breaks(self) -> Part | None:
        """The part that exceeds the memory; None where all fit."""
        if self.weight_bytes > self.budget_bytes:
            return "weights"
        if self.kv_available_bytes <= 0:
            return "overhead"
        if self.kv_tokens < self.max_model_len:
            return "KV cache"
        left = (self.slice_bytes - self.budget_bytes) // self.chips
        return "sampling" if self.sampling_bytes > left else None

    @property
    def keeps_cache(self) -> bool:
        """Whether sequences keep anything between steps; those of an encoder do not."""
        return self.kv_token_bytes > 0

    @property
    def _cache_output(self) -> dict[str, object]:
        if not self.keeps_cache:
            return {"unused_gib": as_gib(self.kv_available_bytes)}
        return {
            "kv_cache_gib": as_gib(self.kv_available_bytes),
            "kv_tokens": self.kv_tokens,
            "kv_token_bytes": self.kv_token_bytes,
        }

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output, in GiB over all chips."""
        return {
            "chips": self.chips,
            "slice_gib": as_gib(self.slice_bytes),
            "budget_gib": as_gib(self.budget_bytes),
            "weights_gib": as_gib(self.weight_bytes),
            "overhead_gib": as_gib(self.overhead_bytes),
            **self._cache_output,
            "full_context_sequences": self.full_context_sequences,
            "max_model_len": self.max_model_len,
            "max_num_seqs": self.max_num_seqs,
            "basis": TPU_MEMORY_BASIS if self.keeps_cache else WITHOUT_CACHE_BASIS,
        }

    def sequences_at_a_time(self, tokens: int) -> int:
        """Number of sequences of a length that decode together: as many as the cache holds, at most max-num-seqs."""
        return min(self.max_num_seqs, self.kv_tokens // tokens)


def tpu_memory_fit(
    model: Model,
    tpu: TpuSlice,
    *,
    max_model_len: int,
    max_num_seqs: int,
    utilization: float = DEFAULT_UTILIZATION,
) -> TpuFit:
    """The memory of a slice whose chips share the model.

    Args:
        model: the checkpoint.
        tpu: the slice.
        max_model_len: tokens.
        max_num_seqs: sequences in one batch.
        utilization: share of the memory that vLLM may use.
    """
    return TpuFit(
        chips=tpu.chips,
        slice_bytes=tpu.chips * tpu.memory_bytes,
        utilization=utilization,
        weight_bytes=model.weight_bytes,
        overhead_bytes=TPU_OVERHEAD_BYTES,
        kv_token_bytes=tpu_token_bytes(model.architecture, chips=tpu.chips),
        sampling_bytes=logits_bytes(model.architecture, sequences=max_num_seqs),
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
    )


def tpu_token_bytes(shape: Architecture, *, chips: int) -> int:
    """Cache bytes of one token over all chips, copies of heads included."""
    return chips * layers_bytes(shape, 1, 1, element_bytes=KV_ELEMENT_BYTES, shards=chips)
