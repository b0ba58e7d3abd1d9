"""Settings that circulate in scripts for these very systems and cannot work: each is refused with its way out."""

from typing import Any

import pytest

from bezel.planner import make_plan
from tests.support.planner.l4_stack import problems_of, with_changes

DRAFT = "/mnt/models/gemma-4-12B-it-assistant"
# What is set, and of the one problem: its key, a part of the value, of the consequence and of the repair.
CIRCULATE: dict[str, tuple[dict[str, Any], str, str, str, str]] = {
    "drafting by a method without a model": (
        {"vllm": {"spec-method": "mtp", "spec-tokens": 3}},
        "vllm.spec-method",
        "mtp",
        "vLLM does not start",
        f"spec-model: {DRAFT}",
    ),
    "a hub id on a service that is offline": (
        {"vllm": {"spec-method": "mtp", "spec-tokens": 3, "spec-model": "google/gemma-4-12B-it-assistant"}},
        "vllm.spec-model",
        "google/gemma-4-12B-it-assistant",
        "HF_HUB_OFFLINE=1",
        f"write {DRAFT}",
    ),
    "the same draft said twice": (
        {
            "vllm": {
                "speculative-config": {"method": "mtp", "model": DRAFT, "num_speculative_tokens": 3},
                "spec-tokens": 3,
            }
        },
        "vllm.spec-tokens",
        "3",
        "mutually exclusive",
        "keep one of them",
    ),
    "an option of an older release": (
        {"vllm": {"num-speculative-tokens": 3}},
        "vllm.num-speculative-tokens",
        "3",
        "exits with code 2",
        "use spec-tokens",
    ),
    "a limit in the notation of an older release": (
        {"vllm": {"limit-mm-per-prompt": "image=4,audio=1"}},
        "vllm.limit-mm-per-prompt",
        "image=4,audio=1",
        "exits with code 2",
        "write a map",
    ),
    "n-grams together with asynchronous scheduling": (
        {"vllm": {"spec-method": "ngram", "spec-tokens": 3, "async-scheduling": True}},
        "vllm.async-scheduling",
        "true",
        "exits with a ValueError",
        "remove it",
    ),
    "a probe that waits two hours": (
        {"probe": {"period_seconds": 240, "failure_threshold": 30}},
        "probe",
        "failure_threshold=30",
        "waits 7200 s; Cloud Run stops at 1800 s",
        "failure_threshold: 7",
    ),
    "a checkpoint that nobody published": (
        {"model": "gemma-4-26B-A4B-it-qat-w4a16-ct"},
        "model",
        "gemma-4-26B-A4B-it-qat-w4a16-ct",
        "not in the catalogue",
        "gemma-4-26b-a4b-it",
    ),
    "a checkpoint for another runtime": (
        {"model": "gemma-4-12b-it-gguf"},
        "model",
        "gemma-4-12b-it-gguf",
        "made for llama.cpp",
        "gemma-4-12b-it",
    ),
    "eight GPUs in one instance": (
        {"vllm": {"tensor-parallel-size": 8}},
        "vllm.tensor-parallel-size",
        "8",
        "has 1 GPU",
        "remove it",
    ),
    "bf16 weights on a GPU that holds half of them": (
        {"model": "gemma-4-12b-it"},
        "model",
        "gemma-4-12b-it",
        "does not fit nvidia-l4",
        "gemma-4-12b-it-qat-w4a16",
    ),
    "another quantization than the checkpoint's": (
        {"vllm": {"quantization": "fp8"}},
        "vllm.quantization",
        "fp8",
        "the engine refuses another method",
        "choose a checkpoint that is stored so",
    ),
    "an image that changes every night": (
        {"vllm_version": "nightly"},
        "vllm_version",
        "nightly",
        "will name another build",
        "image.digest",
    ),
    "a region without that GPU": (
        {"accelerator": "nvidia-rtx-pro-6000"},
        "region",
        "us-east4",
        "does not offer nvidia-rtx-pro-6000",
        "us-central1",
    ),
    "an endpoint for everybody": (
        {"access": {"invokers": ["allUsers"]}},
        "access.invokers.0",
        "allUsers",
        "open the service to everyone",
        "name the callers",
    ),
    "a token in the stack file": (
        {"secrets": {"HF_TOKEN": "hf_PlantedValueThatMustNotAppear"}},
        "secrets.HF_TOKEN",
        "not shown",
        "would be in the stack file and the state",
        "Secret Manager",
    ),
    "a prompt as long as the context": (
        {"smoke": {"prompt_tokens": 32768}},
        "smoke.prompt_tokens",
        "32768",
        "every request would be refused or cut",
        "32704 or less",
    ),
    "more users than the service takes": (
        {"smoke": {"concurrency": 128}},
        "smoke.concurrency",
        "128",
        "the platform's own queue would be measured",
        "request_concurrency",
    ),
}


@pytest.mark.parametrize(("changes", "key", "value", "consequence", "repair"), CIRCULATE.values(), ids=list(CIRCULATE))
def test_it_is_refused_with_value_consequence_and_repair(
    changes: dict[str, Any], key: str, value: str, consequence: str, repair: str
) -> None:
    (problem,) = problems_of(changes)
    assert problem.key == f"bezel:{key}"
    assert value in problem.value
    assert consequence in problem.consequence
    assert repair in problem.repair
    assert "Planted" not in str(problem)


def test_the_stack_that_they_were_tried_on_is_planned() -> None:
    assert make_plan(with_changes({}), project="acme", stack="circulates")
