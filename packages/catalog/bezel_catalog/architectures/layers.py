"""Kinds of layers by what each keeps of a sequence, as in vLLM's KV cache specifications.

Source: vLLM 0.32.0, `vllm/v1/kv_cache_interface.py`, whose class stands in each docstring. Sizes are in elements of the
cache or in bytes where an element has a width of its own; counts are of the whole model, before it is split over
devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Layers of one kind and size. `keeps_cache` is false where they keep nothing of a sequence."""

    count: int
    kind: ClassVar[str]
    keeps_cache: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLayers(Layers):
    """Layers with keys and values: `kv_heads` heads of `head_dim` numbers, values of `value_dim` where they differ.

    Each token is stored `states_per_token` times (more than once where a layer pools blocks of finer steps).
    """

    kv_heads: int
    head_dim: int
    value_dim: int | None = None
    states_per_token: int = 1

    def token_elements(self, shards: int = 1) -> int:
        """Elements of a token in one layer on one of `shards` devices: a head is copied where they are too few."""
        heads = -(-self.kv_heads // shards)
        return heads * (self.head_dim + (self.head_dim if self.value_dim is None else self.value_dim))


@dataclass(frozen=True, slots=True, kw_only=True)
class FullLayers(AttentionLayers):
    """Layers that keep every token (FullAttentionSpec). `sinks` are the tokens that vLLM puts before each sequence."""

    kind: ClassVar[str] = "full"
    sinks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingLayers(AttentionLayers):
    """Layers that keep the last `window` tokens (SlidingWindowSpec)."""

    kind: ClassVar[str] = "sliding"
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionLayers(AttentionLayers):
    """Layers that keep the inputs of short convolutions for the last `window` tokens (SlidingWindowSpec).

    A token has `kv_heads` heads of `head_dim` numbers in the model's own type, and no values. A block holds `window`
    tokens, whatever the size of the other blocks is.
    """

    kind: ClassVar[str] = "convolution"
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkedLayers(AttentionLayers):
    """Layers that keep the tokens of the current chunk (ChunkedLocalAttentionSpec)."""

    kind: ClassVar[str] = "chunked"
    chunk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossLayers(AttentionLayers):
    """Layers of a decoder that keep what the encoder made (CrossAttentionSpec)."""

    kind: ClassVar[str] = "cross"


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentLayers(Layers):
    """Layers with one compressed vector of `width` elements a token (MLAAttentionSpec), the same on every device.

    `element_bytes` is the width of an element where it is not the cache's own; `indexer` marks the keys of a sparse
    model's index, `window` those that keep only the last tokens (SlidingWindowMLASpec). `tokens_per_state` tokens have
    one vector together. `block_tokens` and `alignment` are the size of a block and the bytes that it is padded to a
    multiple of, where the model sets its own.
    """

    kind: ClassVar[str] = "latent"
    width: int
    element_bytes: int | None = None
    indexer: bool = False
    window: int | None = None
    tokens_per_state: int = 1
    block_tokens: int | None = None
    alignment: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateArray:
    """One array of a layer's state, in elements.

    `split` are divided over the devices. `grouped` belong to `groups` groups, and a device holds whole groups: one at
    least. `element_bytes` is None for the model's own type.
    """

    split: int
    grouped: int = 0
    groups: int = 1
    element_bytes: int | None = None

    def elements(self, shards: int = 1) -> int:
        """Elements on one of `shards` devices."""
        return -(-self.split // shards) + self.grouped // self.groups * -(-self.groups // shards)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLayers(Layers):
    """Layers with a state of fixed size for each sequence (MambaSpec): state-space models, linear attention.

    `form` is the kind of state in vLLM's words, e.g. mamba2 or gdn_attention. `checkpoints` are the blocks more that
    vLLM reserves for each sequence where it caches prefixes; `cached_prefixes` is false where it never does, as in
    models without attention. `key_dim` are the numbers of one key, where vLLM chooses a kernel by them.
    """

    kind: ClassVar[str] = "state"
    form: str
    arrays: tuple[StateArray, ...]
    checkpoints: int = 0
    cached_prefixes: bool = True
    key_dim: int | None = None

    def state_bytes(self, element_bytes: int, shards: int = 1) -> int:
        """Bytes of one sequence in one layer on one of `shards` devices."""
        return sum(array.elements(shards) * (array.element_bytes or element_bytes) for array in self.arrays)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLayers(AttentionLayers):
    """Layers that read the cache of an earlier layer and keep none (`kv_sharing_target_layer_name`)."""

    kind: ClassVar[str] = "shared"
    keeps_cache: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderLayers(AttentionLayers):
    """Layers that read a whole prompt at once and keep nothing (EncoderOnlyAttentionSpec)."""

    kind: ClassVar[str] = "encoder"
    keeps_cache: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainLayers(Layers):
    """Layers without attention and without a state: MLPs and experts of a hybrid model."""

    kind: ClassVar[str] = "plain"
    keeps_cache: ClassVar[bool] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownLayers(Layers):
    """Layers whose memory cannot be computed, with the reason. They are never taken for full attention."""

    kind: ClassVar[str] = "unknown"
    reason: str
