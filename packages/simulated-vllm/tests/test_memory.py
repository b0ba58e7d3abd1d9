"""Fit of a model: weights, cache and host memory of real shapes, and the capacity that a server reports."""

from __future__ import annotations

import dataclasses

import pytest

from bezel_catalog import model, models
from bezel_simulated_vllm.configuration.checkpoint import read_checkpoint
from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import accelerators
from bezel_simulated_vllm.configuration.kv_layout import kv_layout
from bezel_simulated_vllm.scheduling.virtual_load import Rig
from bezel_simulated_vllm.synthetic_weights import model_files
from simulated_vllm_support.arguments import L4_QAT


def test_the_layout_gives_the_capacity_that_a_real_server_reported(mount):
    # Measured: vLLM 0.32.0 on a CPU (blocks of 128), 64 MiB of cache, 4096 batched tokens, context 32768.
    layout = kv_layout(read_checkpoint(mount / "tiny"), dtype="auto", in_flight_tokens=4096, block=128)
    blocks = (64 << 20) // layout.block_bytes
    assert f"{blocks / layout.max_blocks(32768):.2f}" == "7.47"
    assert int(blocks / layout.max_blocks(32768) * 32768) == 244_922


def test_the_recorded_capacity_of_a_1_gib_cache_comes_out(mount):
    # kv_cache_max_concurrency of the recorded /metrics: 32768 blocks, context 4096, 2048 tokens in flight.
    layout = kv_layout(read_checkpoint(mount / "tiny"), dtype="auto", in_flight_tokens=2048, block=128)
    blocks = (1 << 30) // layout.block_bytes
    assert blocks == 32768
    assert int(blocks / layout.max_blocks(4096) * 4096) == 3_195_660


def test_a_12b_in_4_bits_fits_an_l4(settings):
    memory = settings("/mnt/models/qat", *L4_QAT).memory
    assert memory.weights == 8_150_000_000
    assert 5 < memory.concurrency < 9
    assert memory.tokens == int(memory.concurrency * 32768)


def test_another_context_changes_the_reported_tokens(settings):
    short, long = (settings("/mnt/models/qat", *L4_QAT, f"--max-model-len={n}").memory for n in (8192, 65536))
    assert short.tokens != long.tokens
    assert short.blocks == long.blocks


def test_a_12b_in_16_bits_runs_out_of_an_l4s_memory(settings):
    with pytest.raises(StartError, match="CUDA out of memory") as caught:
        settings("/mnt/models/bf16", "--max-model-len=8192", memory_gib=32)
    assert caught.value.stage == "engine"


def test_a_12b_in_16_bits_fits_a_larger_accelerator(settings):
    arguments = ("/mnt/models/bf16", "--max-model-len=8192")
    assert settings(*arguments, memory_gib=32, accelerator="nvidia-rtx-pro-6000").memory.concurrency > 10


def test_a_cache_too_small_for_one_request_names_the_length_that_fits(settings):
    arguments = ("/mnt/models/qat", *L4_QAT, "--gpu-memory-utilization=0.5", "--max-model-len=262144")
    with pytest.raises(StartError, match="larger than the available KV cache memory") as caught:
        settings(*arguments)
    estimate = int(caught.value.message.partition("estimated maximum model length is ")[2].partition(".")[0])
    assert settings(*arguments, f"--max-model-len={estimate}").max_model_len == estimate
    with pytest.raises(StartError):
        settings(*arguments, f"--max-model-len={estimate + 64}")


def test_auto_takes_the_longest_context_that_fits(settings):
    arguments = ("/mnt/models/qat", *L4_QAT, "--max-model-len=auto")
    assert settings(*arguments).max_model_len == 262_144
    assert settings(*arguments, "--gpu-memory-utilization=0.5").max_model_len < 262_144


def test_no_memory_left_for_the_cache_is_said(settings):
    with pytest.raises(StartError, match="No available memory for the cache blocks"):
        settings("/mnt/models/qat", *L4_QAT, "--gpu-memory-utilization=0.4")


def test_fp8_halves_the_cache(settings):
    auto, fp8 = (settings("/mnt/models/qat", *L4_QAT, f"--kv-cache-dtype={kind}").memory for kind in ("auto", "fp8"))
    assert fp8.blocks // 2 == pytest.approx(auto.blocks, abs=1)


def test_offloaded_weights_move_to_the_host_and_are_read_over_its_link(settings):
    stay, moved = (settings("/mnt/models/qat", *L4_QAT, *more) for more in ((), ("--cpu-offload-gb=2",)))
    assert moved.memory.available - stay.memory.available == 2 << 30
    # Pinned memory has powers of two, one for each tensor.
    assert 1 < (moved.memory.host_peak - stay.memory.host_peak) / (2 << 30) < 2
    pace = []
    for one in (stay, moved):
        rig = Rig(one)
        outcome = rig.ask(100, 3)
        rig.run()
        pace.append(outcome.gaps[0])
    chip = stay.machine.accelerator
    on_device = (2 << 30) / (chip.memory_bytes_per_second * chip.memory_efficiency)
    assert pace[1] - pace[0] == pytest.approx((2 << 30) / chip.host_bytes_per_second - on_device, rel=1e-6)


def test_the_host_must_hold_an_offloaded_cache(settings):
    """It is mapped at the start."""
    stay, moved = (
        settings("/mnt/models/qat", *L4_QAT, *options).memory for options in ((), ("--kv-offloading-size=10",))
    )
    assert moved.host_peak > stay.host_peak
    with pytest.raises(StartError) as caught:
        settings("/mnt/models/qat", *L4_QAT, "--kv-offloading-size=64")
    assert (caught.value.stage, caught.value.status) == ("host-memory", 137)


def test_no_more_is_offloaded_than_there_is_and_the_host_must_hold_it(settings):
    with pytest.raises(StartError) as caught:
        settings("/mnt/models/qat", *L4_QAT, "--cpu-offload-gb=50", memory_gib=16)
    assert caught.value.stage == "host-memory"
    assert settings("/mnt/models/qat", *L4_QAT, "--cpu-offload-gb=50", memory_gib=32).memory.weights == 0


def test_an_assistant_takes_room_from_the_cache(settings):
    plain = settings("/mnt/models/qat", *L4_QAT)
    drafting = settings("/mnt/models/qat", *L4_QAT, "--spec-model=/mnt/models/assistant", "--spec-tokens=3")
    assert plain.memory.available - drafting.memory.available == 800_000_000


@pytest.mark.parametrize(("memory_gib", "starts"), [(8, False), (16, True)])
def test_host_memory_must_hold_a_shard_beside_the_process(settings, memory_gib, starts):
    if starts:
        settings("/mnt/models/qat", *L4_QAT, memory_gib=memory_gib)
        return
    with pytest.raises(StartError) as caught:
        settings("/mnt/models/qat", *L4_QAT, memory_gib=memory_gib)
    assert (caught.value.stage, caught.value.status) == ("host-memory", 137)


@pytest.mark.parametrize("name", [*models()])
def test_made_up_files_carry_the_catalogues_shape_and_size(tmp_path, name):
    row = model(name)
    files = model_files(name)
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    checkpoint = read_checkpoint(tmp_path)
    shape = row.architecture
    assert checkpoint.weight_bytes == row.weight_bytes
    assert (checkpoint.sliding_layers, checkpoint.full_layers) == (shape.sliding_layers, shape.full_layers)
    assert (checkpoint.full_kv_heads, checkpoint.sliding_kv_heads) == (shape.full_kv_heads, shape.sliding_kv_heads)
    assert sum(checkpoint.attending_layers) == shape.layers
    assert (checkpoint.full_head_dim, checkpoint.window, checkpoint.context) == (
        shape.full_head_dim,
        shape.window,
        shape.context,
    )
    assert checkpoint.bits_per_weight == {"bf16": 16.0, "fp8": 8.0, "w4a16": 4.25}[row.encoding]
    assert sum(map(len, files.values())) < 20_000


def test_the_cache_of_a_sequence_is_the_published_one(tmp_path):
    for file, content in model_files("gemma-4-31b-it").items():
        (tmp_path / file).write_bytes(content)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.kv_bytes_read(32_768, 2) == 3_523_215_360
    assert checkpoint.kv_bytes_read(131_072, 2) == 11_576_279_040


@pytest.mark.parametrize(("name", "layers", "all_layers"), [("e2b", (12, 3), (28, 7)), ("e4b", (20, 4), (35, 7))])
def test_layers_that_share_a_cache_need_no_room_and_read_all_the_same(tmp_path, name, layers, all_layers):
    for file, content in model_files(f"gemma-4-{name}-it").items():
        (tmp_path / file).write_bytes(content)
    checkpoint = read_checkpoint(tmp_path)
    assert (checkpoint.sliding_layers, checkpoint.full_layers) == layers
    assert checkpoint.attending_layers == all_layers
    alone = dataclasses.replace(checkpoint, shared_sliding_layers=0, shared_full_layers=0)
    assert kv_layout(checkpoint, dtype="auto", in_flight_tokens=1) == kv_layout(alone, dtype="auto", in_flight_tokens=1)
    assert checkpoint.kv_bytes_read(4096, 2) > alone.kv_bytes_read(4096, 2)


def test_an_assistant_shares_every_cache(mount):
    checkpoint = read_checkpoint(mount / "assistant")
    assert (checkpoint.sliding_layers, checkpoint.full_layers) == (0, 0)
    assert checkpoint.attending_layers == (3, 1)


def test_experts_leave_most_weights_untouched(mount):
    checkpoint = read_checkpoint(mount / "moe")
    assert 0.1 < checkpoint.active_fraction < 0.35


def test_every_accelerator_has_a_source_and_possible_figures():
    for chip in accelerators().values():
        assert chip.source
        assert chip.date
        assert 0 < chip.memory_efficiency < 1
        assert 0 < chip.compute_efficiency < 1


@pytest.mark.parametrize(("folder", "billions"), [("qat", 12), ("bf16", 12), ("moe", 3.8)])
def test_the_arithmetic_is_that_of_the_published_active_parameters(mount, folder, billions):
    assert read_checkpoint(mount / folder).active_parameters / 1e9 == pytest.approx(billions, rel=0.35)


def test_embeddings_of_single_layers_are_resident_but_no_step_reads_them(tmp_path):
    for file, content in model_files("gemma-4-e2b-it").items():
        (tmp_path / file).write_bytes(content)
    checkpoint = read_checkpoint(tmp_path)
    assert checkpoint.active_parameters / 1e9 == pytest.approx(2.3, rel=0.35)
    assert checkpoint.step_weight_bytes == checkpoint.weight_bytes - 2 * 262_144 * 35 * 256


def test_room_for_adapters_is_taken_from_the_cache(settings):
    """As much as the real server takes."""
    bare = settings("/mnt/models/tiny").memory
    with_lora = settings("/mnt/models/tiny", "--enable-lora", "--max-loras", "8", "--max-lora-rank", "64").memory
    assert with_lora.weights - bare.weights == bare.available - with_lora.available == 2_293_760  # measured
    assert settings("/mnt/models/tiny", "--max-loras", "8").memory == bare
