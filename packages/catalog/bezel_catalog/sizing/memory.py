"""Memory fit on GPUs: weights, working memory and KV cache against each GPU, and the host's memory while it loads.

Owns which parts need memory on CUDA and how each is estimated; every estimated part is named in the output. Together
with bezel_catalog.sizing.tpu_memory there are three fitted constants in all. Leaves the cache's arithmetic to
bezel_catalog.sizing.kv_cache, TPUs to bezel_catalog.sizing.tpu_memory and speed to bezel_catalog.sizing.roofline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bezel_catalog.quantities import GIB, as_gib
from bezel_catalog.sizing.adapters import Adapters, adapter_bytes
from bezel_catalog.sizing.host_memory import HostOptions, HostPart, host_parts, layer_bytes
from bezel_catalog.sizing.kv_cache import KV_ELEMENT_BYTES, CachedStates, engine_kv_bytes

if TYPE_CHECKING:
    from bezel_catalog import Accelerator, Architecture, Model

NO_ADAPTERS = Adapters()
NO_HOST_OPTIONS = HostOptions()

# Fitted, since no part was measured separately. Counted once each for driver and CUDA context (held before vLLM reads
# the free memory), kernels with their workspaces, and captured graphs. It is the largest round figure with which the
# 31B w4a16 starts on an L4 with 5 GiB of its weights offloaded, as it did.
CUDA_PART_BYTES = int(0.5 * GIB)
# Fitted: host memory of vLLM's processes. 16 GiB were enough for 8.15 GB of weights loaded lazily or prefetched, and
# too little for eager loading, which leaves a range of 0.8 to 8.4 GiB.
HOST_BASE_BYTES = 4 * GIB
# Documented, not fitted: the hub libraries' default bound on the size of one safetensors file.
LARGEST_SHARD_BYTES = 5 * GIB

CUDA_SOURCE = "fitted to the 31B w4a16 on an L4"
MEMORY_BASIS = (
    "datasheet capacity in decimal GB; overhead estimated, not measured: "
    f"{CUDA_PART_BYTES / GIB:g} GiB each for context, kernels and graphs ({CUDA_SOURCE}), working memory by arithmetic"
)

Part = Literal["weights", "overhead", "KV cache", "sampling"]


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """The memory of each accelerator, part by part, in bytes; and that of the host while the weights load.

    `kv_start_bytes` is what vLLM requires to be free for one sequence of full length, at its start and when it admits a
    prompt: the window, and whole steps in flight. `kv_sequence_bytes` is what the sequence holds afterwards.
    `host_parts` is the host memory of the options that take any.
    """

    accelerator_bytes: int
    utilization: float
    weight_bytes: int
    draft_bytes: int
    offloaded_bytes: int
    activation_bytes: int
    fixed_bytes: int
    kv_sequence_bytes: int
    kv_start_bytes: int
    max_model_len: int
    max_num_seqs: int
    host_bytes: int
    host_needed_bytes: int
    adapter_bytes: int = 0
    host_parts: tuple[HostPart, ...] = ()
    host_not_checked: tuple[str, ...] = ()

    @property
    def budget_bytes(self) -> int:
        """Memory of the accelerator that vLLM may use."""
        return int(self.accelerator_bytes * self.utilization)

    @property
    def resident_bytes(self) -> int:
        """All memory except the cache."""
        return self.loaded_bytes + self.activation_bytes + self.fixed_bytes

    @property
    def loaded_bytes(self) -> int:
        """Memory loaded and reserved before the first step: weights, drafts, room for adapters."""
        return self.weight_bytes - self.offloaded_bytes + self.draft_bytes + self.adapter_bytes

    @property
    def kv_available_bytes(self) -> int:
        """Memory left for the cache; negative where the rest alone does not fit."""
        return self.budget_bytes - self.resident_bytes

    @property
    def keeps_cache(self) -> bool:
        """Whether sequences keep anything between steps; those of an encoder do not, and vLLM then makes no cache."""
        return self.kv_sequence_bytes > 0

    @property
    def full_context_sequences(self) -> int:
        """Number of sequences of max-model-len that the cache holds at a time; the last one must still be admitted."""
        if not self.starts:
            return 0
        if not self.keeps_cache:
            return self.max_num_seqs
        return 1 + (self.kv_available_bytes - self.kv_start_bytes) // self.kv_sequence_bytes

    @property
    def reported_concurrency(self) -> float:
        """The "maximum concurrency" that vLLM logs at its start: as if every sequence were just being admitted.

        0 for a model that keeps nothing: vLLM logs none.
        """
        return max(0.0, self.kv_available_bytes / self.kv_start_bytes) if self.kv_start_bytes else 0.0

    @property
    def starts(self) -> bool:
        """Whether vLLM's own check passes: one sequence of full length fits."""
        return self.kv_available_bytes >= self.kv_start_bytes

    @property
    def breaks(self) -> Part | None:
        """The part that exceeds the memory, added in the order in which vLLM allocates them; None where all fit."""
        if self.loaded_bytes > self.budget_bytes:
            return "weights"
        if self.kv_available_bytes <= 0:
            return "overhead"
        return None if self.starts else "KV cache"

    @property
    def _options_gib(self) -> dict[str, float]:
        return {part.option: as_gib(part.needed_bytes) for part in self.host_parts}

    @property
    def _cache_output(self) -> dict[str, object]:
        if not self.keeps_cache:
            return {"unused_gib": as_gib(self.kv_available_bytes)}
        return {
            "kv_cache_gib": as_gib(self.kv_available_bytes),
            "kv_gib_per_full_context_sequence": as_gib(self.kv_sequence_bytes),
            "vllm_reported_concurrency": round(self.reported_concurrency, 2),
        }

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output; names that end in `gib` are in GiB."""
        return {
            "accelerator_gib": as_gib(self.accelerator_bytes),
            "budget_gib": as_gib(self.budget_bytes),
            "weights_gib": as_gib(self.weight_bytes - self.offloaded_bytes),
            "draft_gib": as_gib(self.draft_bytes),
            **({"adapters_gib": as_gib(self.adapter_bytes)} if self.adapter_bytes else {}),
            "offloaded_gib": as_gib(self.offloaded_bytes),
            "overhead_gib": as_gib(self.activation_bytes + self.fixed_bytes),
            "working_memory_gib": as_gib(self.activation_bytes),
            "context_kernels_graphs_gib": as_gib(self.fixed_bytes),
            **self._cache_output,
            "full_context_sequences": self.full_context_sequences,
            "max_model_len": self.max_model_len,
            "max_num_seqs": self.max_num_seqs,
            "host_gib": as_gib(self.host_bytes),
            "host_needed_gib": as_gib(self.host_needed_bytes),
            **({"host_options_gib": self._options_gib} if self.host_parts else {}),
            **({"host_not_checked": list(self.host_not_checked)} if self.host_not_checked else {}),
            "basis": MEMORY_BASIS,
        }


def memory_fit(
    model: Model,
    accelerator: Accelerator,
    *,
    utilization: float,
    max_model_len: int,
    max_num_seqs: int,
    max_num_batched_tokens: int,
    kv_cache_dtype: str,
    memory_gib: int,
    load_strategy: str,
    load_buffer_bytes: int | None = None,
    speculative: bool = False,
    enforce_eager: bool = False,
    async_scheduling: bool = True,
    cpu_offload_gib: float = 0,
    adapters: Adapters = NO_ADAPTERS,
    host: HostOptions = NO_HOST_OPTIONS,
    states: CachedStates | None = None,
    shards: int = 1,
) -> MemoryFit:
    """The memory of one instance, for each of its GPUs.

    Args:
        model: the checkpoint.
        accelerator: one GPU of the instance.
        utilization: gpu-memory-utilization.
        max_model_len: tokens.
        max_num_seqs: sequences in one batch.
        max_num_batched_tokens: tokens in one step.
        kv_cache_dtype: a key of KV_ELEMENT_BYTES.
        memory_gib: memory of the host.
        load_strategy: of safetensors (lazy, prefetch or eager), "stream" or "download".
        load_buffer_bytes: buffer of a streamer, None for all weights.
        speculative: whether the assistant is loaded beside the model.
        enforce_eager: whether no CUDA graphs are captured.
        async_scheduling: whether two steps overlap, as they do unless it is switched off.
        cpu_offload_gib: weights held in the host's memory, for each GPU.
        adapters: LoRA adapters that memory is reserved for.
        host: what the options ask of the host's memory.
        states: what the states of a sequence depend on; None for vLLM's defaults.
        shards: GPUs that share the model (tensor parallelism).
    """
    shape, element = model.architecture, KV_ELEMENT_BYTES[kv_cache_dtype]
    weights = -(-model.weight_bytes // shards)
    offloaded = min(max(0, int(cpu_offload_gib * GIB)), weights)
    parts = host_parts(model, host, offloaded_bytes=offloaded, shards=shards)
    if host.groups:
        # The GPU keeps buffers for the layers that are fetched ahead: one of each kind, sliding and full.
        moved = max(0, host.groups.count(shape.layers) - 2 * host.groups.ahead)
        offloaded = moved * layer_bytes(model, shards)
    draft = model.assistant_bytes if speculative else 0
    files = model.weight_bytes + (draft if load_strategy == "download" else 0)  # they stay as long as the instance
    # With asynchronous scheduling a second step starts before the first is completed.
    in_flight = max_num_batched_tokens * (2 if async_scheduling else 1)

    def cache(scheduled: int) -> int:
        return engine_kv_bytes(
            shape, max_model_len, element_bytes=element, in_flight=scheduled, shards=shards, states=states
        )

    return MemoryFit(
        accelerator_bytes=accelerator.memory_bytes,
        utilization=utilization,
        weight_bytes=weights,
        draft_bytes=draft,
        offloaded_bytes=offloaded,
        activation_bytes=activation_bytes(shape, tokens=max_num_batched_tokens, sequences=max_num_seqs, shards=shards),
        fixed_bytes=CUDA_PART_BYTES * (2 if enforce_eager else 3),
        kv_sequence_bytes=cache(1),
        kv_start_bytes=cache(in_flight),
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        host_bytes=memory_gib * GIB,
        host_needed_bytes=max(
            host_loading_bytes(files, strategy=load_strategy, buffer_bytes=load_buffer_bytes)
            + sum(part.needed_bytes for part in parts if part.loading),
            # In service the page cache is given back; downloaded files stay.
            HOST_BASE_BYTES + (files if load_strategy == "download" else 0) + sum(part.needed_bytes for part in parts),
        ),
        host_parts=parts,
        host_not_checked=host.not_checked,
        adapter_bytes=adapter_bytes(shape, adapters, shards=shards),
    )


def activation_bytes(shape: Architecture, *, tokens: int, sequences: int, shards: int = 1) -> int:
    """Peak working memory of one step in bytes: the widest MLP of a layer, the residuals, the logits in float32.

    Arithmetic: the tensors that are alive at once. The MLP is split over the devices; each device holds the residuals
    and the logits, which are gathered before sampling.
    """
    mlp = 3 * (shape.intermediate_size + shape.active_experts * shape.expert_intermediate_size) // shards
    return tokens * (mlp + 4 * shape.hidden_size) * 2 + logits_bytes(shape, sequences=sequences)


def logits_bytes(shape: Architecture, *, sequences: int) -> int:
    """Logits of a batch over the vocabulary: in float32, twice during sampling."""
    return sequences * shape.vocabulary * 4 * 2


def sequences_at_a_time(fit: MemoryFit, model: Model, tokens: int, *, kv_cache_dtype: str, shards: int = 1) -> int:
    """Number of sequences of a length that decode together: as many as the cache holds, at most max-num-seqs."""
    sequence_bytes = engine_kv_bytes(
        model.architecture, tokens, element_bytes=KV_ELEMENT_BYTES[kv_cache_dtype], in_flight=1, shards=shards
    )
    if not sequence_bytes:
        return fit.max_num_seqs
    return max(0, min(fit.max_num_seqs, fit.kv_available_bytes // sequence_bytes))


def host_loading_bytes(weight_bytes: int, *, strategy: str, buffer_bytes: int | None = None) -> int:
    """Host memory needed while the weights load.

    "eager" holds each file beside its tensors, "prefetch" fills the page cache (which counts against the container)
    with all files, "lazy" maps one file after the other. "stream" holds a buffer of at most `buffer_bytes` and the
    tensor copied out of it, "download" all files, since Cloud Run's disk is memory.
    """
    if strategy == "stream" and buffer_bytes is not None:
        return HOST_BASE_BYTES + min(weight_bytes, buffer_bytes + LARGEST_SHARD_BYTES)
    if strategy in ("stream", "download"):
        return HOST_BASE_BYTES + weight_bytes
    if strategy == "eager":
        return HOST_BASE_BYTES + 2 * weight_bytes
    if strategy == "prefetch":
        return HOST_BASE_BYTES + weight_bytes
    return HOST_BASE_BYTES + min(weight_bytes, LARGEST_SHARD_BYTES)
