"""States inside a prompt: a block more for each sequence where a release's kernel writes them, and nowhere else."""

import dataclasses

import pytest

from bezel_catalog import model
from bezel_catalog.accelerators import accelerator
from bezel_catalog.architectures import Architecture
from bezel_catalog.architectures.layers import FullLayers, StateArray, StateLayers
from bezel_catalog.sizing.cache_layout import CacheSettings, lay_out
from bezel_catalog.sizing.kv_cache import CachedStates
from bezel_catalog.sizing.memory import memory_fit

STATE = StateLayers(count=3, form="gdn_attention", arrays=(StateArray(split=100_000),), key_dim=128)
SHAPE = Architecture(
    id="hybrid",
    model_type="qwen3_next",
    hidden_size=64,
    intermediate_size=128,
    attention_heads=4,
    cache=(FullLayers(count=1, kv_heads=2, head_dim=64), STATE),
    context=8192,
    vocabulary=2048,
    modalities=("text",),
    as_of="2026-11",
    source="a test",
)
SETTINGS = CacheSettings(max_model_len=4096, in_flight=2048, release="0.33.0", compute_capability="12.0")


def state_blocks(state=STATE, **changes):
    """Blocks of states of one request, in a layout with these changes."""
    shape = dataclasses.replace(SHAPE, cache=(SHAPE.cache[0], state))
    layout = lay_out(shape, dataclasses.replace(SETTINGS, **changes))
    return next(group.request_blocks for group in layout.groups if group.kind == "state")


@pytest.mark.parametrize(
    ("changes", "blocks"),
    [
        ({}, 3),
        ({"compute_capability": "9.0"}, 3),
        ({"release": "nightly-2026-11-20"}, 3),
        ({"draft_tokens": 2}, 5),
        ({"compute_capability": "8.9"}, 2),
        ({"compute_capability": None}, 2),
        ({"release": "0.32.0"}, 2),
        ({"release": None}, 2),
        ({"prefix_caching": False}, 1),
    ],
)
def test_prompts_leave_a_state_where_the_kernel_writes_one(changes, blocks):
    assert state_blocks(**changes) == blocks


@pytest.mark.parametrize("state", [dataclasses.replace(STATE, key_dim=64), dataclasses.replace(STATE, form="mamba1")])
def test_prompts_leave_no_state_of_other_kinds(state):
    assert state_blocks(state) == 2


def test_blocks_beside_such_states_are_multiples_of_their_places():
    aligned, free = (
        lay_out(SHAPE, dataclasses.replace(SETTINGS, release=release)).groups[0] for release in ("0.33.0", "0.32.0")
    )
    assert aligned.block_tokens % 64 == 0
    assert free.block_tokens % 64
    assert aligned.block_tokens > free.block_tokens


@pytest.mark.parametrize(
    ("states", "larger"),
    [(CachedStates(), False), (CachedStates(release="0.33.0", compute_capability="12.0"), True)],
)
def test_memory_of_a_sequence_has_the_states_of_the_release(states, larger):
    checkpoint = dataclasses.replace(model("gemma-4-12b-it"), architecture=SHAPE, weight_bytes=2_000_000_000)
    fits = [
        memory_fit(
            checkpoint,
            accelerator("nvidia-rtx-pro-6000"),
            utilization=0.9,
            max_model_len=4096,
            max_num_seqs=8,
            max_num_batched_tokens=2048,
            kv_cache_dtype="auto",
            memory_gib=32,
            load_strategy="lazy",
            states=chosen,
        )
        for chosen in (None, states)
    ]
    assert (fits[1].kv_start_bytes > fits[0].kv_start_bytes) is larger
