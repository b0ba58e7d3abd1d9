"""Room for LoRA adapters is taken from the GPU's memory, as vLLM sets it aside."""

from __future__ import annotations

import dataclasses

import pytest

from bezel.planner import make_plan
from bezel_catalog import model
from bezel_catalog.architectures.layers import FullLayers, SlidingLayers
from bezel_catalog.sizing.adapters import Adapters, adapter_bytes, read_adapters
from tests.support.planner.l4_stack import problems_of, with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, lease_problems, with_lease_changes

LORA = {"enable-lora": True, "max-loras": 8, "max-lora-rank": 64}
# The tiny model whose buffers were measured.
TINY = dataclasses.replace(
    model("gemma-4-12b-it").architecture,
    hidden_size=64,
    intermediate_size=128,
    attention_heads=2,
    cache=(
        SlidingLayers(count=1, kv_heads=1, head_dim=32, window=128),
        FullLayers(count=1, kv_heads=1, head_dim=64),
    ),
)


def test_the_arithmetic_is_what_a_real_server_set_aside():
    assert adapter_bytes(TINY, Adapters(8, 64)) == 2_293_760
    assert adapter_bytes(TINY, Adapters()) == 0


def test_devices_share_one_half_of_each_pair():
    whole, half = (adapter_bytes(TINY, Adapters(1, 1), shards=shards) for shards in (1, 2))
    # Of qkv and gate_up the outputs, of o and down the inputs, of both layers, in 16 bits.
    split = 2 * ((128 + 256) + (256 + 256) + (64 + 128) + (128 + 128))
    assert whole - half == split // 2


@pytest.mark.parametrize(
    ("options", "adapters"),
    [
        ({}, Adapters()),
        ({"max-loras": 8}, Adapters()),
        ({"enable-lora": False, "max-loras": 8}, Adapters()),
        ({"enable-lora": True}, Adapters(1, 16)),
        ({"enable-lora": True, "max-loras": 4, "max-lora-rank": 32}, Adapters(4, 32)),
    ],
    ids=str,
)
def test_adapters_count_where_lora_is_switched_on(options, adapters):
    assert read_adapters(options) == adapters


def test_adapters_take_room_from_the_cache():
    changes = {"vllm": {**LORA, "max-model-len": 8192}}
    bare = make_plan(with_changes({"vllm": {"max-model-len": 8192}}), project="p", stack="s").fit
    with_lora = make_plan(with_changes(changes), project="p", stack="s").fit
    assert round(with_lora.adapter_bytes / 2**30, 2) == 3.94
    assert bare.kv_available_bytes - with_lora.kv_available_bytes == with_lora.adapter_bytes
    assert with_lora.as_output()["adapters_gib"] == 3.94
    assert "adapters_gib" not in bare.as_output()


def test_adapters_that_leave_no_room_are_refused_with_their_part():
    (problem,) = problems_of({"vllm": {**LORA, "max-loras": 30}})
    assert " + 14.78 for adapters" in problem.consequence
    assert "a smaller max-loras or max-lora-rank" in problem.repair


def test_adapters_on_a_tpu_are_refused_as_nobody_has_shown_them():
    (problem,) = lease_problems(with_lease_changes(V6E4_MOE, vllm={"enable-lora": True}))
    assert problem.key == "bezel:vllm.enable-lora"
