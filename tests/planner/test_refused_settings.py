"""A stack that cannot work is refused, every fault at once with value, consequence and repair; its twin is planned."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

from bezel.planner import Plan, PlanError, make_plan

ROOT = Path(__file__).parents[2]
L4 = {
    key.removeprefix("bezel:"): value
    for key, value in yaml.safe_load((ROOT / "Pulumi.l4-qat.yaml").read_text(encoding="utf-8"))["config"].items()
}


RTX_COST = {"cost": {"max_hourly_usd": 4}}


def with_changes(changes):
    config = copy.deepcopy(L4)
    for key, value in changes.items():
        merged = isinstance(value, dict) and isinstance(config.get(key), dict)
        config[key] = {**config[key], **value} if merged else value
    return config


def problems_of(changes, *, project="bezel-local"):
    with pytest.raises(PlanError) as caught:
        make_plan(with_changes(changes), project=project, stack="l4-qat")
    return caught.value.problems


# changes of the L4 stack; the key that is named; what the consequence says; what the repair says
REFUSED = {
    "unknown key": ({"acelerator": "nvidia-l4"}, "bezel:acelerator", "no effect", "bezel:accelerator"),
    "unknown nested key": (
        {"scaling": {"max_instance": 2}},
        "bezel:scaling.max_instance",
        "no effect",
        "bezel:scaling.max_instances",
    ),
    "key in the wrong place": (
        {"max_instances": 2},
        "bezel:max_instances",
        "no effect",
        "bezel:scaling: {max_instances",
    ),
    "missing key": ({"region": ""}, "bezel:region", "required", "us-east4"),
    "wrong type": (
        {"scaling": {"max_instances": "two"}},
        "bezel:scaling.max_instances",
        "whole number",
        "whole number",
    ),
    "a switch for a number": ({"scaling": {"max_instances": True}}, "bezel:scaling.max_instances", "whole number", ""),
    "text for a map": ({"scaling": "2"}, "bezel:scaling", "map", "map"),
    "out of bounds": ({"scaling": {"max_instances": 0}}, "bezel:scaling.max_instances", "out of range", "at least 1"),
    "none of the choices": ({"environment": "production"}, "bezel:environment", "none of the known", "dev or prod"),
    "unknown accelerator": ({"accelerator": "nvidia-l5"}, "bezel:accelerator", "catalogue", "nvidia-l4"),
    "unknown model": ({"model": "gemma-4-12b-qat-w4a16"}, "bezel:model", "catalogue", "gemma-4-12b-it-qat-w4a16"),
    "form not for vLLM": ({"model": "gemma-4-12b-it-qat-q4_0-gguf"}, "bezel:model", "llama.cpp", "Known:"),
    "unrecorded vLLM": ({"vllm_version": "0.31.0"}, "bezel:vllm_version", "not recorded", "0.32.0"),
    "region without the accelerator": ({"region": "us-west1"}, "bezel:region", "does not offer nvidia-l4", "us-east4"),
    "misspelt region": ({"region": "us-eats4"}, "bezel:region", "does not offer", "did you mean us-east4?"),
    "unpriced region": (
        {"region": "asia-southeast1"},
        "bezel:region",
        "Missing price row: cloud-run, gpu nvidia-l4 no zonal redundancy, asia-southeast1",
        "us-east4",
    ),
    "too expensive": ({"cost": {"max_hourly_usd": 0.5}}, "bezel:cost.max_hourly_usd", "1.0465 USD per hour", "1.05"),
    "two are too expensive": (
        {"scaling": {"max_instances": 2}},
        "bezel:cost.max_hourly_usd",
        "2 running instances cost 2.0930",
        "bezel:scaling.max_instances` to 1",
    ),
    "context beyond the model's": (
        {"vllm": {"max-model-len": 300000}},
        "bezel:vllm.max-model-len",
        "made for 262144 tokens",
        "262144",
    ),
    "too little memory": ({"resources": {"memory": "8Gi"}}, "bezel:resources.memory", "less than 16Gi", "16Gi"),
    "memory without unit": ({"resources": {"memory": "16"}}, "bezel:resources.memory", "whole number of GiB", "16Gi"),
    "memory beyond the CPUs": (
        {"resources": {"memory": "32Gi"}, "cost": {"max_hourly_usd": 2}},
        "bezel:resources.memory",
        "at most 16Gi",
        "to 8",
    ),
    "too few CPUs": ({"resources": {"cpu": 2}}, "bezel:resources.cpu", "fewer than 4", "4"),
    "odd CPUs": (
        {"resources": {"cpu": 5}, "cost": {"max_hourly_usd": 2}},
        "bezel:resources.cpu",
        "no instance",
        "4, 6, 8",
    ),
    "probe window": (
        {"probe": {"period_seconds": 240, "failure_threshold": 30}},
        "bezel:probe",
        "7200 s; Cloud Run stops at 1800 s",
        "failure_threshold: 7",
    ),
    "probe delay": ({"probe": {"initial_delay_seconds": 300}}, "bezel:probe.initial_delay_seconds", "240", "240"),
    "probe period": (
        {"probe": {"period_seconds": 300, "failure_threshold": 2}},
        "bezel:probe.period_seconds",
        "240",
        "240",
    ),
    "probe timeout": ({"probe": {"timeout_seconds": 10}}, "bezel:probe.timeout_seconds", "not below", "9"),
    "more at least than at most": (
        {"scaling": {"min_instances": 2}},
        "bezel:scaling.min_instances",
        "above",
        "1 or less",
    ),
    "everyone among the invokers": (
        {"access": {"invokers": ["allUsers"]}},
        "bezel:access.invokers.0",
        "open the service to everyone",
        "public: true",
    ),
    "no member": ({"access": {"invokers": ["me@example.com"]}}, "bezel:access.invokers.0", "no member", "user:"),
    "a secret's value": (
        {"secrets": {"HF_TOKEN": "hf_" + "a" * 30}},
        "bezel:secrets.HF_TOKEN",
        "not the name",
        "gcloud secrets",
    ),
    "the platform's variable": ({"secrets": {"PORT": "x"}}, "bezel:secrets.PORT", "refuses", "HF_TOKEN"),
    "the plan's variable": ({"secrets": {"HF_HUB_OFFLINE": "x"}}, "bezel:secrets.HF_HUB_OFFLINE", "plan sets it", ""),
    "label": ({"labels": {"Team": "Speech"}}, "bezel:labels.Team", "lower case", "team: speech"),
    "bucket as address": ({"weights": {"bucket": "gs://mine/x"}}, "bezel:weights.bucket", "no bucket", "write mine."),
    "path out of the bucket": ({"weights": {"path": "../x"}}, "bezel:weights.path", "no folder", "relative"),
    "own price that nothing asks for": (
        {"cost": {"prices": [{"item": "gpu l4", "region": "r", "usd_per_unit": 1, "as_of": "2026-11", "source": "s"}]}},
        "bezel:cost.prices.0.item",
        "unused",
        "Known:",
    ),
    "own price without a source": (
        {"cost": {"prices": [{"item": "vcpu", "region": "r", "usd_per_unit": 1, "as_of": "2026-11"}]}},
        "bezel:cost.prices.0.source",
        "required",
        "add",
    ),
    "unknown option": (
        {"vllm": {"max-num-sequences": 8}},
        "bezel:vllm.max-num-sequences",
        "unrecognized",
        "max-num-seqs",
    ),
    "removed option": ({"vllm": {"swap-space": 4}}, "bezel:vllm.swap-space", "no longer", "remove it"),
    "dotted option": (
        {"vllm": {"speculative-config.method": "ngram"}},
        "bezel:vllm.speculative-config.method",
        "one value",
        "speculative-config: {method: …}",
    ),
    "none of an option's choices": ({"vllm": {"dtype": "fp8"}}, "bezel:vllm.dtype", "does not know", "bfloat16"),
    "unknown tool parser": ({"vllm": {"tool-call-parser": "gemma5"}}, "bezel:vllm.tool-call-parser", "exits", "gemma4"),
    "a switch for a name": ({"vllm": {"tool-call-parser": True}}, "bezel:vllm.tool-call-parser", "know", "gemma4"),
    "a switch with a value": ({"vllm": {"enforce-eager": 1}}, "bezel:vllm.enforce-eager", "code 2", "true or false"),
    "text for a number": ({"vllm": {"max-num-seqs": "many"}}, "bezel:vllm.max-num-seqs", "code 2", "whole number"),
    "an option of the plan": ({"vllm": {"port": 8000}}, "bezel:vllm.port", "never become ready", "remove it"),
    "a key in the arguments": ({"vllm": {"api-key": "k"}}, "bezel:vllm.api-key", "can be read", "VLLM_API_KEY"),
    "mtp without a model": (
        {"vllm": {"spec-method": "mtp", "spec-tokens": 3}},
        "bezel:vllm.spec-method",
        "Unsupported speculative method: 'mtp'",
        "spec-model: /mnt/models/gemma-4-12B-it-assistant",
    ),
    "mtp without tokens": (
        {"vllm": {"spec-method": "mtp", "spec-model": "/mnt/models/a"}},
        "bezel:vllm.spec-tokens",
        "without a number",
        "spec-tokens: 3",
    ),
    "tokens without a method": ({"vllm": {"spec-tokens": 3}}, "bezel:vllm.spec-tokens", "no method", "spec-method"),
    "told twice": (
        {"vllm": {"spec-tokens": 3, "speculative-config": {"method": "ngram", "num_speculative_tokens": 3}}},
        "bezel:vllm.spec-tokens",
        "mutually exclusive",
        "remove spec-tokens",
    ),
    "unknown key of speculative-config": (
        {"vllm": {"speculative-config": {"method": "ngram", "num_spec_tokens": 3, "num_speculative_tokens": 3}}},
        "bezel:vllm.speculative-config.num_spec_tokens",
        "no such key",
        "num_speculative_tokens",
    ),
    "ngram drafts scheduled asynchronously": (
        {
            "vllm": {
                "async-scheduling": True,
                "speculative-config": {"method": "ngram", "num_speculative_tokens": 3},
            }
        },
        "bezel:vllm.async-scheduling",
        "ValueError",
        "remove it",
    ),
    "unknown method": (
        {"vllm": {"speculative-config": {"method": "assistant", "model": "/m", "num_speculative_tokens": 3}}},
        "bezel:vllm.speculative-config.method",
        "no such method",
        "write",
    ),
    "a hub id while offline": (
        {"vllm": {"spec-method": "mtp", "spec-model": "google/gemma-4-12B-it-assistant", "spec-tokens": 3}},
        "bezel:vllm.spec-model",
        "HF_HUB_OFFLINE=1",
        "/mnt/models/gemma-4-12B-it-assistant",
    ),
    "auto tool choice without a parser": (
        {"vllm": {"tool-call-parser": None}},
        "bezel:vllm.enable-auto-tool-choice",
        "TypeError",
        "tool-call-parser: gemma4",
    ),
    "a smaller step than a batch": (
        {"vllm": {"max-num-batched-tokens": 4}},
        "bezel:vllm.max-num-batched-tokens",
        "below max-num-seqs=8",
        "8 or more",
    ),
    "a prompt in one step": (
        {"vllm": {"enable-chunked-prefill": False}},
        "bezel:vllm.enable-chunked-prefill",
        "max-model-len=32768",
        "max-num-batched-tokens to 32768",
    ),
    "more than all memory": (
        {"vllm": {"gpu-memory-utilization": 1.5}},
        "bezel:vllm.gpu-memory-utilization",
        "at most 1",
        "0.92",
    ),
    "all memory": (
        {"vllm": {"gpu-memory-utilization": 0.99}},
        "bezel:vllm.gpu-memory-utilization",
        "free memory",
        "0.97",
    ),
    "more GPUs than there are": ({"vllm": {"tensor-parallel-size": 2}}, "bezel:vllm.tensor-parallel-size", "1 GPU", ""),
    "another quantization": (
        {"vllm": {"quantization": "awq"}},
        "bezel:vllm.quantization",
        "compressed-tensors",
        "remove",
    ),
    "quantizing while loading": (
        {
            "model": "gemma-4-12b-it",
            "accelerator": "nvidia-rtx-pro-6000",
            "region": "us-central1",
            **RTX_COST,
            "vllm": {"quantization": "fp8"},
        },
        "bezel:vllm.quantization",
        "cannot be planned",
        "stored so",
    ),
    "a draft model of unknown size": (
        {
            "model": "gemma-4-26b-a4b-it",
            "accelerator": "nvidia-rtx-pro-6000",
            "region": "us-central1",
            **RTX_COST,
            "vllm": {"spec-model": "/mnt/models/draft", "spec-tokens": 3},
        },
        "bezel:vllm.spec-method",
        "no assistant",
        "ngram",
    ),
    "a cache of another size": (
        {"vllm": {"kv-cache-memory-bytes": "1G"}},
        "bezel:vllm.kv-cache-memory-bytes",
        "would not be known",
        "gpu-memory-utilization",
    ),
    "no name at all": ({"vllm": {"served-model-name": []}}, "bezel:vllm.served-model-name", "at least one", ""),
    "a suffix where none may stand": ({"vllm": {"max-num-seqs": "1K"}}, "bezel:vllm.max-num-seqs", "whole number", ""),
    "a length that the engine chooses": (
        {"vllm": {"max-model-len": "auto"}},
        "bezel:vllm.max-model-len",
        "planned",
        "262144",
    ),
    "a cache of unknown size": ({"vllm": {"kv-cache-dtype": "nvfp4"}}, "bezel:vllm.kv-cache-dtype", "not known", "fp8"),
    "no number of sequences": (
        {"vllm": {"max-num-seqs": None}},
        "bezel:vllm.max-num-seqs",
        "could not be planned",
        "null",
    ),
    "weights beyond the GPU": ({"model": "gemma-4-12b-it"}, "bezel:model", "does not fit", "gemma-4-12b-it-qat-w4a16"),
    "larger weights beyond the GPU": (
        {"model": "gemma-4-31b-it-qat-w4a16"},
        "bezel:model",
        "does not fit",
        "nvidia-rtx-pro-6000",
    ),
    "a step beyond the GPU": (
        {"vllm": {"max-model-len": 262144, "max-num-batched-tokens": 131072, "gpu-memory-utilization": 0.7}},
        "bezel:model",
        "does not fit",
        "a smaller max-num-batched-tokens",
    ),
    "a cache beyond the GPU": (
        {"vllm": {"max-model-len": 262144, "kv-cache-dtype": "auto", "gpu-memory-utilization": 0.6}},
        "bezel:vllm.max-model-len",
        "GiB of KV cache",
        "fp8",
    ),
    "eager loading on a small host": (
        {"vllm": {"safetensors-load-strategy": "eager"}},
        "bezel:resources.memory",
        "exit code 137",
        "lazy",
    ),
    "requests beyond the context": (
        {"smoke": {"prompt_tokens": 32768}},
        "bezel:smoke.prompt_tokens",
        "max-model-len=32768",
        "32704",
    ),
    "a check shorter than the start": (
        {"smoke": {"deadline_seconds": 60}},
        "bezel:smoke.deadline_seconds",
        "1830 s",
        "1830",
    ),
    "more at a time than the service takes": (
        {"smoke": {"concurrency": 17}},
        "bezel:smoke.concurrency",
        "16 requests at a time",
        "16 or less",
    ),
    "a variable that vLLM does not know": (
        {"secrets": {"VLLM_KEY": "x"}},
        "bezel:secrets.VLLM_KEY",
        "exits",
        "HF_TOKEN",
    ),
    "acceptance of nothing": (
        {"smoke": {"min_draft_acceptance": 0.1}},
        "bezel:smoke.min_draft_acceptance",
        "nothing",
        "",
    ),
    "no account": ({"smoke": {"impersonate": "me"}}, "bezel:smoke.impersonate", "no e-mail", "gserviceaccount.com"),
}


@pytest.mark.parametrize(("changes", "key", "consequence", "repair"), REFUSED.values(), ids=REFUSED)
def test_each_fault_is_named_alone_with_value_consequence_and_repair(changes, key, consequence, repair):
    problems = problems_of(changes)
    assert [problem.key for problem in problems] == [key], problems
    assert consequence in problems[0].consequence
    assert repair in problems[0].repair
    assert problems[0].value


# the nearest thing to a fault that is none
PLANNED = {
    "numbers as text": {"scaling": {"max_instances": "1"}, "vllm": {"max-num-seqs": "8"}},
    "underscores": {"vllm": {"max_num_seqs": 4}},
    "a human length": {"vllm": {"max-model-len": "32K"}},
    "the model's whole context": {"vllm": {"max-model-len": 262144}},
    "the whole legal window": {"probe": {"period_seconds": 240, "failure_threshold": 7, "initial_delay_seconds": 240}},
    "more memory with its CPUs": {"resources": {"cpu": 8, "memory": "32Gi"}, "cost": {"max_hourly_usd": 1.5}},
    "memory in Mi": {"resources": {"memory": "16384Mi"}},
    "a priced region of the same accelerator": {"region": "europe-west4"},
    "a region on invitation": {"region": "us-central1"},
    "an own price": {
        "region": "asia-southeast1",
        "cost": {
            "max_hourly_usd": 2,
            "prices": [
                {
                    "item": "gpu nvidia-l4 no zonal redundancy",
                    "region": "asia-southeast1",
                    "usd_per_unit": 0.0002,
                    "as_of": "2026-11",
                    "source": "our invoice",
                }
            ],
        },
    },
    "mtp with model and tokens": {
        "vllm": {"spec-method": "mtp", "spec-model": "/mnt/models/gemma-4-12B-it-assistant", "spec-tokens": 3}
    },
    "ngram needs no model": {"vllm": {"speculative-config": {"method": "ngram", "num_speculative_tokens": 3}}},
    "mtp drafts scheduled asynchronously": {
        "vllm": {"async-scheduling": True, "spec-model": "/mnt/models/gemma-4-12B-it-assistant", "spec-tokens": 3}
    },
    "tools off": {"vllm": {"tool-call-parser": None, "enable-auto-tool-choice": False}},
    "a step as long as the context": {"vllm": {"enable-chunked-prefill": False, "max-num-batched-tokens": 32768}},
    "the checkpoint's own quantization": {"vllm": {"quantization": "compressed-tensors"}},
    "bf16 on the larger GPU": {
        "model": "gemma-4-12b-it",
        "accelerator": "nvidia-rtx-pro-6000",
        "region": "us-central1",
        **RTX_COST,
    },
    "the newer vLLM": {"vllm_version": "0.33.0", "vllm": {"disable-log-requests": True}},
    "callers by name": {"access": {"invokers": ["user:a@example.com", "group:b@example.com"]}},
    "a secret's name": {"secrets": {"HF_TOKEN": "hf-token", "VLLM_API_KEY": "key"}},
    "as many at a time as the service takes": {"smoke": {"concurrency": 16}},
    "eager loading on a larger host": {
        "vllm": {"safetensors-load-strategy": "eager"},
        "resources": {"cpu": 8, "memory": "32Gi"},
        "cost": {"max_hourly_usd": 1.5},
    },
}


@pytest.mark.parametrize("changes", PLANNED.values(), ids=PLANNED)
def test_the_nearest_thing_to_a_fault_is_planned(changes):
    assert isinstance(make_plan(with_changes(changes), project="bezel-local", stack="l4-qat"), Plan)


def test_many_faults_are_all_named_at_once():
    wrong = {
        "modle": "x",
        "region": "asia-southeast1",
        "resources": {"memory": "8Gi"},
        "probe": {"period_seconds": 240, "failure_threshold": 30},
        "scaling": {"min_instances": "none"},
        "secrets": {"HF_TOKEN": 3},
        "vllm": {"spec-method": "mtp", "max-model-len": 300000, "swap-space": 4, "dtype": "fp8"},
    }
    keys = {problem.key for problem in problems_of(wrong, project=None)}
    assert keys == {
        "bezel:modle",
        "bezel:region",
        "bezel:resources.memory",
        "bezel:probe",
        "bezel:scaling.min_instances",
        "bezel:secrets.HF_TOKEN",
        "bezel:vllm.spec-method",
        "bezel:vllm.spec-tokens",
        "bezel:vllm.max-model-len",
        "bezel:vllm.swap-space",
        "bezel:vllm.dtype",
        "gcp:project",
    }


def test_an_unknown_accelerator_hides_no_fault_of_the_arguments():
    wrong = {"accelerator": "nvidia-l5", "vllm": {"max-model-len": 300000, "nonsense": 1}}
    assert {problem.key for problem in problems_of(wrong)} == {
        "bezel:accelerator",
        "bezel:vllm.max-model-len",
        "bezel:vllm.nonsense",
    }


def test_the_text_is_complete_numbered_and_without_a_traceback():
    with pytest.raises(PlanError) as caught:
        make_plan(with_changes({"modle": "x", "resources": {"memory": "8Gi"}}), project="p", stack="l4-qat")
    assert str(caught.value).startswith("Stack l4-qat cannot be planned: 2 problems.\n\n1. bezel:modle = x\n")
    assert "\n\n2. bezel:resources.memory = 8Gi\n" in str(caught.value)
    assert str(caught.value).count("Repair: ") == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"secrets": {"HF_TOKEN": "hf_PLANTEDplanted0000"}},
        {"secrets": {"HF_TOKEN": ["hf_PLANTEDplanted0000"]}},
        {"secrets": "hf_PLANTEDplanted0000"},
        {"vllm": {"api-key": "PLANTEDplanted"}},
        {"vllm": {"hf_token": "PLANTEDplanted"}},
        {"vllm": {"tokenizer-mode": "ok", "nonsense": "hf_PLANTEDplanted0000"}},
        {"hf_token": "hf_PLANTEDplanted0000"},
        {"weights": {"bucket": "hf_PLANTEDplanted0000"}},
        {"labels": {"token": "hf_PLANTEDplanted0000"}},
        {"smoke": {"impersonate": "ya29.PLANTEDplanted"}},
    ],
)
def test_a_secret_that_strayed_into_the_settings_is_shown_nowhere(changes):
    with pytest.raises(PlanError) as caught:
        make_plan(with_changes(changes), project="p", stack="l4-qat")
    assert "PLANTED" not in str(caught.value)
    assert "PLANTED" not in repr(caught.value)
