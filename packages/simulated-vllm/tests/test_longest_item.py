"""The simulated server refuses a step that is too short for the longest item, as the real one does, and no other."""

from __future__ import annotations

import json

import pytest

from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.configuration.settings import make_settings
from simulated_vllm_support.process import MODEL

VISION = {"vision_config": {"model_type": "gemma4_vision"}}
AUDIO = VISION | {"audio_config": {"model_type": "gemma4_audio"}}
BOTH_WAYS = VISION | {"use_bidirectional_attention": "vision"}
UNIFIED = VISION | {"model_type": "gemma4_unified"}
OFF = "--disable-chunked-mm-input"
NO_VIDEO = '--limit-mm-per-prompt={"video": 0}'
# keys of config.json, arguments, accelerator, tokens of the longest item (0: every step is taken)
CASES = [
    (BOTH_WAYS, [], "nvidia-l4", 2496),
    (UNIFIED, [], "nvidia-l4", 2496),
    (VISION | {"use_bidirectional_attention": None}, [], "nvidia-l4", 0),
    (VISION, [OFF], "nvidia-l4", 2496),
    (BOTH_WAYS, [], "tpu-v6e", 0),
    (BOTH_WAYS, [OFF], "tpu-v6e", 2496),
    (BOTH_WAYS, [NO_VIDEO], "nvidia-l4", 280),
    (BOTH_WAYS, [NO_VIDEO, '--mm-processor-kwargs={"max_soft_tokens": 1120}'], "nvidia-l4", 1120),
    (BOTH_WAYS, [NO_VIDEO, "--enable-mm-embeds"], "nvidia-l4", 2496),
    (BOTH_WAYS, ['--limit-mm-per-prompt={"video": {"count": 1, "num_frames": 8}}'], "nvidia-l4", 624),
    (BOTH_WAYS, ["--language-model-only"], "nvidia-l4", 0),
    (AUDIO, [OFF, NO_VIDEO], "nvidia-l4", 750),
    ({}, [OFF], "nvidia-l4", 0),
]


def settings_of(folder, keys, arguments, accelerator):
    (folder / "config.json").write_text(json.dumps(MODEL | keys))
    (folder / "model.safetensors").write_bytes(b"\0" * 400_000)
    machine = machine_from_environment({
        "LOCALCLOUD_MOUNTS": json.dumps({"/mnt/models": str(folder.parent)}),
        "LOCALCLOUD_HARDWARE": json.dumps({
            "accelerator": accelerator, "accelerators": 1, "cpu": 8, "memory_gib": 32,
        }),
    })  # fmt: skip
    command_line = [f"/mnt/models/{folder.name}", "--max-model-len=1024", "--max-num-seqs=4", *arguments]
    return make_settings(parse(command_line), machine, {})


@pytest.mark.parametrize(("keys", "arguments", "accelerator", "longest"), CASES)
def test_a_step_below_the_longest_item_does_not_start(tmp_path, keys, arguments, accelerator, longest):
    enough = longest or 64
    settings_of(tmp_path, keys, [*arguments, f"--max-num-batched-tokens={enough}"], accelerator)
    if not longest:
        return
    with pytest.raises(StartError) as caught:
        settings_of(tmp_path, keys, [*arguments, f"--max-num-batched-tokens={longest - 1}"], accelerator)
    assert caught.value.kind == "ValueError"
    assert f"max_tokens_per_mm_item ({longest}) is larger than max_num_batched_tokens" in caught.value.message


def test_the_default_step_is_raised_to_the_longest_item(tmp_path):
    assert settings_of(tmp_path, BOTH_WAYS, [], "nvidia-l4").max_batched_tokens == 2496
    with pytest.raises(StartError, match="2496"):  # a model that vLLM could split images of keeps its default
        settings_of(tmp_path, VISION, [OFF], "nvidia-l4")
