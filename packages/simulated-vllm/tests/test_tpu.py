"""The simulated server on a TPU: what fits there, what it refuses, how long it compiles, how fast it then is."""

from __future__ import annotations

import pytest

from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import accelerators, machine_from_environment
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.configuration.tpu import batch_sizes
from bezel_simulated_vllm.scheduling.virtual_load import Rig
from bezel_simulated_vllm.startup import start
from simulated_vllm_support.arguments import L4_QAT

ONE = {"accelerator": "tpu-v6e", "accelerators": 1, "cpu": 44, "memory_gib": 176}
FOUR = {"accelerator": "tpu-v6e", "accelerators": 4, "cpu": 180, "memory_gib": 720}
EIGHT_L4 = {"accelerator": "nvidia-l4", "accelerators": 8, "cpu": 96, "memory_gib": 384}
V6E1 = ("/mnt/models/bf16", "--max-model-len=8192", "--max-num-batched-tokens=4096")
V6E4 = ("/mnt/models/bf16", "--max-model-len=65536", "--max-num-batched-tokens=4096", "--tensor-parallel-size=4")
MOE = ("/mnt/models/moe", "--max-model-len=16384", "--max-num-batched-tokens=4096", "--tensor-parallel-size=4")


def startup_seconds(environment, *arguments: str, hardware=ONE, **variables: str) -> float:
    waits: list[float] = []
    start(parse(arguments), machine_from_environment(environment(**hardware)), variables, waits.append)
    return sum(waits)


def test_four_chips_hold_the_tokens_that_a_real_server_reported(settings):
    # Measured: 12B in 16 bits on v6e-4, 88.98 GiB for the cache, 242,944 tokens.
    memory = settings(*V6E4, **FOUR).memory
    assert memory.tokens == pytest.approx(242_944, rel=0.01)
    assert 4 * memory.available / (1 << 30) == pytest.approx(88.98, rel=0.005)
    assert memory.layout.block_bytes * 4 == 393_216 * 128, "heads that do not divide lie on every chip"


def test_on_one_chip_the_12b_has_room_for_8192_tokens_and_no_more(settings):
    assert settings(*V6E1, **ONE).memory.concurrency >= 1
    with pytest.raises(StartError, match="larger than the available KV cache memory"):
        settings("/mnt/models/bf16", "--max-model-len=16384", **ONE)


def test_sliding_layers_keep_every_token_there_and_not_on_a_gpu(settings):
    there = settings(*V6E4, **FOUR).memory.layout
    assert there.blocks(65536) == 65536 // 128
    gpu = settings(*V6E4, **{**FOUR, "accelerator": "nvidia-rtx-pro-6000"}).memory.layout
    assert gpu.blocks(65536) * gpu.block_bytes < there.blocks(65536) * there.block_bytes


def test_an_8_bit_cache_saves_nothing_and_becomes_another_type(settings, environment, capsys):
    plain, fp8 = settings(*V6E4, **FOUR), settings(*V6E4, "--kv-cache-dtype=fp8", **FOUR)
    assert plain.memory.blocks == fp8.memory.blocks
    startup_seconds(environment, *V6E4, "--kv-cache-dtype=fp8", hardware=FOUR)
    assert "Automatically using fp8_e5m2" in capsys.readouterr().out
    startup_seconds(environment, "/mnt/models/qat", *L4_QAT, hardware={})
    assert "fp8_e5m2" not in capsys.readouterr().out


def test_weights_of_4_bits_are_refused_there_as_the_plugin_refuses_them(settings):
    with pytest.raises(StartError, match="No compressed-tensors compatible scheme was found for layer") as caught:
        settings("/mnt/models/qat", "--max-model-len=8192", **ONE)
    assert (caught.value.kind, caught.value.stage) == ("NotImplementedError", "engine")
    with pytest.raises(StartError, match="modelopt quantization is currently not supported in tpu"):
        settings("/mnt/models/bf16", "--quantization=modelopt", **ONE)


def test_too_many_sequences_at_a_time_exhaust_the_memory(settings):
    assert settings(*MOE, "--max-num-seqs=256", **FOUR).max_num_seqs == 256
    with pytest.raises(StartError, match="RESOURCE_EXHAUSTED") as caught:
        settings(*MOE, "--max-num-seqs=2048", **FOUR)
    assert caught.value.stage == "engine"


def test_weights_that_do_not_fit_one_chip_exhaust_it(settings):
    with pytest.raises(StartError, match="RESOURCE_EXHAUSTED"):
        settings("/mnt/models/moe", "--max-model-len=8192", **ONE)


def test_drafts_of_n_grams_are_allowed_there(settings):
    made = settings(*MOE, "--spec-method=ngram", "--spec-tokens=3", **FOUR)
    assert (made.speculation.method, made.async_scheduling) == ("ngram", False)


@pytest.mark.parametrize(("gap", "count"), [(0, 9), (256, 20)])
def test_batches_are_padded_to_so_many_sizes(gap, count):
    sizes = batch_sizes(4096, gap)
    assert (len(sizes), sizes[0], sizes[-1]) == (count, 16, 4096)


def test_compiling_is_most_of_a_start_and_finer_padding_compiles_more(environment):
    cold = startup_seconds(environment, *V6E1)
    assert cold == pytest.approx(600, rel=0.05), "622 s were measured from the machine's start"
    finer = startup_seconds(environment, *V6E1, VLLM_TPU_BUCKET_PADDING_GAP="256")
    assert finer - cold == pytest.approx(11 / 9 * (cold - 45), rel=0.02)
    assert startup_seconds(environment, *MOE, hardware=FOUR, VLLM_TPU_BUCKET_PADDING_GAP="256") == pytest.approx(
        1800, rel=0.1
    )


def test_a_kept_compile_cache_shortens_the_next_start_of_the_same_graphs(environment, tmp_path):
    kept = {"VLLM_XLA_CACHE_PATH": str(tmp_path / "cache")}
    cold, warm = startup_seconds(environment, *V6E1, **kept), startup_seconds(environment, *V6E1, **kept)
    assert warm / cold == pytest.approx(497 / 857, rel=0.03)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert startup_seconds(environment, *V6E1, "--max-num-seqs=64", **kept) == cold, "other graphs"
    assert len(list((tmp_path / "cache").iterdir())) == 2
    assert startup_seconds(environment, *V6E1) == cold, "nowhere to keep them"


def test_a_compile_cache_that_cannot_be_written_is_none(environment, tmp_path):
    (tmp_path / "file").write_text("")
    cold = startup_seconds(environment, *V6E1, VLLM_XLA_CACHE_PATH=str(tmp_path / "file" / "cache"))
    assert cold == startup_seconds(environment, *V6E1)


@pytest.mark.parametrize(("arguments", "hardware", "speed"), [(V6E1, ONE, 45), (V6E4, FOUR, 150)])
def test_one_stream_is_as_fast_as_was_measured(settings, arguments, hardware, speed):
    rig = Rig(settings(*arguments, **hardware))
    outcome = rig.ask(64, 101)
    rig.run()
    assert 100 / (outcome.times[-1] - outcome.times[0]) == pytest.approx(speed, rel=0.05)


@pytest.mark.slow
def test_64_users_together_are_as_fast_as_was_measured(settings):
    rig = Rig(settings(*V6E1, **ONE))
    done = 0

    def again() -> None:
        nonlocal done
        done += 1
        if done < 256 - 64:
            rig.ask(128, 128, then=again)

    for _ in range(64):
        rig.ask(128, 128, then=again)
    rig.run()
    tokens = sum(len(outcome.tokens) for outcome in rig.outcomes)
    assert tokens / rig.clock.time == pytest.approx(990, rel=0.1)


@pytest.mark.slow
def test_a_request_with_a_seed_is_refused_there(serve):
    body = {"model": "m", "prompt": "Say", "max_tokens": 2, "seed": 1}
    with serve("/mnt/models/bf16", "--max-model-len=8192", "--served-model-name=m", speed=100_000, **ONE) as client:
        refused = client.post("/v1/completions", json=body)
        assert (refused.status_code, refused.json()["error"]["message"]) == (
            400,
            "JAX does not support per-request seed.",
        )
        assert client.post("/v1/completions", json={**body, "temperature": 0}).status_code == 200


def test_eight_l4_share_a_model_that_one_cannot_hold(settings):
    arguments = ("/mnt/models/moe", "--max-model-len=16384", "--tensor-parallel-size=8")
    assert settings(*arguments, **EIGHT_L4).memory.concurrency > 1
    with pytest.raises(StartError, match="CUDA out of memory"):
        settings("/mnt/models/moe", "--max-model-len=16384", **{**EIGHT_L4, "accelerators": 1})
    with pytest.raises(StartError, match="larger than the number of available GPUs"):
        settings(*arguments, **{**EIGHT_L4, "accelerators": 4})


def test_only_a_tpu_has_what_is_compiled_beforehand():
    assert [name for name, chip in accelerators().items() if chip.xla] == ["tpu-v6e"]
