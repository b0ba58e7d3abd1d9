"""Memory of a server: weights, activations and KV cache on the accelerator, the loader's buffers in host memory.

Refuses as the real engine does, in its order: host memory while loading, the accelerator's memory for the weights,
then the remaining cache. Leaves the lengths and blocks to `kv_layout.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_simulated_vllm.configuration.failures import refusal
from bezel_simulated_vllm.configuration.hardware import GIB
from bezel_simulated_vllm.configuration.kv_layout import KvLayout, kv_layout, unwindowed_layout

if TYPE_CHECKING:
    import argparse

    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint
    from bezel_simulated_vllm.configuration.hardware import SimulatedMachine

# Resident size of the API process and the engine's process with PyTorch and its libraries.
HOST_BASE_GIB = 5.2


@dataclass(frozen=True)
class MemoryUse:
    """The use of one accelerator's memory, in bytes, and the capacity of the cache.

    Attributes:
        weights: model and, where there is one, assistant, without the offloaded weights.
        offloaded: weights that stay in host memory and are read from there in each step.
        available: memory left for the cache.
        blocks: blocks in the cache's pool.
        concurrency: number of requests of the longest length that fit at once.
        tokens: the capacity that the server reports: concurrency x max-model-len.
        max_model_len: the requested length, or the longest that fits where -1 was requested.
        host_peak: peak of host memory while loading.
    """

    weights: int
    offloaded: int
    activations: int
    available: int
    layout: KvLayout
    blocks: int
    concurrency: float
    tokens: int
    max_model_len: int
    host_peak: int


def memory_use(
    options: argparse.Namespace,
    model: Checkpoint,
    machine: SimulatedMachine,
    *,
    loader_bytes: int,
    utilization: float,
    max_model_len: int,
    in_flight_tokens: int,
    batched_tokens: int,
    draft: Checkpoint | None,
) -> MemoryUse:
    """Return the memory use of a model on a machine.

    Raises:
        StartError: it does not fit; stage "host-memory" or "engine", with the engine's text.
    """
    tensor_parallel = int(options.tensor_parallel_size)
    # Memory is reserved for the ranks of all adapters.
    lora_ranks = options.max_loras * options.max_lora_rank if options.enable_lora else 0
    chip = machine.accelerator
    offloaded = min(int(options.cpu_offload_gb * GIB), model.weight_bytes // tensor_parallel)
    weights = (model.weight_bytes + (draft.weight_bytes if draft else 0)) // tensor_parallel - offloaded
    weights += _lora_buffers(model, tensor_parallel) * lora_ranks
    if chip.xla:
        weights = int(weights * chip.xla.resident_per_weight)
    pinned = int(offloaded * tensor_parallel * _pinned_share(model))
    # The weights are loaded before the KV cache in host memory is mapped, page by page, at the start.
    beside = max(loader_bytes, int((options.kv_offloading_size or 0) * GIB))
    host_peak = int(HOST_BASE_GIB * GIB) + beside + pinned
    if host_peak > machine.memory_gib * GIB:
        raise refusal("host-memory", peak=host_peak / GIB, limit=machine.memory_gib)
    total = chip.memory_gib * GIB
    runtime = chip.runtime_gib * GIB
    if weights + runtime > total and chip.xla:
        raise refusal("tpu-memory", size=weights / GIB, free=max(0.0, total) / GIB)
    if weights + runtime > total:
        piece, used = min(weights, 256 << 20), (total - runtime) / GIB
        mib = 1 << 20
        raise refusal("weights-too-large", piece=piece / mib, total=total / GIB, free=(piece >> 1) / mib, used=used)
    activations = (chip.activation_gib + chip.activation_gib_per_1k_tokens * batched_tokens / 1024) * GIB
    available = options.kv_cache_memory_bytes or int(total * utilization - weights - runtime - activations)
    if chip.xla:
        layout = unwindowed_layout(model, tensor_parallel=tensor_parallel, block=chip.xla.page_tokens)
    else:
        layout = kv_layout(
            model, dtype=options.kv_cache_dtype, in_flight_tokens=in_flight_tokens, tensor_parallel=tensor_parallel
        )
    if available <= 0:
        raise refusal("no-cache-memory")
    blocks = options.num_gpu_blocks_override or available // layout.block_bytes if layout.block_bytes else 1
    longest = layout.longest(blocks, model.context if max_model_len < 0 else max_model_len)
    if max_model_len < 0:
        max_model_len = longest
    needed = layout.max_blocks(max_model_len)
    if needed > blocks or not max_model_len:
        estimate = f"Based on the available memory, the estimated maximum model length is {longest}. "
        raise refusal(
            "cache-too-small",
            length=max_model_len,
            needed=needed * layout.block_bytes / GIB,
            available=available / GIB,
            estimate=estimate if longest else "",
        )
    return MemoryUse(
        weights=weights,
        offloaded=offloaded,
        activations=int(activations),
        available=available,
        layout=layout,
        blocks=blocks,
        concurrency=blocks / needed if needed else 0.0,
        tokens=int(blocks / needed * max_model_len) if needed else 0,
        max_model_len=max_model_len,
        host_peak=host_peak,
    )


def _pinned_share(model: Checkpoint) -> float:
    """Return pinned bytes per byte of an offloaded layer: each tensor gets the next power of two.

    Packed weights are smaller by a power of two, so the share is that of 16-bit weights.
    """
    sizes = []
    for layers, head_dim, kv_heads in (
        (model.attending_layers[0], model.sliding_head_dim, model.sliding_kv_heads),
        (model.attending_layers[1], model.full_head_dim, model.full_kv_heads),
    ):
        queries = model.attention_heads * head_dim
        tensors = [queries + 2 * kv_heads * head_dim, queries, 2 * model.mlp_sizes[0], model.mlp_sizes[0]]
        if model.experts:
            inner = sum(model.mlp_sizes[1:])
            tensors += [2 * inner, inner]  # all experts are one tensor
        sizes += [2 * model.hidden_size * rows for rows in tensors if rows] * layers
    return sum(1 << (size - 1).bit_length() for size in sizes) / sum(sizes) if sizes else 1.0


def _lora_buffers(model: Checkpoint, parallel: int) -> int:
    """Return the bytes of one rank for all linear layers; row-split layers divide the inputs, others the outputs."""
    sliding, full = model.attending_layers
    shapes: list[tuple[int, int, bool]] = []
    for layers, head_dim, kv_heads in (
        (sliding, model.sliding_head_dim, model.sliding_kv_heads),
        (full, model.full_head_dim, model.full_kv_heads),
    ):
        queries = model.attention_heads * head_dim
        projections = [(model.hidden_size, out, True) for out in (queries, kv_heads * head_dim, kv_heads * head_dim)]
        projections.append((queries, model.hidden_size, False))
        for size in model.mlp_sizes:
            projections += [(model.hidden_size, size, True)] * 2 + [(size, model.hidden_size, False)]
        shapes += projections * layers
    return 2 * sum(
        (inputs + outputs // parallel) if by_columns else (inputs // parallel + outputs)
        for inputs, outputs, by_columns in shapes
    )
