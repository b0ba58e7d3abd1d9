"""Rules of the layout for layers of any size: what grows, what never does, what is unknown."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_catalog.architectures.architecture import Architecture
from bezel_catalog.architectures.layers import (
    ChunkedLayers,
    CrossLayers,
    EncoderLayers,
    FullLayers,
    LatentLayers,
    SharedLayers,
    SlidingLayers,
    StateArray,
    StateLayers,
    UnknownLayers,
)
from bezel_catalog.sizing.cache_layout import CacheSettings, UnknownLayoutError, lay_out
from bezel_catalog.sizing.kv_cache import engine_kv_bytes, kv_bytes, layers_bytes

GIB = 1 << 30
FULL = FullLayers(count=2, kv_heads=2, head_dim=64)
STATE = StateLayers(count=3, form="mamba2", arrays=(StateArray(split=1000),), checkpoints=1)


def architecture(*groups):
    """An architecture of these groups of layers."""
    return Architecture(
        id="tiny",
        model_type="tiny",
        hidden_size=64,
        intermediate_size=128,
        attention_heads=4,
        cache=groups,
        context=8192,
        vocabulary=2048,
        modalities=("text",),
        as_of="2026-11",
        source="a test",
    )


def settings(**changes):
    """Settings of an engine, some of them changed."""
    return dataclasses.replace(CacheSettings(max_model_len=4096, in_flight=2048), **changes)


counts = st.integers(1, 12)
heads = st.sampled_from((1, 2, 4, 8))
dims = st.sampled_from((32, 64, 128))
groups = st.one_of(
    st.builds(FullLayers, count=counts, kv_heads=heads, head_dim=dims),
    st.builds(SlidingLayers, count=counts, kv_heads=heads, head_dim=dims, window=st.integers(1, 2048)),
    st.builds(ChunkedLayers, count=counts, kv_heads=heads, head_dim=dims, chunk=st.integers(1, 2048)),
    st.builds(StateLayers, count=counts, form=st.just("mamba2"), arrays=st.just((StateArray(split=4096),))),
)


@pytest.mark.slow
@given(st.lists(groups, min_size=1, max_size=4), st.integers(1, 8192), st.integers(1, 8192))
def test_request_blocks_never_shrink_with_the_length(layers, one, other):
    shorter, longer = sorted((one, other))
    shape = architecture(*layers)
    assert (
        lay_out(shape, settings(max_model_len=shorter)).request_blocks
        <= lay_out(shape, settings(max_model_len=longer)).request_blocks
    )


@pytest.mark.slow
@given(st.lists(groups, min_size=1, max_size=4), st.integers(0, 64 * GIB))
def test_blocks_never_exceed_the_memory(layers, memory):
    layout = lay_out(architecture(*layers), settings())
    assert layout.blocks(memory) * layout.block_bytes <= memory
    assert layout.tokens(memory) <= layout.blocks(memory) * layout.max_model_len


@pytest.mark.slow
@given(st.lists(groups, min_size=1, max_size=4))
def test_pool_holds_every_layer_in_a_group(layers):
    layout = lay_out(architecture(*layers), settings())
    for kind in {group.kind for group in layers}:
        placed = sum(group.layers for group in layout.groups if group.kind == kind)
        assert len(layout.groups) == 1 or placed >= sum(group.count for group in layers if group.kind == kind)


@pytest.mark.slow
@given(st.integers(1, 6), st.integers(1, 1000), st.sampled_from((16, 32, 64, 128)))
def test_block_beside_states_holds_the_state(layers, size, block):
    state = dataclasses.replace(STATE, count=layers, arrays=(StateArray(split=size * 1000),))
    layout = lay_out(architecture(FULL, state), settings(block_tokens=block))
    assert len({group.page_bytes for group in layout.groups}) == 1
    assert layout.groups[0].page_bytes >= state.state_bytes(2)
    assert layout.groups[0].block_tokens % block == 0


def test_window_needs_a_block_more_than_its_tokens():
    layout = lay_out(
        architecture(SlidingLayers(count=4, kv_heads=1, head_dim=32, window=129)),
        settings(in_flight=64, block_tokens=64),
    )
    assert layout.request_blocks == 4


def test_window_is_kept_at_full_length_without_the_hybrid_manager():
    shape = architecture(FULL, SlidingLayers(count=10, kv_heads=2, head_dim=64, window=128))
    whole, hybrid = (lay_out(shape, settings(hybrid=hybrid, in_flight=64)) for hybrid in (False, True))
    assert [group.layers for group in whole.groups] == [12]
    assert whole.tokens(GIB) < hybrid.tokens(GIB)


def test_window_without_full_layers_stays_without_the_hybrid_manager():
    shape = architecture(SlidingLayers(count=10, kv_heads=2, head_dim=64, window=128))
    assert lay_out(shape, settings(hybrid=False)) == lay_out(shape, settings())


def test_nearly_as_many_layers_are_padded_to_the_larger_number():
    shape = architecture(
        dataclasses.replace(FULL, count=13), SlidingLayers(count=12, kv_heads=2, head_dim=64, window=128)
    )
    assert [group.layers for group in lay_out(shape, settings()).groups] == [13, 13]


def test_prefix_caching_keeps_states_more_than_once():
    shape = architecture(FULL, STATE)
    with_prefixes, without = (lay_out(shape, settings(prefix_caching=cached)) for cached in (True, False))
    states = [
        sum(group.request_blocks for group in layout.groups if group.kind == "state")
        for layout in (with_prefixes, without)
    ]
    assert states == [2 * 3, 2 * 1]


def test_model_without_attention_never_keeps_states_twice():
    shape = architecture(dataclasses.replace(STATE, cached_prefixes=False))
    layout = lay_out(shape, settings())
    assert (layout.request_blocks, layout.block_bytes) == (1, 3 * 2000)


def test_cross_attention_is_sized_by_the_encoder_tokens_of_a_step():
    cross = CrossLayers(count=2, kv_heads=2, head_dim=64)
    layout = lay_out(architecture(FULL, cross), settings(encoder_tokens=1500, block_tokens=128))
    assert [group.request_blocks for group in layout.groups] == [32, 12]


def test_shards_copy_heads_but_never_split_a_latent_vector():
    latent = architecture(LatentLayers(count=4, width=576))
    assert lay_out(latent, settings(shards=8)) == lay_out(latent, settings())
    few = architecture(dataclasses.replace(FULL, kv_heads=2))
    assert lay_out(few, settings(shards=4)).block_bytes == lay_out(few, settings(shards=2)).block_bytes


def test_groups_of_a_state_are_never_split_below_one():
    array = StateArray(split=800, grouped=64, groups=1)
    assert [array.elements(shards) for shards in (1, 2, 4)] == [864, 464, 264]
    assert StateArray(split=800, grouped=64, groups=4).elements(2) == 432


def test_layers_without_a_cache_need_no_blocks():
    shape = architecture(EncoderLayers(count=4, kv_heads=2, head_dim=64))
    layout = lay_out(shape, settings())
    assert (layout.groups, layout.tokens(GIB), layout.concurrency(GIB)) == ((), 0, 0.0)
    shared = SharedLayers(count=6, kv_heads=2, head_dim=64)
    assert lay_out(architecture(FULL, shared), settings()) == lay_out(architecture(FULL), settings())


def test_pages_of_vectors_that_never_divide_are_refused():
    shape = architecture(LatentLayers(count=4, width=576), SlidingLayers(count=2, kv_heads=2, head_dim=256, window=128))
    with pytest.raises(UnknownLayoutError, match="cannot be made equal"):
        lay_out(shape, settings())


def test_unknown_layers_are_never_sized():
    shape = architecture(FULL, UnknownLayers(count=2, reason="state of this layer kind unknown"))
    for size in (
        lambda: lay_out(shape, settings()),
        lambda: kv_bytes(shape, 100, element_bytes=2),
        lambda: engine_kv_bytes(shape, 100, element_bytes=2, in_flight=1),
        lambda: layers_bytes(shape, 1, 1, element_bytes=2),
    ):
        with pytest.raises(UnknownLayoutError, match="state of this layer kind unknown"):
            size()


def test_request_starts_only_beside_the_block_that_is_kept_back():
    layout = lay_out(architecture(FULL), settings())
    needed = layout.request_bytes + layout.block_bytes
    assert layout.starts(needed)
    assert not layout.starts(needed - 1)


def test_sequence_bytes_count_a_state_once():
    shape = architecture(FULL, STATE)
    token = 2 * 2 * 2 * 64 * 2
    assert kv_bytes(shape, 10, element_bytes=2) == 10 * token + 3 * 2000
    assert kv_bytes(shape, 20, element_bytes=2) == 20 * token + 3 * 2000
