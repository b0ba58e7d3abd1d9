"""Bytes of KV cache of a sequence: by the published shape, by vLLM's hybrid cache, on a TPU.

Owns the arithmetic of layers, heads and windows; nothing here is estimated. Leaves all other memory to
bezel_catalog.sizing.memory and bezel_catalog.sizing.tpu_memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel_catalog import Architecture

BLOCK_TOKENS = 16

# Bytes of one element of the cache. Formats whose scales were never measured are omitted, not guessed.
KV_ELEMENT_BYTES = {
    "auto": 2,
    "bfloat16": 2,
    "float16": 2,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_inc": 1,
}


def kv_bytes(shape: Architecture, tokens: int, *, element_bytes: int, shards: int = 1) -> int:
    """Bytes of the KV cache of one sequence on one of `shards` devices, by the published shape alone.

    2 (K and V) x element x [sliding layers x heads x dim x min(n, window) + full layers x heads x dim x n].

    Args:
        shape: the model's architecture.
        tokens: length of the sequence.
        element_bytes: bytes of one element.
        shards: devices that share the heads (tensor parallelism).
    """
    return layers_bytes(shape, min(tokens, shape.window), tokens, element_bytes=element_bytes, shards=shards)


def engine_kv_bytes(
    shape: Architecture,
    tokens: int,
    *,
    element_bytes: int,
    in_flight: int,
    block_tokens: int = BLOCK_TOKENS,
    shards: int = 1,
) -> int:
    """Bytes that vLLM's hybrid cache on CUDA reserves for one sequence on one device.

    Sliding layers hold the window, the tokens of steps still in flight, and one block more, because the window rarely
    begins at a block. Pages of both kinds of layers have one size: the kind with fewer bytes a token gets longer
    blocks.

    Args:
        shape: the model's architecture.
        tokens: length of the sequence.
        element_bytes: bytes of one element.
        in_flight: tokens scheduled and not yet completed; 1 while decoding.
        block_tokens: tokens in a block of the attention backend.
        shards: devices that share the heads.
    """
    sliding_block, full_block = block_sizes(shape, block_tokens, shards=shards)
    held_tokens = min(shape.window - 1 + in_flight, tokens)
    return layers_bytes(
        shape,
        (-(-held_tokens // sliding_block) + 1) * sliding_block,
        -(-tokens // full_block) * full_block,
        element_bytes=element_bytes,
        shards=shards,
    )


def block_sizes(shape: Architecture, block_tokens: int | None = None, *, shards: int = 1) -> tuple[int, int]:
    """Tokens in a block of a sliding layer and of a full layer, whose pages have one size.

    Args:
        shape: the model's architecture.
        block_tokens: tokens in the smaller kind of block, None for the attention backend's own.
        shards: devices that share the heads.
    """
    block = block_tokens or BLOCK_TOKENS
    sliding_token = heads_of_one(shape.sliding_kv_heads, shards) * shape.sliding_head_dim
    full_token = heads_of_one(shape.full_kv_heads, shards) * shape.full_head_dim
    return block * max(1, full_token // sliding_token), block * max(1, sliding_token // full_token)


def layers_bytes(
    shape: Architecture, sliding_tokens: int, full_tokens: int, *, element_bytes: int, shards: int = 1
) -> int:
    """Bytes on one device of a cache with these numbers of tokens in each sliding and each full layer."""
    sliding = shape.sliding_layers * heads_of_one(shape.sliding_kv_heads, shards) * shape.sliding_head_dim
    full = shape.full_layers * heads_of_one(shape.full_kv_heads, shards) * shape.full_head_dim
    return 2 * element_bytes * (sliding * sliding_tokens + full * full_tokens)


def heads_of_one(heads: int, shards: int) -> int:
    """KV heads that one of `shards` devices holds: a head is never split, but copied where they are too few."""
    return -(-heads // shards)
