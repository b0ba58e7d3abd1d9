"""The nearest thing to each fault that is none: it is planned, so that no rule refuses more than it must."""

from __future__ import annotations

import pytest

from bezel.planner import Plan, make_plan
from tests.support.planner.l4_stack import RTX_COST, with_changes

PLANNED = {
    "numbers as text": {"scaling": {"max_instances": "1"}, "vllm": {"max-num-seqs": "8"}},
    "underscores": {"vllm": {"enable_prefix_caching": True}},
    "a human length": {"vllm": {"max-model-len": "32K"}},
    "the model's whole context": {"vllm": {"max-model-len": 262144}},
    "the whole legal window": {"probe": {"period_seconds": 240, "failure_threshold": 7, "initial_delay_seconds": 240}},
    "a window as long as the loading": {
        "probe": {"initial_delay_seconds": 0, "period_seconds": 2, "timeout_seconds": 1, "failure_threshold": 131}
    },
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
    "an image of the newer vLLM": {"image": {"tag": "v0.33.0"}, "vllm": {"disable-log-requests": True}},
    "a variant of a release": {"image": {"tag": "v0.32.0-cu129"}},
    "an image of one's own": {"image": {"registry": "ghcr.io", "repository": "a/b", "tag": "x", "options": "0.32.0"}},
    "a release by its digest": {"image": {"digest": "sha256:" + "0" * 64}},
    "the newer vLLM": {"vllm_version": "0.33.0", "vllm": {"disable-log-requests": True}},
    "callers by name": {"access": {"invokers": ["user:a@example.com", "group:b@example.com"]}},
    "a secret's name": {"secrets": {"HF_TOKEN": "hf-token"}},
    "a door inside, and checks from there": {"access": {"ingress": "internal"}, "smoke": {"inside": True}},
    "a network by its name": {"vpc": {"network": "llm", "egress": "all-traffic", "tags": ["llm"]}},
    "a subnetwork of another project": {"vpc": {"subnetwork": "projects/host-1/regions/us-east4/subnetworks/llm"}},
    "more CPUs while it starts": {"resources": {"cpu_boost": True}},
    "a reserve in another zone": {"scaling": {"zonal_redundancy": True}, "cost": {"max_hourly_usd": 1.5}},
    "as many at a time as the service takes": {"smoke": {"concurrency": 16}},
    "eager loading on a larger host": {
        "vllm": {"safetensors-load-strategy": "eager"},
        "resources": {"cpu": 8, "memory": "32Gi"},
        "cost": {"max_hourly_usd": 1.5},
    },
}


@pytest.mark.parametrize(("changes", "name"), [({}, "bezel-l4-qat"), ({"service_name": "chat"}, "chat")])
def test_the_service_has_the_name_of_the_setting_or_of_the_stack(changes, name):
    plan = make_plan(with_changes(changes), project="bezel-local", stack="l4-qat")
    assert isinstance(plan, Plan)
    assert plan.service.name == name
    assert plan.service.service_account_id == "bezel-l4-qat"


@pytest.mark.parametrize("changes", PLANNED.values(), ids=PLANNED)
def test_the_nearest_thing_to_a_fault_is_planned(changes):
    assert isinstance(make_plan(with_changes(changes), project="bezel-local", stack="l4-qat"), Plan)
