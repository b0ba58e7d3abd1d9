"""A stack that cannot work is refused, each fault by itself, with value, consequence and repair."""

from __future__ import annotations

import dataclasses

import pytest

from bezel.catalog import model, vllm_options
from bezel.planner.speculation_checks import check_speculation
from tests.planner.l4_stack import RTX_COST, problems_of

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
    "nothing where a map belongs": (
        {"scaling": None},
        "bezel:scaling",
        "a map of keys and values is needed",
        "remove the key, so that its default holds, or write a map of keys and values, e.g. `scaling: {max_instances",
    ),
    "nothing where a number belongs": (
        {"probe": {"period_seconds": None}},
        "bezel:probe.period_seconds",
        "whole number",
        "or write a whole number, e.g. `period_seconds: 10`.",
    ),
    "nothing where text is required": ({"model": None}, "bezel:model", "text", "write text, e.g. `model: gemma-4"),
    "more instances than there can be": (
        {"scaling": {"max_instances": 10**30}},
        "bezel:scaling.max_instances",
        "out of range",
        "at most 1000",
    ),
    "out of bounds": ({"scaling": {"max_instances": 0}}, "bezel:scaling.max_instances", "out of range", "at least 1"),
    "none of the choices": ({"environment": "production"}, "bezel:environment", "none of the known", "dev or prod"),
    "unknown accelerator": ({"accelerator": "nvidia-l5"}, "bezel:accelerator", "catalogue", "nvidia-l4"),
    "unknown model": ({"model": "gemma-4-12b-qat-w4a16"}, "bezel:model", "catalogue", "gemma-4-12b-it-qat-w4a16"),
    "form not for vLLM": (
        {"model": "gemma-4-12b-it-qat-q4_0-gguf"},
        "bezel:model",
        "llama.cpp",
        "Known:",
    ),
    "unrecorded vLLM": ({"vllm_version": "0.31.0"}, "bezel:vllm_version", "not recorded", "0.32.0"),
    "an image of an unrecorded release": (
        {"image": {"tag": "v0.31.0-cu129"}},
        "bezel:image.tag",
        "not recorded",
        "`bezel catalog record-options PYTHON` (PYTHON: its interpreter)",
    ),
    "an image of an unrecorded build": (
        {"image": {"tag": "nightly-2026-11-20"}},
        "bezel:image.tag",
        "no argument of the image could be checked",
        "`bezel catalog record-options PYTHON --name nightly-2026-11-20`",
    ),
    "a recording that there is not": (
        {"image": {"tag": "prod-7", "options": "0.32"}},
        "bezel:image.options",
        "not recorded",
        "did you mean 0.32.0?",
    ),
    "a tag that moves": (
        {"image": {"tag": "nightly"}},
        "bezel:image.tag",
        "another build tomorrow",
        "bezel:image.digest",
    ),
    "a build between releases that is said to be one": (
        {"image": {"tag": "nightly", "options": "0.32.0", "digest": "sha256:" + "0" * 64}},
        "bezel:image.options",
        "between releases",
        "record-options PYTHON --name nightly",
    ),
    "a release that is said to be another": (
        {"image": {"tag": "v0.33.0", "options": "0.32.0"}},
        "bezel:image.options",
        "names 0.33.0",
        "remove it",
    ),
    "two settings that name a release": (
        {"vllm_version": "0.33.0", "image": {"tag": "v0.32.0"}},
        "bezel:vllm_version",
        "one of the two has no effect",
        "remove",
    ),
    "an address for a registry": (
        {"image": {"registry": "https://ghcr.io"}},
        "bezel:image.registry",
        "no image is named so",
        "a host alone",
    ),
    "an image's whole name for its path": (
        {"image": {"repository": "vllm/vllm-openai:v0.32.0"}},
        "bezel:image.repository",
        "no image is named so",
        "without host and tag",
    ),
    "a shortened digest": ({"image": {"digest": "sha256:1234"}}, "bezel:image.digest", "named so", "64 hexadecimal"),
    "a path for a recording": (
        {"image": {"options": "../0.32.0"}},
        "bezel:image.options",
        "named so",
        "the name of a recording",
    ),
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
    "more CPUs than there are": (
        {"resources": {"cpu": 20}, "cost": {"max_hourly_usd": 5}},
        "bezel:resources.cpu",
        "no instance",
        "4, 6, 8",
    ),
    "one option twice": (
        {"vllm": {"max_num_seqs": 4}},
        "bezel:vllm.max-num-seqs",
        "one option",
        "keep one of them, written as max-num-seqs",
    ),
    "a short name": ({"vllm": {"-tp": 2}}, "bezel:vllm.tensor-parallel-size", "has 1 GPU", "remove it"),
    "a path of two lines": ({"weights": {"path": "a\nb"}}, "bezel:weights.path", "no folder", "gemma-4-12B"),
    "probe window": (
        {"probe": {"period_seconds": 240, "failure_threshold": 30}},
        "bezel:probe",
        "7200 s; Cloud Run stops at 1800 s",
        "failure_threshold: 7",
    ),
    "probe window below the loading": (
        {"probe": {"initial_delay_seconds": 0, "period_seconds": 2, "timeout_seconds": 1, "failure_threshold": 2}},
        "bezel:probe",
        "gives up after 4 s, and a start may take 262 s (estimated",
        "failure_threshold to 131 or more",
    ),
    "probe delay": ({"probe": {"initial_delay_seconds": 300}}, "bezel:probe.initial_delay_seconds", "240", "240"),
    "probe period": (
        {"probe": {"period_seconds": 300, "failure_threshold": 2}},
        "bezel:probe.period_seconds",
        "240",
        "240",
    ),
    "probe timeout": (
        {"probe": {"timeout_seconds": 11}},
        "bezel:probe.timeout_seconds",
        "above period_seconds=10",
        "10 or less",
    ),
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
    "path with an empty part": ({"weights": {"path": "a//b"}}, "bezel:weights.path", "no folder", "relative"),
    "path with a part that no mount shows": (
        {"weights": {"path": f"models/{'a' * 256}"}},
        "bezel:weights.path",
        "shows no name above 255 bytes",
        "at most 255 bytes",
    ),
    "path of more than an object's name": (
        {"weights": {"path": "/".join(["a" * 200] * 5)}},
        "bezel:weights.path",
        "more than 1,024",
        "900 together",
    ),
    "own price that nothing asks for": (
        {"cost": {"prices": [{"item": "gpu l4", "region": "r", "usd_per_unit": 1, "as_of": "2026-11", "source": "s"}]}},
        "bezel:cost.prices.0.item",
        "unused",
        "choose one of gpu nvidia-l4 no zonal redundancy",
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
    "a way in that shuts the checks out": (
        {"access": {"ingress": "internal"}},
        "bezel:access.ingress",
        "the health check after the deploy would fail",
        "bezel:smoke: {inside: true}",
    ),
    "a load balancer's way in that shuts the checks out": (
        {"access": {"ingress": "internal-and-cloud-load-balancing"}},
        "bezel:access.ingress",
        "the health check after the deploy would fail",
        "bezel:access.ingress: all",
    ),
    "everybody on the internet behind a door inside": (
        {"access": {"ingress": "internal", "public": True}, "smoke": {"inside": True}},
        "bezel:access.public",
        "nobody on the internet gets in",
        "remove one of the two",
    ),
    "checks from inside where all may come": (
        {"smoke": {"inside": True}},
        "bezel:smoke.inside",
        "no effect",
        "remove it",
    ),
    "egress without a network": (
        {"vpc": {"egress": "all-traffic"}},
        "bezel:vpc.egress",
        "no effect",
        "bezel:vpc: {network: NAME}",
    ),
    "tags without a network": ({"vpc": {"tags": ["llm"]}}, "bezel:vpc.tags", "no effect", "network: NAME"),
    "no name of a network": (
        {"vpc": {"network": "My Net"}},
        "bezel:vpc.network",
        "finds no such thing",
        "projects/PROJECT/global/networks/NAME",
    ),
    "no name of a subnetwork": (
        {"vpc": {"subnetwork": "regions/us-east4/a"}},
        "bezel:vpc.subnetwork",
        "finds no such thing",
        "projects/PROJECT/regions/R/subnetworks/NAME",
    ),
    "no network tag": (
        {"vpc": {"network": "llm", "tags": ["LLM"]}},
        "bezel:vpc.tags.0",
        "no network tag",
        "e.g. llm",
    ),
    "a model from the internet through a network": (
        {"weights": {"loading": "hub"}, "vpc": {"network": "llm", "egress": "all-traffic"}},
        "bezel:vpc.egress",
        "NAT gateway",
        "private-ranges-only",
    ),
    "a boost that gives nothing": (
        {"resources": {"cpu": 8, "memory": "32Gi", "cpu_boost": True}, "cost": {"max_hourly_usd": 1.5}},
        "bezel:resources.cpu_boost",
        "no effect",
        "remove it",
    ),
    "a reserve in another zone above the limit": (
        {"scaling": {"zonal_redundancy": True}},
        "bezel:cost.max_hourly_usd",
        "one running instance costs 1.4216 USD per hour",
        "raise it to 1.43",
    ),
    "a reserve in another zone that nobody has priced": (
        {
            "accelerator": "nvidia-rtx-pro-6000",
            "region": "us-central1",
            "scaling": {"zonal_redundancy": True},
        },
        "bezel:region",
        "gpu nvidia-rtx-pro-6000 zonal redundancy",
        "write what it costs into the stack file",
    ),
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
    "a form that nobody publishes": (
        {
            "model": "gemma-4-26b-a4b-it-w4a16",
            "accelerator": "nvidia-rtx-pro-6000",
            "region": "us-central1",
            **RTX_COST,
        },
        "bezel:weights.path",
        "nobody publishes",
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


def test_a_draft_model_of_unknown_size_is_refused_and_a_known_one_is_not():
    values = {"spec-method": "mtp", "spec-model": "/mnt/models/draft", "spec-tokens": 3}
    known, options = model("gemma-4-26b-a4b-it"), vllm_options("0.32.0")
    (problem,) = check_speculation(values, dataclasses.replace(known, assistant=None), options)
    assert "no assistant" in problem.consequence
    assert "ngram" in problem.repair
    assert not check_speculation(values, known, options)
