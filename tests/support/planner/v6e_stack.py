"""The configuration of a stack of leased TPU chips as the engine hands it over, and its problems."""

from __future__ import annotations

import pytest

from bezel.planner import LeasePlan, PlanError, make_plan

V6E4_MOE = {
    "model": "gemma-4-26b-a4b-it",
    "accelerator": "v6e-4",
    "region": "us-east5",
    "lease": {"zones": [{"zone": "europe-west4-a", "patience": "30m"}, {"zone": "us-east5-a", "patience": "2h"}]},
    "vllm": {"max-model-len": 16384, "max-num-seqs": 256},
}
L4X8 = {
    "model": "gemma-4-31b-it",
    "accelerator": "g2-standard-96",
    "region": "us-central1",
    "lease": {"zones": [{"zone": "us-central1-a"}], "provisioning": "spot"},
    "network": {"nat": True},
    "cost": {
        "prices": [
            {
                "item": "g2-standard-96",
                "region": "us-central1",
                "usd_per_unit": 0.0012,
                "as_of": "2026-11",
                "source": "our invoice",
            }
        ]
    },
}


def with_lease_changes(config, **changes):
    """The configuration with whole keys replaced; of `lease` and `vllm` single entries."""
    merged = dict(config)
    for key, value in changes.items():
        merged[key] = {**config.get(key, {}), **value} if key in ("lease", "vllm") else value
    return merged


def lease_plan(config=V6E4_MOE, stack="moe") -> LeasePlan:
    plan = make_plan(config, project="p", stack=stack)
    assert isinstance(plan, LeasePlan)
    return plan


def lease_problems(config):
    with pytest.raises(PlanError) as caught:
        make_plan(config, project="p", stack="moe")
    return caught.value.problems
