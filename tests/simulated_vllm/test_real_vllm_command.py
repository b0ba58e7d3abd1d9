"""The command line for a real vLLM: what is rewritten is said, everything else passes unchanged."""

from __future__ import annotations

import json

import pytest

from bezel_localcloud.services.cloud_run.runtime.real_vllm import command

CONTAINER = (
    "/mnt/models/gemma-4-12B-it-qat-w4a16-ct",
    "--served-model-name=gemma",
    "--max-model-len=8192",
    "--gpu-memory-utilization=0.95",
    "--max-num-seqs=8",
    "--max-num-batched-tokens=4096",
    "--kv-cache-dtype=fp8",
    "--enable-auto-tool-choice",
    "--tool-call-parser=gemma4",
    "--dtype=bfloat16",
    "--async-scheduling",
    "--port=8080",
)


def command_for(mount, *arguments: str):
    return command([*CONTAINER, *arguments], model_dir=mount / "tiny", address="/s/1:8000")


def test_names_lengths_batching_and_parsers_pass_unchanged(mount):
    argv, _, _ = command_for(mount)
    assert argv[:3] == ["vllm", "serve", str(mount / "tiny")]
    for kept in ("--served-model-name=gemma", "--max-model-len=8192", "--max-num-seqs=8", "--tool-call-parser=gemma4"):
        assert kept in argv
    assert argv[-1] == "--uds=/s/1:8000"
    assert "--port=8080" not in argv


def test_what_speaks_of_the_accelerator_is_left_out_and_said(mount):
    argv, notes, _ = command_for(mount, "-tp", "4", "--quantization", "fp8")
    for gone in ("gpu-memory-utilization", "kv-cache-dtype", "quantization"):
        assert not any(gone in word for word in argv)
        assert any(gone in note for note in notes)
    assert "-tp" not in argv
    assert "4" not in argv


def test_without_a_served_name_clients_still_find_the_model_by_its_path(mount):
    argv, _, _ = command(["/mnt/models/m"], model_dir=mount / "tiny", address="/s/1:8000")
    assert "--served-model-name=/mnt/models/m" in argv
    assert not any(word.startswith("--served-model-name=/mnt") for word in command_for(mount)[0])


@pytest.mark.parametrize(("asked", "kept"), [("8k", "8k"), ("300000", "16384"), ("auto", "auto")])
def test_a_context_beyond_the_small_model_is_cut_to_it(mount, asked, kept):
    argv, notes, _ = command(["/m", "--max-model-len", asked], model_dir=mount / "tiny", address="/s/1:8000")
    joined = " ".join(argv)
    assert f"--max-model-len={kept}" in joined or f"--max-model-len {kept}" in joined
    assert any("max-model-len" in note for note in notes) == (asked == "300000")


def test_the_assistant_beside_the_small_model_takes_the_real_ones_place(mount):
    config = json.dumps({"method": "mtp", "model": "/mnt/models/a", "num_speculative_tokens": 3})
    argv, notes, _ = command_for(mount, f"--speculative-config={config}")
    text = next(word for word in argv if word.startswith("--speculative-config="))
    assert json.loads(text.partition("=")[2])["model"] == str(mount / "tiny-assistant")
    assert any("/mnt/models/a" in note for note in notes)
    short, _, _ = command_for(mount, "--spec-method=mtp", "--spec-model", "/mnt/models/a", "--spec-tokens=3")
    assert f"--spec-model={mount / 'tiny-assistant'}" in short
    assert "--spec-tokens=3" in short


def test_without_an_assistant_a_model_does_not_draft(mount):
    arguments = ["/m", "--spec-model=/mnt/a", "--spec-tokens=3"]
    argv, notes, _ = command(arguments, model_dir=mount / "moe", address="/s/1:8000")
    assert not any("spec" in word for word in argv)
    assert sum("there is no assistant" in note for note in notes) == 2


def test_environment_keeps_everything_on_the_machine(mount):
    _, _, environment = command_for(mount)
    assert environment["HF_HUB_OFFLINE"] == environment["VLLM_NO_USAGE_STATS"] == "1"
