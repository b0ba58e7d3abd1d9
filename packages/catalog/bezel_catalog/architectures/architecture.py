"""The shape of a model: its layers by what they keep of a sequence, its sizes, its context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from bezel_catalog.architectures.layers import (
    AttentionLayers,
    FullLayers,
    Layers,
    SharedLayers,
    SlidingLayers,
    UnknownLayers,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = TypeVar("Kind", bound=Layers)


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of a model: its groups of layers, heads, dimensions, and context in tokens.

    `cache` holds the groups of layers of one kind and size in the order in which the model has them. `hidden_layers` is
    the number of layers where a layer stands in more than one group, or in none; 0 where the groups add up. `experts`
    is 0 for a dense model; with experts, `intermediate_size` is that of the dense MLP beside them, and `expert_layers`
    the number of layers that have any, 0 where all have.
    `per_layer_embedding` is the width of the embedding that each layer looks up for itself, 0 where there is none. With
    `bidirectional_images`, tokens of one image attend to each other in both directions
    (`use_bidirectional_attention: vision` in config.json). `class_name` is the first of `architectures` in config.json,
    empty for the rows of the catalogue. `parameters` and `active_parameters` are 0 until the tensors are weighed.
    """

    id: str
    model_type: str
    hidden_size: int
    intermediate_size: int
    attention_heads: int
    cache: tuple[Layers, ...]
    context: int
    vocabulary: int
    modalities: tuple[str, ...]
    as_of: str
    source: str
    parameters: int = 0
    active_parameters: int = 0
    experts: int = 0
    active_experts: int = 0
    expert_intermediate_size: int = 0
    per_layer_embedding: int = 0
    attention_k_eq_v: bool = False
    bidirectional_images: bool = False
    class_name: str = ""
    hidden_layers: int = 0
    expert_layers: int = 0
    tied_embeddings: bool = True

    def groups(self, kind: type[Kind]) -> tuple[Kind, ...]:
        """Groups of layers of exactly this kind."""
        return tuple(group for group in self.cache if type(group) is kind)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Reasons why the memory of some layers cannot be computed; empty where all of it can."""
        return tuple(dict.fromkeys(group.reason for group in self.groups(UnknownLayers)))

    @property
    def layers(self) -> int:
        """All layers, those without a cache of their own included."""
        return self.hidden_layers or _total(self.cache)

    @property
    def sliding_layers(self) -> int:
        """Layers that keep a window."""
        return _total(self.groups(SlidingLayers))

    @property
    def full_layers(self) -> int:
        """Layers that keep every token."""
        return _total(self.groups(FullLayers))

    @property
    def shared_kv_layers(self) -> int:
        """Layers that read the cache of an earlier layer."""
        return _total(self.groups(SharedLayers))

    @property
    def sliding_kv_heads(self) -> int:
        """Key/value heads of a sliding layer; those of a full one where none slides."""
        return self._size(SlidingLayers).kv_heads

    @property
    def full_kv_heads(self) -> int:
        """Key/value heads of a full layer; those of a sliding one where none is full."""
        return self._size(FullLayers).kv_heads

    @property
    def sliding_head_dim(self) -> int:
        """Head dimension of a sliding layer; that of a full one where none slides."""
        return self._size(SlidingLayers).head_dim

    @property
    def full_head_dim(self) -> int:
        """Head dimension of a full layer; that of a sliding one where none is full."""
        return self._size(FullLayers).head_dim

    @property
    def window(self) -> int:
        """Tokens that a sliding layer keeps; the context where none slides."""
        return next((group.window for group in self.groups(SlidingLayers)), self.context)

    @property
    def lookup_parameters(self) -> int:
        """Parameters of the per-layer embeddings: resident, but a step reads one row of them for each token."""
        return self.vocabulary * self.per_layer_embedding * self.layers

    @property
    def embedding_parameters(self) -> int:
        """Parameters that every encoding leaves in 16 bits: the embeddings, tied or not, and the per-layer ones."""
        matrices = 1 if self.tied_embeddings else 2
        return matrices * self.vocabulary * self.hidden_size + self.lookup_parameters

    def _size(self, kind: type[AttentionLayers]) -> AttentionLayers:
        """The first group of a kind, else the first with heads, else one without any."""
        attention = [group for group in self.cache if isinstance(group, AttentionLayers)]
        same = [group for group in attention if type(group) is kind]
        return next(iter((*same, *attention)), AttentionLayers(count=0, kv_heads=0, head_dim=0))


def _total(groups: Iterable[Layers]) -> int:
    return sum(group.count for group in groups)
