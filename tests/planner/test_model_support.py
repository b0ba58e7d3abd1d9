"""Models of a project that the release or the accelerator does not serve are refused with the reason."""

import dataclasses
import json
from datetime import date
from typing import Any

import pytest

from bezel.model_sources.rows import row_of
from bezel.planner import PlanError, make_plan
from bezel_catalog.project_models.row import model_of
from tests.support.model_sources.described import SETTINGS, description_of
from tests.support.model_sources.tiny import LLAMA, llama_tensors, size_of


def plan(config: dict[str, Any], **settings: object) -> Any:
    """The plan of a stack with a Llama of this configuration."""
    row = row_of(description_of(), "ours", date(2026, 11, 1))
    model = model_of(dataclasses.replace(row, config=json.dumps({**LLAMA, **config})), "catalog.toml")
    return make_plan({**SETTINGS, **settings}, project="acme-llm", stack="dev", models={"ours": model})


def refusal(config: dict[str, Any], **settings: object) -> str:
    with pytest.raises(PlanError) as refused:
        plan(config, **settings)
    return str(refused.value)


def test_served_model_is_planned() -> None:
    assert plan({}).weight_bytes == size_of(llama_tensors())


def test_class_that_the_release_lacks_is_refused() -> None:
    assert "MineForCausalLM is not in the registry of vLLM 0.32.0" in refusal({"architectures": ["MineForCausalLM"]})


def test_layers_without_a_formula_are_refused() -> None:
    text = refusal({"model_type": "qwen4_exp"})
    assert "cannot be computed: qwen4_exp has pooled keys" in text


def test_layers_with_a_formula_need_its_sizes() -> None:
    text = refusal({"model_type": "minimax_m3"})
    assert "gives no sparse_attention_config, which minimax_m3 needs" in text


def test_quantisation_that_the_release_lacks_is_refused() -> None:
    assert "does not load hqq" in refusal({"quantization_config": {"quant_method": "hqq"}})


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max-model-len": 9000}, "was made for 8192 tokens"),
        ({"enable-expert-parallel": True}, "has no experts"),
        ({"quantization": "fp8"}, "cannot be planned"),
        ({"enable-auto-tool-choice": True}, "set tool-call-parser, or"),
    ],
)
def test_options_are_checked_against_the_models_own_configuration(options: dict[str, object], reason: str) -> None:
    assert reason in refusal({}, vllm=options)


@pytest.mark.parametrize(
    "options",
    [
        {"reasoning-parser": "qwen3"},
        {"tool-call-parser": "hermes", "enable-auto-tool-choice": True},
        {"disable-sliding-window": True},
        {"attention-backend": "FLASH_ATTN"},
        {"mamba-cache-mode": "align"},
    ],
)
def test_rules_of_gemma_do_not_hold_for_another_family(options: dict[str, object]) -> None:
    assert plan({}, vllm=options).model == "ours"


def test_defaults_are_those_of_the_model() -> None:
    arguments = plan({"dtype": "float16"}).server.arguments
    assert "--dtype=float16" in arguments
    assert "--max-model-len=8192" in arguments
    assert not any("parser" in argument for argument in arguments)


@pytest.mark.parametrize(
    ("name", "release", "refused"),
    [
        ("LlamaForCausalLM", "0.32.0", False),
        ("LlamaForCausalLM", "0.33.0", False),
        ("MambaForCausalLM", "0.32.0", True),
        ("GPT2LMHeadModel", "0.33.0", True),
    ],
)
def test_a_class_without_adapters_is_refused_with_them(name: str, release: str, refused: bool) -> None:
    settings: dict[str, Any] = {"adapters": [{"name": "sql"}], "vllm_version": release}
    config = {"architectures": [name]}
    if not refused:
        assert "--enable-lora" in plan(config, **settings).server.arguments
        return
    plan(config, vllm_version=release)
    says = f"the class of {name} in vLLM {release} takes no adapters"
    assert f"bezel:adapters = sql\n   {says}" in refusal(config, **settings)
    by_options = {"enable-lora": True, "lora-modules": ["sql=/mnt/models/sql"]}
    assert f"bezel:vllm.enable-lora = true\n   {says}" in refusal(config, vllm=by_options, vllm_version=release)
