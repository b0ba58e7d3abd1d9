"""Layout of the KV cache in blocks: groups of layers that share a block, tokens in a block, blocks of a request.

The rules are those of vLLM's hybrid cache: pages of the two kinds of layers are made equal by longer blocks for the
smaller kind, layers are grouped so that every group has as many layers as the rarer kind, and all groups draw from one
pool. A request of full length holds every block of its full-attention group, but of each sliding group only the window
and the tokens in flight. Therefore the reported token capacity depends on `--max-model-len`. TPUs have one group.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint

BLOCK = 16
_BYTES = {"auto": 2, "bfloat16": 2, "float16": 2}


def bytes_per_element(kv_cache_dtype: str) -> int:
    """Return the bytes of one cached number: 2 for 16-bit types, 1 for fp8 and narrower types (counted as one byte)."""
    return _BYTES.get(kv_cache_dtype, 1)


@dataclass(frozen=True)
class KvLayout:
    """The layout for one model and one configuration.

    Attributes:
        full_block: tokens in a block of a full-attention group.
        sliding_block: tokens in a block of a sliding-window group.
        sliding_groups: number of groups of sliding layers.
        full_groups: number of groups of full-attention layers.
        block_bytes: bytes of one block of the pool over all layers of a group.
        sliding_tokens: the most tokens that a sliding group keeps: the window and the tokens in flight.
    """

    full_block: int
    sliding_block: int
    sliding_groups: int
    full_groups: int
    block_bytes: int
    sliding_tokens: int

    def blocks(self, tokens: int) -> int:
        """Return the blocks of the pool that a sequence of `tokens` tokens holds."""
        return self._blocks(tokens, partial=tokens > self.sliding_tokens)

    def max_blocks(self, max_model_len: int) -> int:
        """Return the blocks that one request of the longest length needs; the start is refused without them."""
        return self._blocks(max_model_len, partial=True)

    def _blocks(self, tokens: int, *, partial: bool) -> int:
        sliding = -(-min(tokens, self.sliding_tokens) // self.sliding_block) + partial
        return self.full_groups * -(-tokens // self.full_block) + self.sliding_groups * sliding

    def longest(self, blocks: int, limit: int) -> int:
        """Return the longest max-model-len, up to `limit`, whose request fits into `blocks`; 0 if none does."""
        return bisect.bisect_right(range(1, limit + 1), blocks, key=self.max_blocks)


def unwindowed_layout(model: Checkpoint, *, tensor_parallel: int, block: int) -> KvLayout:
    """Return the layout on a TPU: sliding layers keep every token, numbers have 16 bits whatever type was requested.

    With fewer heads than `tensor_parallel`, a head is stored on more than one chip.
    """
    sliding = model.sliding_layers * max(1, model.sliding_kv_heads // tensor_parallel) * model.sliding_head_dim
    full = model.full_layers * max(1, model.full_kv_heads // tensor_parallel) * model.full_head_dim
    return KvLayout(block, block, 0, 1, block * 2 * 2 * (sliding + full), 0)


def kv_layout(
    model: Checkpoint, *, dtype: str, in_flight_tokens: int, tensor_parallel: int = 1, block: int = BLOCK
) -> KvLayout:
    """Return the layout for a model.

    Args:
        model: the model's layers, heads and window.
        dtype: the value of --kv-cache-dtype.
        in_flight_tokens: tokens that may be scheduled and not yet settled: batched tokens x concurrent batches.
        tensor_parallel: accelerators that share the heads; a head is never split.
        block: tokens in the smaller kind of block: 16 on a GPU, 128 on a CPU.
    """
    element = bytes_per_element(dtype)
    sliding = 2 * element * max(1, model.sliding_kv_heads // tensor_parallel) * model.sliding_head_dim
    full = 2 * element * max(1, model.full_kv_heads // tensor_parallel) * model.full_head_dim
    if not model.sliding_layers and not model.full_layers:
        return KvLayout(block, block, 0, 0, 0, 0)  # an encoder keeps nothing of a sequence
    if not model.sliding_layers:
        return KvLayout(block, block, 0, 1, block * full * model.full_layers, 0)
    page = block * max(sliding, full)
    counts = [count for count in (model.sliding_layers, model.full_layers) if count]
    group = max(counts) if max(counts) < 1.5 * min(counts) else min(counts)  # the 1.5 is vLLM's own
    return KvLayout(
        full_block=page // full,
        sliding_block=page // sliding,
        sliding_groups=-(-model.sliding_layers // group),
        full_groups=-(-model.full_layers // group),
        block_bytes=page * group,
        sliding_tokens=model.window - 1 + in_flight_tokens,
    )
