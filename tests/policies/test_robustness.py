"""Whatever stands in a resource's inputs, each policy lets it pass or reports it: none raises, none hangs."""

from __future__ import annotations

import json
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_policies.hardware_cost.pack import POLICIES as COST
from tests.support.policies.harness import (
    INSTANCE,
    LEASE,
    OF_A_RESOURCE,
    SERVICE,
    TPU_VM,
    UNKNOWN,
    change,
    instance,
    queue,
    service,
    violations,
)

PATHS = {
    SERVICE: [
        "template",
        "labels",
        "scaling",
        "template.scaling",
        "template.nodeSelector",
        "template.containers",
        "template.containers.0",
        "template.containers.0.envs",
        "template.containers.0.args",
        "template.containers.0.resources",
        "template.containers.0.resources.limits.cpu",
        "template.scaling.maxInstanceCount",
        "multiRegionSettings",
    ],
    INSTANCE: ["machineType", "zone", "scheduling", "scheduling.maxRunDuration", "networkInterfaces", "metadata"],
    LEASE: ["tpu", "tpu.nodeSpec", "tpu.nodeSpec.0", "tpu.nodeSpec.0.node", "runDuration", "guaranteed", "body"],
    TPU_VM: ["acceleratorType", "acceleratorConfig", "schedulingConfig", "networkConfigs", "labels"],
}
INPUTS = {SERVICE: service(), INSTANCE: instance(), LEASE: queue(), TPU_VM: {"zone": "us-east5-b"}}
PLAIN = st.one_of(
    st.none(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=8), st.just(UNKNOWN)
)
ANYTHING = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["name", "value", "seconds", "topology", "type", "email"]), inner, max_size=3),
    ),
    max_leaves=6,
)
PLACES = st.sampled_from([(token, path) for token, paths in PATHS.items() for path in paths])


@pytest.mark.slow
@settings(max_examples=50)
@given(PLACES, ANYTHING)
def test_no_inputs_make_a_policy_raise(place: tuple[str, str], value: object) -> None:
    token, path = place
    inputs = change(INPUTS[token], {path: value})
    for name in OF_A_RESOURCE:
        assert all("Repair:" in message for message in violations(name, token, inputs))


def nest(levels: int) -> dict[str, object]:
    inner: dict[str, object] = {"machineType": "a3-highgpu-8g"}
    for _ in range(levels):
        inner = {"spec": inner}
    return inner


@pytest.mark.slow
@pytest.mark.parametrize(
    "inputs",
    [
        nest(200),
        {"text": "[" * 100_000},
        {"text": "[" * 900 + "1" + "]" * 900},
        {"text": json.dumps(list(range(60_000)))},
        {"instanceType": "a" * 1_500_000},
        {"member": "principalSet://" * 90_000},
        {"args": ["gcloud " * 60_000]},
        {"size": "gpu-" * 60, "content": "nvidia-" * 100_000 + " --gpus=8"},
    ],
)
def test_hostile_inputs_are_refused_soon(inputs: dict[str, object]) -> None:
    begin = process_time()
    assert [name for name in OF_A_RESOURCE if violations(name, "x:y/z:T", inputs)]
    assert process_time() - begin < 10  # seconds of the processor, over all policies; most need 0.1


@pytest.mark.slow
@pytest.mark.parametrize("text", ["gpu-", "tpu/", "accelerator ", "x" * 99 + "-standard-", "-- "])
def test_long_text_is_judged_soon(text: str) -> None:
    begin = process_time()
    for name in ("hourly-ceiling", "no-public-invoker", "known-requests"):
        violations(name, "x:y/z:T", {"content": text * (500_000 // len(text))})
    assert process_time() - begin < 5


def test_what_is_not_known_at_all_passes_no_cost_policy() -> None:
    for policy in COST:
        if policy.name not in ("always-on", "run-duration") and not policy.name.startswith("stack-"):
            assert violations(policy.name, SERVICE, {"template": UNKNOWN}), policy.name
