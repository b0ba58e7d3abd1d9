"""The command line for a real vLLM: what is rewritten is said, everything else passes unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bezel_localcloud.core.paths import Paths
from bezel_localcloud.services.cloud_run.runtime.real_vllm import command
from bezel_localcloud.services.model_hub.stored import put_repository

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


def test_adapters_are_those_of_the_small_model(mount, tmp_path):
    paths, bucket = Paths(tmp_path / "cloud"), tmp_path / "bucket"
    paths.create()
    (bucket / "adapters" / "sql").mkdir(parents=True)
    (bucket / "adapters" / "sql" / "adapter_config.json").write_text("{}")
    put_repository(paths, "acme/law-lora", {"adapter_config.json": b"{}"})
    named = ["sql=/mnt/models/adapters/sql", "law=acme/law-lora", "none=/mnt/models/adapters/none", "gone=acme/gone"]
    argv, notes, _ = command(
        ["/mnt/models/m", "--enable-lora", "--lora-modules", *named, "--max-loras=2"],
        model_dir=mount / "tiny",
        address="/s/1:8000",
        paths=paths,
        mounts={"/mnt/models": str(bucket)},
    )
    begin = argv.index("--lora-modules") + 1
    modules = dict(word.split("=", 1) for word in argv[begin : begin + len(named)])
    assert (modules["none"], modules["gone"]) == ("/mnt/models/adapters/none", "acme/gone")  # the server refuses them
    hidden = json.loads((mount / "tiny" / "config.json").read_text())["hidden_size"]
    for name in ("sql", "law"):
        header = (Path(modules[name]) / "adapter_model.safetensors").read_bytes()
        rows = json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])
        assert next(row["shape"] for key, row in rows.items() if "lora_B" in key) == [hidden, 1]
    assert sum("adapter of zeros" in note for note in notes) == 2
    assert "--max-loras=2" in argv


def test_names_of_adapters_lead_out_of_no_folder(mount, tmp_path):
    paths = Paths(tmp_path / "cloud")
    paths.create()
    put_repository(paths, "acme/law-lora", {"adapter_config.json": b"{}"})
    arguments = ["/m", "--enable-lora", "--lora-modules", '{"name": "../../x", "path": "acme/law-lora"}']
    argv, _, _ = command(arguments, model_dir=mount / "tiny", address="/s/1:8000", paths=paths)
    module = json.loads(argv[argv.index("--lora-modules") + 1])
    assert Path(module["path"]).resolve().is_relative_to(paths.hub.resolve())
