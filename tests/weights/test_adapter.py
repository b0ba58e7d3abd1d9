"""Folder of an adapter: files that vLLM loads, and configurations that it refuses."""

import json

import pytest

from bezel.weights.adapter import adapter_problems, missing_adapter_parts

CONFIG = {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj"], "peft_type": "LORA"}


@pytest.mark.parametrize(
    ("files", "lacks"),
    [
        ({"adapter_config.json": 9, "adapter_model.safetensors": 9}, []),
        ({"adapter_config.json": 9, "adapter_model.bin": 9, "README.md": 0}, []),
        ({}, ["adapter_config.json is missing", "there are no weights (adapter_model.safetensors)"]),
        ({"adapter_config.json": 9, "model.safetensors": 9}, ["there are no weights (adapter_model.safetensors)"]),
        ({"adapter_config.json": 0, "adapter_model.safetensors": 9}, ["adapter_config.json is empty"]),
        ({"adapter_config.json": 9, "adapter_model.pt": 0}, ["adapter_model.pt is empty"]),
    ],
)
def test_an_adapter_is_a_configuration_and_weights(files: dict[str, int], lacks: list[str]) -> None:
    assert missing_adapter_parts(files) == lacks


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"r": 16},
        {"bias": "none", "use_rslora": True, "init_lora_weights": "gaussian", "modules_to_save": None},
        {"rank_pattern": {"q_proj": 16}, "modules_to_save": ["score"]},
    ],
)
def test_a_configuration_that_vllm_takes_is_no_problem(change: dict) -> None:
    assert adapter_problems(json.dumps(CONFIG | change), 16) == []


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        ("{not json", "is not JSON"),
        ("[1]", "is not a JSON object"),
        (json.dumps({"lora_alpha": 16}), "has no r, target_modules"),
        (json.dumps(CONFIG | {"r": 64}), "its rank is 64, above max-lora-rank=16"),
        (json.dumps(CONFIG | {"rank_pattern": {"q_proj": 64}}), "its rank is 64, above max-lora-rank=16"),
        (json.dumps(CONFIG | {"r": 0}), "expected ranks above 0, got '0'"),
        (json.dumps(CONFIG | {"r": "eight"}), "expected ranks above 0, got 'eight'"),
        (json.dumps(CONFIG | {"rank_pattern": {"q_proj": -1}}), "expected ranks above 0, got '-1'"),
        (json.dumps(CONFIG | {"lora_alpha": "16"}), "expected a number as lora_alpha, got '16'"),
        (json.dumps(CONFIG | {"use_dora": True}), "does not support use_dora"),
        (json.dumps(CONFIG | {"lora_bias": True}), "does not support lora_bias"),
        (json.dumps(CONFIG | {"layer_replication": [[0, 1]]}), "does not support layer_replication"),
        (json.dumps(CONFIG | {"bias": "all"}), "does not support an adapter's bias"),
        (json.dumps(CONFIG | {"modules_to_save": ["lm_head"]}), "does not support modules_to_save"),
        (json.dumps(CONFIG | {"init_lora_weights": "pissa"}), "does not support init_lora_weights=pissa"),
    ],
)
def test_a_configuration_that_vllm_refuses_is_a_problem(content: str, refusal: str) -> None:
    (problem,) = adapter_problems(content, 16)
    assert refusal in problem
