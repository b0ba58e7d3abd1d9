"""A GPU service passes within its environment's limits, and is refused above each one of them, alone."""

from __future__ import annotations

import pytest
from pulumi_policy import EnforcementLevel

from bezel_policies.hardware_cost.pack import POLICIES as PACK
from tests.support.policies.harness import LIMITS, POLICIES, SERVICE, UNKNOWN, service, stack_violations, violations

MOST = "template.scaling.maxInstanceCount"
LEAST = "template.scaling.minInstanceCount"
GPU = "template.nodeSelector.accelerator"
CONTAINER = "template.containers.0.resources.limits"
RTX = {
    GPU: "nvidia-rtx-pro-6000",
    "location": "us-central1",
    f"{CONTAINER}.cpu": "20",
    f"{CONTAINER}.memory": "80Gi",
}
OF_A_RESOURCE = [policy.name for policy in PACK if not policy.name.startswith("stack-")]


@pytest.mark.parametrize("policy", OF_A_RESOURCE)
def test_a_service_within_its_limits_passes(policy: str) -> None:
    assert violations(policy, SERVICE, service()) == []


@pytest.mark.parametrize(
    ("policy", "changes", "text"),
    [
        ("hourly-ceiling", {MOST: 40.0}, ["40", "41.8608 USD an hour", "dev may spend 6", "max_instances` to 5"]),
        ("monthly-ceiling", {MOST: 40.0}, ["30558.3840 USD a month", "dev may spend 1600", "max_instances` to 2"]),
        ("monthly-ceiling", RTX, ["2328.4080 USD a month", "1600"]),
        ("most-instances", {MOST: 40.0}, [f"{MOST} = 40", "at most 2", "max_instances` to 2"]),
        ("most-instances", {"scaling": {"maxInstanceCount": 3.0}}, ["scaling.maxInstanceCount = 3", "at most 2"]),
        (
            "most-instances",
            {"scaling": {"scalingMode": "MANUAL", "manualInstanceCount": 7.0}},
            ["scaling.manualInstanceCount = 7"],
        ),
        ("allowed-accelerators", RTX, [f"{GPU} = nvidia-rtx-pro-6000", "dev may have nvidia-l4, v6e-1, v6e-4 only"]),
        ("always-on", {LEAST: 1.0}, [f"{LEAST} = 1", "none may run without traffic", "min_instances` to 0"]),
        ("always-on", {"scaling": {"minInstanceCount": 1.0}}, ["scaling.minInstanceCount = 1", "none may run"]),
        (
            "always-on",
            {"annotations": {"bezel-scheduled-minimum": "1"}},
            ["bezel-scheduled-minimum = 1", "none may run"],
        ),
        ("always-on", {"scaling": {"scalingMode": "MANUAL", "manualInstanceCount": 1.0}}, ["manualInstanceCount = 1"]),
    ],
)
def test_above_a_limit_it_is_refused_with_value_limit_and_repair(policy, changes, text) -> None:
    (message,) = violations(policy, SERVICE, service(changes))
    for word in [*text, "Repair:"]:
        assert word in message


@pytest.mark.parametrize(
    ("changes", "row"),
    [
        ({"location": "asia-southeast1"}, "cloud-run, gpu nvidia-l4 no zonal redundancy, asia-southeast1"),
        ({"location": "moon-east1"}, "moon-east1"),
        ({GPU: "nvidia-h100"}, "gpu nvidia-h100"),
        ({"multiRegionSettings": {"regions": ["us-east4", "europe-west1"]}}, "several regions"),
    ],
)
@pytest.mark.parametrize("policy", ["hourly-ceiling", "monthly-ceiling"])
def test_what_has_no_price_is_refused_with_the_missing_row(policy, changes, row) -> None:
    (message,) = violations(policy, SERVICE, service(changes))
    assert "it has no price" in message
    assert row in message


@pytest.mark.parametrize(
    ("usd", "changes"),
    [
        (1.0466, {}),
        (1.4217, {"template.gpuZonalRedundancyDisabled": None}),
        (1.4217, {"template.gpuZonalRedundancyDisabled": False}),
        (1.4210, {f"{CONTAINER}.cpu": "8000m", f"{CONTAINER}.memory": "32768Mi"}),
        (1.0466, {f"{CONTAINER}.cpu": "3500m", f"{CONTAINER}.memory": "15.5Gi"}),  # whole units are billed here
        (3.1897, RTX),
        (2.0931, {MOST: 2.0}),
    ],
)
def test_the_ceiling_closes_exactly_above_the_price_of_the_inputs(usd: float, changes) -> None:
    inputs = service(changes)
    assert violations("hourly-ceiling", SERVICE, inputs, {"limits": {"dev": usd}}) == []
    assert violations("hourly-ceiling", SERVICE, inputs, {"limits": {"dev": usd - 0.001}})


def test_all_containers_count_and_a_gpu_that_is_only_named_is_one() -> None:
    both = service()
    both["template"]["containers"][0]["resources"]["limits"] = {"cpu": "4", "memory": "16Gi"}
    assert violations("hourly-ceiling", SERVICE, both, {"limits": {"dev": 1.0466}}) == []
    both["template"]["containers"].append({"resources": {"limits": {"cpu": 2.0, "memory": "512Mi"}}})
    (message,) = violations("hourly-ceiling", SERVICE, both, {"limits": {"dev": 1.0466}})
    assert "1.1834 USD" in message  # two more vCPUs, one more GiB
    for container in both["template"]["containers"]:
        container["resources"]["limits"]["nvidia.com/gpu"] = "1"
    (message,) = violations("hourly-ceiling", SERVICE, both, {"limits": {"dev": 1.0466}})
    assert "1.8555 USD" in message  # and one more GPU
    both["template"]["containers"] = []
    (message,) = violations("hourly-ceiling", SERVICE, both)
    assert "template.containers" in message


@pytest.mark.parametrize(
    ("policy", "changes", "key"),
    [
        ("hourly-ceiling", {MOST: None}, MOST),
        ("hourly-ceiling", {MOST: 0.0}, MOST),
        ("hourly-ceiling", {MOST: 1.5}, MOST),
        ("hourly-ceiling", {MOST: -3.0}, MOST),
        ("hourly-ceiling", {MOST: "many"}, MOST),
        ("hourly-ceiling", {MOST: "1e999999"}, MOST),
        ("hourly-ceiling", {"location": None}, "location"),
        ("hourly-ceiling", {f"{CONTAINER}.cpu": None}, "limits.cpu"),
        ("hourly-ceiling", {f"{CONTAINER}.memory": "lots"}, "limits.memory"),
        ("most-instances", {MOST: None}, MOST),
        ("allowed-accelerators", {GPU: None}, GPU),
    ],
)
def test_what_is_missing_or_senseless_is_refused_and_not_guessed(policy, changes, key) -> None:
    (message,) = violations(policy, SERVICE, service(changes))
    assert key in message
    assert "Repair:" in message


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        ("hourly-ceiling", "template"),
        ("hourly-ceiling", "template.scaling"),
        ("hourly-ceiling", "location"),
        ("hourly-ceiling", f"{CONTAINER}.cpu"),
        ("monthly-ceiling", "template.containers.0.resources.limits"),
        ("most-instances", MOST),
        ("allowed-accelerators", GPU),
        ("always-on", LEAST),
        ("always-on", "labels"),
        ("always-on", "labels.environment"),
    ],
)
def test_an_unknown_value_in_a_gated_field_is_a_violation_that_names_it(policy: str, path: str) -> None:
    (message,) = violations(policy, SERVICE, service({path: UNKNOWN}))
    assert f"{path} = (not known before the deploy)" in message


def test_an_unknown_value_elsewhere_is_none() -> None:
    for policy in OF_A_RESOURCE:
        assert violations(policy, SERVICE, service({"template.serviceAccount": UNKNOWN})) == []


def test_as_many_as_the_limit_pass() -> None:
    assert violations("most-instances", SERVICE, service({MOST: 2.0})) == []
    assert violations("always-on", SERVICE, service({LEAST: 1.0}), {"limits": {"dev": 1}}) == []
    assert violations("most-instances", SERVICE, service({MOST: 3.0}))


@pytest.mark.parametrize("policy", OF_A_RESOURCE[:5])
def test_an_environment_without_a_limit_is_refused(policy: str) -> None:
    (message,) = violations(policy, SERVICE, service({"labels.environment": "prod"}))
    assert "environment = prod" in message
    assert "limits for dev only" in message


def test_without_the_label_the_only_configured_environment_is_meant() -> None:
    unlabelled = service({"labels.environment": None})
    assert violations("most-instances", SERVICE, unlabelled) == []
    (message,) = violations("most-instances", SERVICE, unlabelled, {"limits": {"dev": 2, "prod": 8}})
    assert "dev and prod" in message


def test_what_asks_for_no_accelerator_is_out_of_account() -> None:
    plain = service({GPU: None})
    plain["template"]["containers"][0]["resources"]["limits"].pop("nvidia.com/gpu")
    for policy in OF_A_RESOURCE:
        assert violations(policy, SERVICE, plain) == []
        assert violations(policy, "gcp:storage/bucket:Bucket", {"name": "b", "location": UNKNOWN}) == []
        assert violations(policy, "gcp:compute/instance:Instance", {"machineType": "e2-small", "zone": "z"}) == []


@pytest.mark.parametrize(("policy", "sum_of"), [("stack-hourly-ceiling", "8.3722"), ("stack-monthly-ceiling", "6111")])
def test_services_that_pass_alone_may_be_too_dear_together(policy: str, sum_of: str) -> None:
    alone = [(SERVICE, service({MOST: 2.0, "scaling": UNKNOWN}))]
    assert violations("hourly-ceiling", SERVICE, service({MOST: 2.0})) == []
    assert stack_violations(policy, alone) == []
    (message,) = stack_violations(policy, alone * 4)
    assert sum_of in message
    (message,) = stack_violations(policy, [(SERVICE, service({"location": "moon-east1"}))])
    assert "moon-east1" in message
    (message,) = stack_violations(policy, [(SERVICE, service({MOST: None}))])
    assert f"{MOST} = (not set)" in message


def test_every_policy_is_mandatory_or_mends() -> None:
    levels = {policy.name: policy.enforcement_level for policy in POLICIES.values()}
    # The library's word for: mend, and refuse what is still wrong.
    assert levels.pop("labels") == EnforcementLevel.REMEDIATE
    assert set(levels.values()) == {EnforcementLevel.MANDATORY}
    assert POLICIES.keys() >= LIMITS.keys()
