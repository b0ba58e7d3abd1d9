"""Whatever stands in a resource's inputs, each policy lets it pass or reports it: none raises, none hangs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.hardware_cost.pack import POLICIES as COST
from tests.support.policies.harness import (
    INSTANCE,
    LEASE,
    POLICIES,
    SERVICE,
    TPU_VM,
    UNKNOWN,
    changed,
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
    inputs = changed(INPUTS[token], {path: value})
    for name in POLICIES:
        if not name.startswith("stack-"):
            assert all("Repair:" in message for message in violations(name, token, inputs))


def test_what_is_not_known_at_all_passes_no_cost_policy() -> None:
    for policy in COST:
        if policy.name not in ("always-on", "run-duration") and not policy.name.startswith("stack-"):
            assert violations(policy.name, SERVICE, {"template": UNKNOWN}), policy.name
