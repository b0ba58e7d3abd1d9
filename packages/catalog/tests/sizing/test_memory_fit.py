"""The memory model gives the published figures, moves the right way and never promises what is not there."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_catalog import accelerator, model, models
from bezel_catalog.architectures.layers import FullLayers, SlidingLayers
from bezel_catalog.sizing.host_memory import PINNED_FACTOR
from bezel_catalog.sizing.kv_cache import engine_kv_bytes, heads_of_one, kv_bytes
from bezel_catalog.sizing.memory import GIB, activation_bytes, host_loading_bytes, memory_fit, sequences_at_a_time

L4, RTX = accelerator("nvidia-l4"), accelerator("nvidia-rtx-pro-6000")
QAT = model("gemma-4-12b-it-qat-w4a16")
SETTINGS = {
    "utilization": 0.95,
    "max_model_len": 32768,
    "max_num_seqs": 8,
    "max_num_batched_tokens": 4096,
    "kv_cache_dtype": "fp8",
    "memory_gib": 16,
    "load_strategy": "prefetch",
}


@pytest.mark.parametrize(
    ("name", "tokens", "element", "expected"),
    [
        ("gemma-4-31b-it", 32_768, 2, 3_523_215_360),
        ("gemma-4-31b-it", 131_072, 2, 11_576_279_040),
        ("gemma-4-12b-it", 32_768, 1, 2 * (40 * 8 * 256 * 1024 + 8 * 1 * 512 * 32_768)),
        ("gemma-4-12b-it", 512, 2, 2 * 2 * 512 * (40 * 8 * 256 + 8 * 1 * 512)),
    ],
)
def test_the_cache_of_one_sequence_is_what_the_published_formula_gives(name, tokens, element, expected):
    assert kv_bytes(model(name).architecture, tokens, element_bytes=element) == expected


def test_the_engines_own_reckoning_is_that_of_a_recorded_start():
    # vLLM 0.32.0 on a CPU, a tiny Gemma 4 with a layer of each kind, 64 MiB of cache in blocks of 128 tokens, steps
    # of 2048 tokens one after the other: "Maximum concurrency for 4,096 tokens per request: 48.76x".
    tiny = dataclasses.replace(
        QAT.architecture,
        cache=(
            SlidingLayers(count=1, kv_heads=1, head_dim=32, window=128),
            FullLayers(count=1, kv_heads=1, head_dim=64),
        ),
    )
    needed = engine_kv_bytes(tiny, 4096, element_bytes=2, in_flight=2048, block_tokens=128)
    assert round(64 * 1024**2 / needed, 2) == 48.76


@pytest.mark.slow
@given(st.sampled_from(sorted(models())), st.integers(1, 262_144), st.integers(1, 262_144), st.integers(1, 8192))
def test_the_cache_never_shrinks_with_length(name, shorter, longer, in_flight):
    """Sliding layers stop growing at their window."""
    shape = model(name).architecture
    shorter, longer = sorted((shorter, longer))
    small, large = (kv_bytes(shape, length, element_bytes=1) for length in (shorter, longer))
    assert small <= large
    if shorter >= shape.window:
        assert large - small == 2 * shape.full_layers * shape.full_kv_heads * shape.full_head_dim * (longer - shorter)
    assert engine_kv_bytes(shape, shorter, element_bytes=1, in_flight=in_flight) <= engine_kv_bytes(
        shape, longer, element_bytes=1, in_flight=in_flight
    )
    assert engine_kv_bytes(shape, longer, element_bytes=1, in_flight=in_flight) >= large


def test_the_parts_add_up_to_the_budget():
    fit = memory_fit(QAT, L4, **SETTINGS)
    assert fit.budget_bytes == int(24e9 * 0.95)
    assert fit.resident_bytes + fit.kv_available_bytes == fit.budget_bytes
    assert fit.weight_bytes == 8_150_000_000


@pytest.mark.slow
@given(
    st.integers(1024, 262_144),
    st.integers(1, 256),
    st.integers(256, 32_768),
    st.floats(0.3, 0.97),
    st.sampled_from(["auto", "fp8"]),
)
def test_sequences_that_are_promised_fit_and_one_more_does_not(length, seqs, batched, share, dtype):
    fit = memory_fit(
        QAT,
        L4,
        **{
            **SETTINGS,
            "max_model_len": length,
            "max_num_seqs": seqs,
            "max_num_batched_tokens": batched,
            "utilization": share,
            "kv_cache_dtype": dtype,
        },
    )
    count = fit.full_context_sequences
    assert fit.starts == (count >= 1)
    if count:
        assert (count - 1) * fit.kv_sequence_bytes + fit.kv_start_bytes <= fit.kv_available_bytes
    assert count * fit.kv_sequence_bytes + fit.kv_start_bytes > fit.kv_available_bytes
    assert fit.reported_concurrency <= count + 1


@pytest.mark.parametrize(
    ("change", "more_room"),
    [
        ({"kv_cache_dtype": "auto"}, False),
        ({"max_model_len": 65_536}, False),
        ({"utilization": 0.8}, False),
        ({"max_num_batched_tokens": 16_384}, False),
        ({"speculative": True}, False),
        ({"max_model_len": 8192}, True),
        ({"enforce_eager": True}, True),
        ({"async_scheduling": False}, True),
        ({"cpu_offload_gib": 2}, True),
    ],
)
def test_each_setting_moves_the_room_the_right_way(change, more_room):
    before, after = memory_fit(QAT, L4, **SETTINGS), memory_fit(QAT, L4, **{**SETTINGS, **change})
    if more_room:
        assert after.full_context_sequences > before.full_context_sequences
    else:
        assert after.full_context_sequences < before.full_context_sequences


@pytest.mark.parametrize(
    ("name", "gpu", "starts"),
    [
        ("gemma-4-12b-it-qat-w4a16", L4, True),
        ("gemma-4-12b-it", L4, False),
        ("gemma-4-31b-it-qat-w4a16", L4, False),
        ("gemma-4-12b-it", RTX, True),
        ("gemma-4-26b-a4b-it", RTX, True),
        ("gemma-4-31b-it", RTX, True),
    ],
)
def test_what_fits_which_gpu(name, gpu, starts):
    assert memory_fit(model(name), gpu, **SETTINGS).starts is starts


def test_weights_that_do_not_fit_leave_no_sequence():
    """Not a negative number of them."""
    fit = memory_fit(model("gemma-4-31b-it"), L4, **SETTINGS)
    assert fit.kv_available_bytes < 0
    assert fit.full_context_sequences == 0


@pytest.mark.parametrize(("strategy", "fits"), [("lazy", True), ("prefetch", True), ("eager", False)])
def test_12b_w4a16_loads_into_16_gib_lazily_or_prefetched_only(strategy, fits):
    assert (host_loading_bytes(QAT.weight_bytes, strategy=strategy) <= 16 * GIB) is fits


def test_offloaded_weights_move_from_the_gpu_to_the_host():
    stay, moved = memory_fit(QAT, L4, **SETTINGS), memory_fit(QAT, L4, **SETTINGS, cpu_offload_gib=2)
    assert moved.kv_available_bytes - stay.kv_available_bytes == 2 * GIB
    assert moved.host_needed_bytes - stay.host_needed_bytes == int(2 * GIB * PINNED_FACTOR)


def test_experts_need_less_working_memory_than_a_dense_model_of_their_size():
    dense, sparse = model("gemma-4-31b-it").architecture, model("gemma-4-26b-a4b-it").architecture
    assert activation_bytes(sparse, tokens=4096, sequences=8) < activation_bytes(dense, tokens=4096, sequences=8)


@pytest.mark.slow
@given(st.sampled_from(sorted(models())), st.integers(1, 262_144), st.sampled_from([1, 2, 4, 8]))
def test_devices_share_heads_and_copy_those_that_do_not_divide(name, tokens, shards):
    shape = model(name).architecture
    one, all_of_them = (kv_bytes(shape, tokens, element_bytes=2, shards=count) for count in (shards, 1))
    assert all_of_them / shards <= one <= all_of_them
    if shape.sliding_kv_heads % shards == shape.full_kv_heads % shards == 0:
        assert one * shards == all_of_them


def test_eight_gpus_hold_what_one_cannot():
    big = model("gemma-4-31b-it")
    alone, shared = (memory_fit(big, L4, **SETTINGS, shards=count) for count in (1, 8))
    assert alone.breaks == "weights"
    assert shared.breaks is None
    assert shared.weight_bytes == big.weight_bytes // 8
    assert shared.fixed_bytes == alone.fixed_bytes  # each has a context, kernels and graphs of its own
    assert shared.host_needed_bytes == alone.host_needed_bytes
    moved = memory_fit(big, L4, **SETTINGS, shards=8, cpu_offload_gib=1)
    assert moved.host_needed_bytes - shared.host_needed_bytes == int(8 * GIB * PINNED_FACTOR)


@pytest.mark.parametrize(("heads", "shards", "each"), [(8, 4, 2), (8, 3, 3), (2, 4, 1), (1, 8, 1), (16, 1, 16)])
def test_a_head_is_copied_and_never_split(heads, shards, each):
    assert heads_of_one(heads, shards) == each


@pytest.mark.parametrize(
    ("change", "breaks"),
    [
        ({}, None),
        ({"utilization": 0.3}, "weights"),
        ({"utilization": 0.35}, "overhead"),
        ({"utilization": 0.45, "max_model_len": 131_072}, "KV cache"),
    ],
)
def test_the_part_that_breaks_is_the_first_that_exceeds_the_budget(change, breaks):
    fit = memory_fit(QAT, L4, **{**SETTINGS, **change})
    assert fit.breaks == breaks
    assert fit.starts is (breaks is None)


def test_cache_and_option_bound_the_sequences_that_decode_together():
    fit = memory_fit(QAT, L4, **{**SETTINGS, "max_num_seqs": 64})
    assert sequences_at_a_time(fit, QAT, 1000, kv_cache_dtype="fp8") == 64
    few = sequences_at_a_time(fit, QAT, 32_768, kv_cache_dtype="fp8")
    assert few == fit.kv_available_bytes // fit.kv_sequence_bytes < 64


def test_the_output_names_each_part_of_the_overhead_and_what_it_rests_on():
    output = memory_fit(QAT, L4, **SETTINGS, cpu_offload_gib=1).as_output()
    parts = output["working_memory_gib"] + output["context_kernels_graphs_gib"]
    assert parts == pytest.approx(output["overhead_gib"], abs=0.02)
    assert output["offloaded_gib"] == 1
    assert "fitted to the 31B w4a16 on an L4" in output["basis"]
