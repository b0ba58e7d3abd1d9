"""Layout of vLLM's KV cache for any architecture: groups of layers, pages, blocks, and the tokens that it logs.

Source: vLLM 0.32.0 and 0.33.0. Pages and blocks of a request: `vllm/v1/kv_cache_interface.py` (page_size_bytes and
max_memory_usage_bytes of each specification). Groups: `vllm/v1/core/kv_cache_utils.py`, in 0.33.0
`vllm/v1/core/kv_cache_planning.py` (get_kv_cache_groups, unify_kv_cache_spec_page_size,
_get_kv_cache_groups_uniform_page_size, _get_packed_kv_cache_groups). Size of a block beside states:
`vllm/platforms/interface.py` (_align_hybrid_block_size). Holds where a layer's blocks lie one behind the other, which
is every backend's default, and for DeepSeek V4, whose layers share each block. Leaves everything beside the cache to
bezel_catalog.sizing.memory.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_base.errors import Problem, UserError
from bezel_catalog.architectures.layers import (
    AttentionLayers,
    ChunkedLayers,
    ConvolutionLayers,
    CrossLayers,
    FullLayers,
    LatentLayers,
    SlidingLayers,
    StateLayers,
)
from bezel_catalog.sizing.state_checkpoints import checkpoint_alignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel_catalog.architectures.architecture import Architecture
    from bezel_catalog.architectures.layers import Layers

LATENT_ALIGNMENT = 128
"""A block of compressed vectors beside states is a multiple of this many tokens."""
_PADDING_LIMIT = 1.5


class UnknownLayoutError(UserError, ValueError):
    """The cache of some layers cannot be computed.

    Attributes:
        reasons: why not, one for each kind of layers.
    """

    def __init__(self, *reasons: str) -> None:
        self.reasons = reasons
        consequence = "the memory of these layers is unknown, and is not guessed."
        repair = "choose a model whose layers are known, or measure this one."
        super().__init__(*(Problem("layers", reason, consequence, repair) for reason in reasons))


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """What the layout depends on beside the architecture.

    `in_flight` are the tokens scheduled and not yet completed: those of a step, twice as many where two steps overlap.
    `block_tokens` is the size of a block of the attention backend. `element_bytes` is the width of an element of keys
    and values, `state_bytes` that of the model's own type, in which states are kept. `encoder_tokens` is the largest
    number of encoder tokens in one step, `draft_tokens` that of speculated tokens. `hybrid` is False where windows
    are kept at full length (disable-hybrid-kv-cache-manager). `release` and `compute_capability` choose kernels that
    keep more states.
    """

    max_model_len: int
    in_flight: int
    block_tokens: int = 16
    element_bytes: int = 2
    state_bytes: int = 2
    prefix_caching: bool = True
    encoder_tokens: int = 0
    draft_tokens: int = 0
    hybrid: bool = True
    shards: int = 1
    release: str | None = None
    compute_capability: str | None = None

    def checkpoint_alignment(self, layers: StateLayers) -> int | None:
        """Tokens whose multiples a state inside a prompt may lie at; None where none is kept."""
        if not (self.prefix_caching and layers.cached_prefixes):
            return None
        return checkpoint_alignment(layers, self.release, self.compute_capability)


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """Layers that share one table of blocks.

    `page_bytes` is one block of one layer; where the layers differ, of all of them. `request_blocks` are those that a
    request of full length needs.
    """

    kind: str
    layers: int
    block_tokens: int
    page_bytes: int
    request_blocks: int


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """The groups, and the bytes of one block of the pool that they share. Without groups nothing is kept."""

    groups: tuple[CacheGroup, ...]
    block_bytes: int
    max_model_len: int

    @property
    def request_blocks(self) -> int:
        """Blocks of one request of full length, over all groups."""
        return sum(group.request_blocks for group in self.groups)

    @property
    def request_bytes(self) -> int:
        """Bytes that are reserved for one request of full length."""
        return self.request_blocks * self.block_bytes

    def blocks(self, memory_bytes: int) -> int:
        """Blocks that this memory holds."""
        return memory_bytes // self.block_bytes if self.groups else 0

    def concurrency(self, memory_bytes: int) -> float:
        """Requests of full length at a time, as vLLM logs it."""
        return self.blocks(memory_bytes) / self.request_blocks if self.groups else 0.0

    def tokens(self, memory_bytes: int) -> int:
        """Size of the cache in tokens, as vLLM logs it."""
        return int(self.concurrency(memory_bytes) * self.max_model_len)

    def starts(self, memory_bytes: int) -> bool:
        """Whether vLLM starts: a request of full length fits beside the block that it keeps back."""
        return memory_bytes - self.block_bytes >= self.request_bytes


@dataclass(frozen=True, slots=True)
class _Spec:
    """One layer's part: what vLLM compares when it groups layers."""

    group: Layers
    block: int
    page: int

    @property
    def base(self) -> tuple[object, ...]:
        """Layers with the same need the same number of tokens: vLLM's uniform type."""
        match self.group:
            case SlidingLayers(window=window) | ConvolutionLayers(window=window) | LatentLayers(window=int(window)):
                return type(self.group), window
            case ChunkedLayers(chunk=chunk):
                return ChunkedLayers, chunk
            case StateLayers(checkpoints=checkpoints):
                return StateLayers, checkpoints, self.page
            case FullLayers() | LatentLayers():
                return (FullLayers,)
        return (type(self.group),)


def lay_out(architecture: Architecture, settings: CacheSettings) -> CacheLayout:
    """The layout of the cache of a model.

    Raises:
        UnknownLayoutError: the architecture has layers whose memory is unknown.
    """
    if architecture.unknown:
        raise UnknownLayoutError(*architecture.unknown)
    groups = [group for group in architecture.cache if group.keeps_cache]
    if not settings.hybrid:
        groups = _at_full_length(groups)
    layers = _specs(groups, settings)
    if not layers:
        return CacheLayout((), 0, settings.max_model_len)
    if len({(spec.base, spec.block) for spec in layers}) == 1:
        return _one_group(layers, settings)
    if any(isinstance(spec.group, LatentLayers) and spec.group.alignment for spec in layers):
        return _packed_groups(layers, settings)
    return _equal_groups(_same_pages(layers), settings)


def _at_full_length(groups: Sequence[Layers]) -> list[Layers]:
    """Windows and chunks kept like full attention, where there is any: `_promote_local_kv_cache_specs`."""
    if not any(isinstance(group, FullLayers) for group in groups):
        return list(groups)
    return [
        FullLayers(count=group.count, kv_heads=group.kv_heads, head_dim=group.head_dim, value_dim=group.value_dim)
        if isinstance(group, SlidingLayers | ChunkedLayers)
        else group
        for group in groups
    ]


def _specs(groups: Sequence[Layers], settings: CacheSettings) -> Counter[_Spec]:
    """Number of layers of each part."""
    states = [group for group in groups if isinstance(group, StateLayers)]
    attention = [group for group in groups if not isinstance(group, StateLayers)]
    block, padded = settings.block_tokens, 0
    if states and attention:
        state = max(group.state_bytes(settings.state_bytes, settings.shards) for group in states)
        token = _aligned_token_bytes(attention, settings)
        align = max(block, LATENT_ALIGNMENT) if isinstance(attention[0], LatentLayers) else block
        checkpoints = [settings.checkpoint_alignment(group) for group in states]
        if all(checkpoints):
            align = math.lcm(align, *(tokens for tokens in checkpoints if tokens))
        block = max(block, align * -(-state // (align * token)))
        padded = block * token
    layers: Counter[_Spec] = Counter()
    for group in groups:
        own_block = block
        if isinstance(group, StateLayers):
            page = padded or group.state_bytes(settings.state_bytes, settings.shards)
        elif isinstance(group, LatentLayers):
            own_block = group.block_tokens or block
            page = -(-own_block // group.tokens_per_state) * _token_bytes(group, settings)
            page = -(-page // (group.alignment or 1)) * (group.alignment or 1)
        else:
            own_block = group.window if isinstance(group, ConvolutionLayers) else block
            page = own_block * _token_bytes(group, settings)
        layers[_Spec(dataclasses.replace(group, count=1), own_block, page)] += group.count
    return layers


def _aligned_token_bytes(attention: Sequence[Layers], settings: CacheSettings) -> int:
    """Bytes of a token by the sizes of the whole model: those of its first full layer."""
    full = next((group for group in attention if isinstance(group, FullLayers)), attention[0])
    return _token_bytes(full, settings)


def _token_bytes(group: Layers, settings: CacheSettings) -> int:
    if isinstance(group, LatentLayers):
        return group.width * (group.element_bytes or settings.element_bytes)
    if isinstance(group, ConvolutionLayers):
        return group.token_elements(settings.shards) * settings.state_bytes
    if isinstance(group, AttentionLayers):
        return group.token_elements(settings.shards) * settings.element_bytes * group.states_per_token
    message = f"{group.kind} layers have no tokens"
    raise TypeError(message)


def _same_pages(layers: Counter[_Spec]) -> Counter[_Spec]:
    """Pages of one size: longer blocks where the largest is a multiple, padding elsewhere."""
    largest = max(spec.page for spec in layers)
    result: Counter[_Spec] = Counter()
    for spec, count in layers.items():
        block = spec.block
        if not isinstance(spec.group, StateLayers) and spec.page != largest:
            if largest % spec.page == 0:
                block *= largest // spec.page
            elif isinstance(spec.group, LatentLayers):
                reason = f"pages of {spec.page} and {largest} bytes cannot be made equal, so vLLM does not start"
                raise UnknownLayoutError(reason)
        result[dataclasses.replace(spec, page=largest, block=block)] += count
    return result


def _one_group(layers: Counter[_Spec], settings: CacheSettings) -> CacheLayout:
    """All layers need the same number of tokens, though their sizes may differ."""
    first = next(iter(layers))
    pages = sum(spec.page * count for spec, count in layers.items())
    group = CacheGroup(
        kind=first.group.kind,
        layers=layers.total(),
        block_tokens=first.block,
        page_bytes=first.page if len(layers) == 1 else pages,
        request_blocks=max(_request_blocks(spec, settings) for spec in layers),
    )
    return CacheLayout((group,), pages, settings.max_model_len)


def _equal_groups(layers: Counter[_Spec], settings: CacheSettings) -> CacheLayout:
    """Groups of as many layers as the rarest kind has; of the most frequent where the kinds are about as many.

    The last group of a kind is filled up with layers that do not exist, so all groups have one size.
    """
    fewest, most = min(layers.values()), max(layers.values())
    size = most if most < fewest * _PADDING_LIMIT else fewest
    groups = [
        CacheGroup(spec.group.kind, size, spec.block, spec.page, _request_blocks(spec, settings))
        for spec, count in layers.items()
        for _ in range(-(-count // size))
    ]
    return CacheLayout(tuple(groups), size * groups[0].page_bytes, settings.max_model_len)


def _packed_groups(layers: Counter[_Spec], settings: CacheSettings) -> CacheLayout:
    """Groups whose pages of several sizes lie side by side in a block (`_get_packed_kv_cache_groups`).

    Layers that keep the same tokens in blocks of one size are together. Where they have as many layers of each size,
    they are split into groups of as many repetitions as wastes the least.
    """
    buckets: dict[tuple[object, ...], Counter[_Spec]] = {}
    for spec, count in layers.items():
        buckets.setdefault((spec.base, spec.block), Counter())[spec] += count
    sizes = [_layers_by_page(bucket) for bucket in buckets.values()]
    even = [pages for pages in sizes if len(set(pages.values())) == 1]
    least = max((max(pages.values()) for pages in even if len(pages) > 1), default=0)
    repetitions = _least_padding([max(pages.values()) for pages in even], least) if least else 0
    groups, widths = [], []
    for bucket, pages in zip(buckets.values(), sizes, strict=True):
        number = -(-max(pages.values()) // repetitions) if repetitions and pages in even else 1
        widths.append(sum(-(-count // number) * page for page, count in pages.items()))
        first = next(iter(bucket))
        blocks = max(_request_blocks(spec, settings) for spec in bucket)
        one = CacheGroup(first.group.kind, -(-bucket.total() // number), first.block, widths[-1], blocks)
        groups += [one] * number
    return CacheLayout(tuple(groups), max(widths), settings.max_model_len)


def _layers_by_page(bucket: Counter[_Spec]) -> dict[int, int]:
    pages: Counter[int] = Counter()
    for spec, count in bucket.items():
        pages[spec.page] += count
    return dict(pages)


def _least_padding(counts: Sequence[int], least: int) -> int:
    """The size of groups that adds the fewest layers to these numbers of layers; the largest of equally good ones."""
    return min(
        range(least, max(counts) + 1), key=lambda size: (sum(-count % size for count in counts), -size), default=least
    )


def _request_blocks(spec: _Spec, settings: CacheSettings) -> int:
    length, in_flight = settings.max_model_len, settings.in_flight
    match spec.group:
        case SlidingLayers(window=window) | ConvolutionLayers(window=window) | LatentLayers(window=int(window)):
            # One block more: the window rarely begins where a block does.
            return -(-min(window - 1 + in_flight, length) // spec.block) + 1
        case ChunkedLayers(chunk=chunk):
            return -(-min(chunk + in_flight, length) // spec.block)
        case CrossLayers():
            return -(-settings.encoder_tokens // spec.block)
        case StateLayers(checkpoints=checkpoints):
            cached = settings.prefix_caching and spec.group.cached_prefixes
            exported = settings.checkpoint_alignment(spec.group) is not None
            return (2 + checkpoints + exported if cached else 1) + settings.draft_tokens
    return -(-length // spec.block)
