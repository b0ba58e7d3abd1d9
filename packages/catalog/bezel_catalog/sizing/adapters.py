"""Memory of LoRA adapters, which vLLM reserves at its start, whether any is loaded or not.

Arithmetic: for each adapter two 16-bit matrices beside every linear layer of the language model. Compared with the
buffers of vLLM 0.32.0 with a tiny Gemma 4, 8 adapters of rank 64: 2,293,760 bytes in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_catalog.architectures.layers import AttentionLayers
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bezel_catalog import Architecture

# vLLM's own defaults.
_LORAS, _RANK = 1, 16


@dataclass(frozen=True, slots=True)
class Adapters:
    """Number of adapters served at a time, and their largest rank; both are 0 without LoRA."""

    count: int = 0
    rank: int = 0


def read_adapters(values: Mapping[str, Any]) -> Adapters:
    """The adapters that the options request; `values` are typed, by option name."""
    if values.get("enable-lora") is not True:
        return Adapters()
    count, rank = integer(values, "max-loras", _LORAS), integer(values, "max-lora-rank", _RANK)
    return Adapters(max(0, count or 0), max(0, rank or 0))


def adapter_bytes(shape: Architecture, adapters: Adapters, *, shards: int = 1) -> int:
    """Bytes on each device. One matrix of each pair is split over the devices, as its layer is.

    Counted are the linear layers of attention, those of layers that share a cache included, and of the MLPs; those of
    a state or of compressed vectors are not.
    """
    hidden, heads = shape.hidden_size, shape.attention_heads
    total = shape.layers * _mlp(hidden, shape.intermediate_size, shards)
    for group in shape.cache:
        if isinstance(group, AttentionLayers):
            queries, keys = heads * group.head_dim, group.kv_heads * group.head_dim
            total += group.count * (3 * hidden + (queries + 2 * keys) // shards + queries // shards + hidden)
    total += shape.layers * shape.experts * _mlp(hidden, shape.expert_intermediate_size, shards)
    return total * adapters.count * adapters.rank * 2


def _mlp(hidden: int, inner: int, shards: int) -> int:
    """Elements of one rank: gate and up side by side, then down."""
    return 2 * hidden + 2 * (inner // shards) + inner // shards + hidden
