"""What vLLM would be started with and cannot serve is refused: options, variables, and what the memory holds."""

from __future__ import annotations

import dataclasses

import pytest

from bezel.planner.vllm.speculation_checks import check_speculation
from bezel_catalog import model, vllm_options
from tests.support.planner.l4_stack import RTX_COST, check_refused

# changes of the L4 stack; the key that is named; what the consequence says; what the repair says
REFUSED = {
    "context beyond the model's": (
        {"vllm": {"max-model-len": 300000}},
        "bezel:vllm.max-model-len",
        "made for 262144 tokens",
        "262144",
    ),
    "one option twice": (
        {"vllm": {"max_num_seqs": 4}},
        "bezel:vllm.max-num-seqs",
        "one option",
        "keep one of them, written as max-num-seqs",
    ),
    "a short name": ({"vllm": {"-tp": 2}}, "bezel:vllm.tensor-parallel-size", "has 1 GPU", "remove it"),
    "a secret's value": (
        {"secrets": {"HF_TOKEN": "hf_" + "a" * 30}},
        "bezel:secrets.HF_TOKEN",
        "not the name",
        "bezel secret set NAME",
    ),
    "the platform's variable": ({"secrets": {"PORT": "x"}}, "bezel:secrets.PORT", "refuses", "HF_TOKEN"),
    "the plan's variable": ({"secrets": {"HF_HUB_OFFLINE": "x"}}, "bezel:secrets.HF_HUB_OFFLINE", "plan sets it", ""),
    "unknown option": (
        {"vllm": {"max-num-sequences": 8}},
        "bezel:vllm.max-num-sequences",
        "unrecognized",
        "max-num-seqs",
    ),
    "unknown option left out": (
        {"vllm": {"reasoning-parsr": None}},
        "bezel:vllm.reasoning-parsr",
        "no default of it is left out",
        "reasoning-parser",
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
    "a token in the arguments": ({"vllm": {"hf-token": "k"}}, "bezel:vllm.hf-token", "can be read", "HF_TOKEN"),
    "a key of vLLM's own": ({"vllm": {"api-key": "k"}}, "bezel:vllm.api-key", "would get 401", "bezel:access"),
    "a key of vLLM's own from a secret": (
        {"secrets": {"VLLM_API_KEY": "key"}},
        "bezel:secrets.VLLM_API_KEY",
        "would get 401",
        "bezel:access",
    ),
    "a key of vLLM's own as a variable": (
        {"variables": {"VLLM_API_KEY": "k"}},
        "bezel:variables.VLLM_API_KEY",
        "would get 401",
        "bezel:access",
    ),
    "mtp without a model": (
        {"vllm": {"spec-method": "mtp", "spec-tokens": 3}},
        "bezel:vllm.spec-method",
        "Unsupported speculative method: 'mtp'",
        "spec-model: /mnt/models/gemma-4-12B-it-assistant",
    ),
    "mtp without tokens": (
        {"vllm": {"spec-method": "mtp", "spec-model": "/mnt/models/gemma-4-12B-it-assistant"}},
        "bezel:vllm.spec-tokens",
        "without a number",
        "spec-tokens: 3",
    ),
    "tokens without a method": (
        {"vllm": {"spec-tokens": 3}},
        "bezel:vllm.spec-tokens",
        "without a method",
        "spec-method",
    ),
    "told twice": (
        {"vllm": {"spec-tokens": 3, "speculative-config": {"method": "ngram", "num_speculative_tokens": 3}}},
        "bezel:vllm.spec-tokens",
        "mutually exclusive",
        "remove spec-tokens",
    ),
    "unknown key of speculative-config": (
        {"vllm": {"speculative-config": {"method": "ngram", "num_spec_tokens": 3, "num_speculative_tokens": 3}}},
        "bezel:vllm.speculative-config.num_spec_tokens",
        "does not know this key",
        "num_speculative_tokens",
    ),
    "gRPC in place of HTTP": (
        {"vllm": {"grpc": True}},
        "bezel:vllm.grpc",
        "no request would get an answer",
        "remove it",
    ),
    "an engine without a server": (
        {"vllm": {"headless": True}},
        "bezel:vllm.headless",
        "no request would get an answer",
        "remove it",
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
        "does not know this method",
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
    "a form that nobody publishes": (
        {
            "model": "gemma-4-26b-a4b-it-w4a16",
            "accelerator": "nvidia-rtx-pro-6000",
            "region": "us-central1",
            **RTX_COST,
        },
        "bezel:weights.path",
        "is not published",
        "weights: {path: gemma-4-26b-a4b-it-w4a16}",
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
    "a cache of unknown size": (
        {"vllm": {"kv-cache-dtype": "int8_per_token_head"}},
        "bezel:vllm.kv-cache-dtype",
        "not known",
        "fp8",
    ),
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
    "a variable that vLLM does not know": (
        {"secrets": {"VLLM_KEY": "x"}},
        "bezel:secrets.VLLM_KEY",
        "no plan sees a secret's value",
        "HF_TOKEN",
    ),
}


@pytest.mark.parametrize(("changes", "key", "consequence", "repair"), REFUSED.values(), ids=REFUSED)
def test_each_fault_is_named_alone_with_value_consequence_and_repair(changes, key, consequence, repair):
    check_refused(changes, key, consequence, repair)


def test_a_draft_model_of_unknown_size_is_refused_and_a_known_one_is_not():
    values = {"spec-method": "mtp", "spec-model": "/mnt/models/gemma-4-26B-A4B-it-assistant", "spec-tokens": 3}
    checkpoint, options = model("gemma-4-26b-a4b-it"), vllm_options("0.32.0")
    (problem,) = check_speculation(values, dataclasses.replace(checkpoint, assistant=None), options)
    assert "no assistant" in problem.consequence
    assert "ngram" in problem.repair
    assert not list(check_speculation(values, checkpoint, options))


@pytest.mark.parametrize("version", ["0.32.0", "0.33.0", "without a schema"])
def test_a_key_of_speculation_is_one_of_the_users(version):
    options = vllm_options("0.32.0" if version.startswith("w") else version)
    if version.startswith("w"):
        options = dataclasses.replace(options, values={})
    checkpoint = model("gemma-4-26b-a4b-it")
    right = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}
    assert not list(check_speculation({"speculative-config": right}, checkpoint, options))
    wrong = {**right, "target_model": "x", "draft_model_config": {}, "promt_lookup_min": 2}
    problems = {
        problem.key: problem for problem in check_speculation({"speculative-config": wrong}, checkpoint, options)
    }
    key = "bezel:vllm.speculative-config."
    assert set(problems) == {f"{key}target_model", f"{key}draft_model_config", f"{key}promt_lookup_min"}
    assert "prompt_lookup_min" in problems[f"{key}promt_lookup_min"].repair
    assert not [problem for problem in problems.values() if "model_config" in problem.repair]
