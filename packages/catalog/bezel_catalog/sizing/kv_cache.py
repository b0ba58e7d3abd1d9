"""Bytes of KV cache of a sequence: by the published shape, by vLLM's hybrid cache, on a TPU.

Owns the arithmetic of layers, heads and windows; nothing here is estimated. Leaves groups and blocks to
bezel_catalog.sizing.cache_layout, all other memory to bezel_catalog.sizing.memory and bezel_catalog.sizing.tpu_memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_catalog.architectures.layers import (
    AttentionLayers,
    ChunkedLayers,
    ConvolutionLayers,
    CrossLayers,
    LatentLayers,
    SlidingLayers,
    StateLayers,
)
from bezel_catalog.sizing.cache_layout import CacheSettings, UnknownLayoutError, lay_out

if TYPE_CHECKING:
    from bezel_catalog import Architecture
    from bezel_catalog.architectures.layers import Layers

BLOCK_TOKENS = 16
# States are kept in the type that the model is served in, unless the layer has one of its own.
STATE_BYTES = 2

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


@dataclass(frozen=True, slots=True)
class CachedStates:
    """What the number of states of a sequence depends on beside the model.

    `cached_prefixes` is false where prefixes are not cached, and where states are not kept for them (mamba-cache-mode:
    all). Each of `draft_tokens` has a state of its own.
    """

    cached_prefixes: bool = True
    draft_tokens: int = 0
    release: str | None = None
    compute_capability: str | None = None


def kv_bytes(shape: Architecture, tokens: int, *, element_bytes: int, shards: int = 1) -> int:
    """Bytes of the KV cache of one sequence on one of `shards` devices, by the published shape alone.

    Sum over the layers: bytes of a token x tokens, at most the window or the chunk; a state counts once. What an
    encoder made is not counted.

    Args:
        shape: the model's architecture.
        tokens: length of the sequence.
        element_bytes: bytes of one element.
        shards: devices that share the heads (tensor parallelism).

    Raises:
        UnknownLayoutError: the architecture has layers whose memory is unknown.
    """
    return sum(
        _group_bytes(group, min(tokens, kept_tokens(group) or tokens), element_bytes, shards)
        for group in _known_groups(shape)
    )


def engine_kv_bytes(
    shape: Architecture,
    tokens: int,
    *,
    element_bytes: int,
    in_flight: int,
    block_tokens: int = BLOCK_TOKENS,
    shards: int = 1,
    states: CachedStates | None = None,
) -> int:
    """Bytes that vLLM's hybrid cache on CUDA reserves for one sequence on one device.

    Sliding layers hold the window, the tokens of steps still in flight, and one block more, because the window rarely
    begins at a block. Pages of all kinds of layers have one size: the kind with fewer bytes a token gets longer
    blocks. An encoder makes at most as many tokens in a step as are in flight.

    Args:
        shape: the model's architecture.
        tokens: length of the sequence.
        element_bytes: bytes of one element.
        in_flight: tokens scheduled and not yet completed; 1 while decoding.
        block_tokens: tokens in a block of the attention backend.
        shards: devices that share the heads.
        states: what the states of a sequence depend on; None for vLLM's defaults.

    Raises:
        UnknownLayoutError: the architecture has layers whose memory is unknown.
    """
    states = states or CachedStates()
    settings = CacheSettings(
        max_model_len=tokens,
        in_flight=in_flight,
        block_tokens=block_tokens,
        element_bytes=element_bytes,
        encoder_tokens=in_flight,
        shards=shards,
        prefix_caching=states.cached_prefixes,
        draft_tokens=states.draft_tokens,
        release=states.release,
        compute_capability=states.compute_capability,
    )
    return lay_out(shape, settings).request_bytes


def block_sizes(shape: Architecture, block_tokens: int | None = None, *, shards: int = 1) -> tuple[int, int]:
    """Tokens in a block of a sliding layer and of a full layer, whose pages have one size.

    Args:
        shape: the model's architecture.
        block_tokens: tokens in the smaller kind of block, None for the attention backend's own.
        shards: devices that share the heads.
    """
    block = block_tokens or BLOCK_TOKENS
    sliding_token = max(1, heads_of_one(shape.sliding_kv_heads, shards) * shape.sliding_head_dim)
    full_token = max(1, heads_of_one(shape.full_kv_heads, shards) * shape.full_head_dim)
    return block * max(1, full_token // sliding_token), block * max(1, sliding_token // full_token)


def layers_bytes(
    shape: Architecture, sliding_tokens: int, full_tokens: int, *, element_bytes: int, shards: int = 1
) -> int:
    """Bytes on one device of a cache with these numbers of tokens in each layer with a window and in each other one."""
    return sum(
        _group_bytes(group, sliding_tokens if kept_tokens(group) else full_tokens, element_bytes, shards)
        for group in _known_groups(shape)
    )


def kept_tokens(group: Layers) -> int | None:
    """Tokens that layers keep at most, of the window or the chunk; None where they keep every token."""
    match group:
        case SlidingLayers(window=window) | ConvolutionLayers(window=window) | LatentLayers(window=int(window)):
            return window
        case ChunkedLayers(chunk=chunk):
            return chunk
    return None


def _known_groups(shape: Architecture) -> tuple[Layers, ...]:
    """The groups that keep something.

    Raises:
        UnknownLayoutError: the architecture has layers whose memory is unknown.
    """
    if shape.unknown:
        raise UnknownLayoutError(*shape.unknown)
    return tuple(group for group in shape.cache if group.keeps_cache)


def _group_bytes(group: Layers, tokens: int, element_bytes: int, shards: int) -> int:
    match group:
        case CrossLayers():
            return 0
        case StateLayers():
            return group.count * group.state_bytes(STATE_BYTES, shards)
        case LatentLayers():
            states = -(-tokens // group.tokens_per_state)
            return group.count * states * group.width * (group.element_bytes or element_bytes)
        case ConvolutionLayers():
            return group.count * tokens * group.token_elements(shards) * STATE_BYTES
        case AttentionLayers():
            return group.count * tokens * group.token_elements(shards) * group.states_per_token * element_bytes
    return 0


def heads_of_one(heads: int, shards: int) -> int:
    """KV heads that one of `shards` devices holds: a head is never split, but copied where they are too few."""
    return -(-heads // shards)
