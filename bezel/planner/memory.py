"""Whether a model fits: weights, working memory and KV cache against the accelerator; the host while it loads.

Owns the model of the cache (window-aware, as vLLM's hybrid cache manager keeps it on CUDA) and the estimates of
what else needs memory. Every estimated part is named in the output. Leaves speed to bezel.planner.roofline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel.catalog import Accelerator, Architecture, Model

GIB = 1024**3
BLOCK_TOKENS = 16

# Not measured on these GPUs; chosen on the careful side and stated in the output.
FIXED_OVERHEAD_BYTES = int(1.0 * GIB)  # CUDA context, compiled kernels, workspaces, the vision tower's profile run
GRAPH_BYTES = int(0.5 * GIB)  # captured CUDA graphs; none with enforce-eager
START_RESERVE_BYTES = int(0.5 * GIB)  # what driver and CUDA context hold before vLLM looks at the free memory
HOST_BASE_BYTES = 4 * GIB  # Python, torch and CUDA libraries of the API server and the engine process
LARGEST_SHARD_BYTES = 5 * GIB  # the hub's usual bound on one file

# Bytes of one element of the cache. Formats whose scales were never measured are left out, not guessed.
KV_ELEMENT_BYTES = {
    "auto": 2,
    "bfloat16": 2,
    "float16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_inc": 1,
}


def kv_bytes(shape: Architecture, tokens: int, *, element_bytes: int) -> int:
    """Bytes of the KV cache of one sequence, by the published shape alone.

    2 (K and V) x element x [sliding layers x heads x dim x min(n, window) + full layers x heads x dim x n].

    Args:
        shape: the model's architecture.
        tokens: length of the sequence.
        element_bytes: bytes of one element.
    """
    return _layers_bytes(shape, min(tokens, shape.window), tokens, element_bytes)


def engine_kv_bytes(
    shape: Architecture, tokens: int, *, element_bytes: int, in_flight: int, block_tokens: int = BLOCK_TOKENS
) -> int:
    """Bytes that vLLM's hybrid cache sets aside for one sequence.

    Sliding layers hold the window and the tokens of steps that are still in flight, and one block more, because the
    window rarely begins with a block. Pages of both kinds of layers are of one size: the kind with the smaller token
    gets longer blocks.

    Args:
        shape: the model's architecture.
        tokens: length of the sequence.
        element_bytes: bytes of one element.
        in_flight: tokens scheduled and not yet settled; 1 while decoding.
        block_tokens: the backend's block.
    """
    sliding_token = shape.sliding_kv_heads * shape.sliding_head_dim
    full_token = shape.full_kv_heads * shape.full_head_dim
    sliding_block = block_tokens * max(1, full_token // sliding_token)
    full_block = block_tokens * max(1, sliding_token // full_token)
    kept = min(shape.window - 1 + in_flight, tokens)
    return _layers_bytes(
        shape, (-(-kept // sliding_block) + 1) * sliding_block, -(-tokens // full_block) * full_block, element_bytes
    )


def _layers_bytes(shape: Architecture, sliding_tokens: int, full_tokens: int, element_bytes: int) -> int:
    sliding = shape.sliding_layers * shape.sliding_kv_heads * shape.sliding_head_dim * sliding_tokens
    full = shape.full_layers * shape.full_kv_heads * shape.full_head_dim * full_tokens
    return 2 * element_bytes * (sliding + full)


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """The accelerator's memory, part by part, in bytes; the host's while the weights pass through it.

    `kv_start_bytes` is what vLLM wants free for one sequence of full length, at the start and when it lets a prompt
    in: the window, and on top of it whole steps in flight. `kv_sequence_bytes` is what the sequence holds afterwards.
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

    @property
    def budget_bytes(self) -> int:
        """What vLLM may use of the accelerator."""
        return int(self.accelerator_bytes * self.utilization)

    @property
    def resident_bytes(self) -> int:
        """Everything but the cache."""
        return self.weight_bytes - self.offloaded_bytes + self.draft_bytes + self.activation_bytes + self.fixed_bytes

    @property
    def kv_available_bytes(self) -> int:
        """What is left for the cache; negative where the rest does not even fit."""
        return self.budget_bytes - self.resident_bytes

    @property
    def full_context_sequences(self) -> int:
        """How many sequences of max-model-len the cache holds at a time; the last one must still be let in."""
        if not self.starts:
            return 0
        return 1 + (self.kv_available_bytes - self.kv_start_bytes) // self.kv_sequence_bytes

    @property
    def reported_concurrency(self) -> float:
        """The "maximum concurrency" that vLLM logs at its start: as if every sequence were just being let in."""
        return max(0.0, self.kv_available_bytes / self.kv_start_bytes)

    @property
    def starts(self) -> bool:
        """Whether vLLM's own check passes: one sequence of full length fits."""
        return self.kv_available_bytes >= self.kv_start_bytes

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output, GiB where the name says so."""
        return {
            "accelerator_gib": _gib(self.accelerator_bytes),
            "budget_gib": _gib(self.budget_bytes),
            "weights_gib": _gib(self.weight_bytes - self.offloaded_bytes),
            "draft_gib": _gib(self.draft_bytes),
            "overhead_gib": _gib(self.activation_bytes + self.fixed_bytes),
            "kv_cache_gib": _gib(self.kv_available_bytes),
            "kv_gib_per_full_context_sequence": _gib(self.kv_sequence_bytes),
            "full_context_sequences": self.full_context_sequences,
            "vllm_reported_concurrency": round(self.reported_concurrency, 2),
            "max_model_len": self.max_model_len,
            "max_num_seqs": self.max_num_seqs,
            "host_gib": _gib(self.host_bytes),
            "host_needed_gib": _gib(self.host_needed_bytes),
            "basis": "datasheet capacity in decimal GB; overhead estimated, not measured",
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
    speculative: bool = False,
    enforce_eager: bool = False,
    async_scheduling: bool = True,
    cpu_offload_gib: float = 0,
) -> MemoryFit:
    """The memory of one instance.

    Args:
        model: the checkpoint.
        accelerator: one GPU of the instance.
        utilization: gpu-memory-utilization.
        max_model_len: tokens.
        max_num_seqs: sequences in one batch.
        max_num_batched_tokens: tokens in one step.
        kv_cache_dtype: a key of KV_ELEMENT_BYTES.
        memory_gib: memory of the host.
        load_strategy: of safetensors: lazy, prefetch or eager.
        speculative: whether the assistant is loaded beside the model.
        enforce_eager: whether no CUDA graphs are captured.
        async_scheduling: whether two steps overlap, as they do unless it is switched off.
        cpu_offload_gib: weights kept in the host's memory.
    """
    shape, element = model.architecture, KV_ELEMENT_BYTES[kv_cache_dtype]
    offloaded = min(max(0, int(cpu_offload_gib * GIB)), model.weight_bytes)
    # With asynchronous scheduling a second step is under way before the first is settled.
    in_flight = max_num_batched_tokens * (2 if async_scheduling else 1)
    return MemoryFit(
        accelerator_bytes=accelerator.memory_bytes,
        utilization=utilization,
        weight_bytes=model.weight_bytes,
        draft_bytes=model.assistant_bytes if speculative else 0,
        offloaded_bytes=offloaded,
        activation_bytes=activation_bytes(shape, tokens=max_num_batched_tokens, sequences=max_num_seqs),
        fixed_bytes=FIXED_OVERHEAD_BYTES + (0 if enforce_eager else GRAPH_BYTES),
        kv_sequence_bytes=engine_kv_bytes(shape, max_model_len, element_bytes=element, in_flight=1),
        kv_start_bytes=engine_kv_bytes(shape, max_model_len, element_bytes=element, in_flight=in_flight),
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        host_bytes=memory_gib * GIB,
        host_needed_bytes=host_loading_bytes(model.weight_bytes, strategy=load_strategy) + offloaded,
    )


def activation_bytes(shape: Architecture, *, tokens: int, sequences: int) -> int:
    """Peak of one step's working memory in bytes: the widest MLP of a layer, the residuals, the logits in float32."""
    mlp = 3 * (shape.intermediate_size + shape.active_experts * shape.expert_intermediate_size)
    return tokens * (mlp + 4 * shape.hidden_size) * 2 + sequences * shape.vocabulary * 4 * 2


def host_loading_bytes(weight_bytes: int, *, strategy: str) -> int:
    """Host memory while weights load.

    "eager" holds each file beside the tensors made from it, "prefetch" fills the page cache (which counts against the
    container) with all files, "lazy" maps one file after the other.
    """
    if strategy == "eager":
        return HOST_BASE_BYTES + 2 * weight_bytes
    if strategy == "prefetch":
        return HOST_BASE_BYTES + weight_bytes
    return HOST_BASE_BYTES + min(weight_bytes, LARGEST_SHARD_BYTES)


def _gib(number: int) -> float:
    return round(number / GIB, 2)
