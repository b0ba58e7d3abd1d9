"""Recognised hardware ends no search, and a name or a switch counts in whatever spelling it has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bezel.resource_cost.inputs import switch_value
from tests.support.policies.harness import (
    INSTANCE,
    LABELS,
    LEASE,
    QUEUE,
    SERVICE,
    TPU_VM,
    UNKNOWN,
    change,
    instance,
    queue,
    request,
    service,
    violations,
)
from tests.support.policies.jobs import all_violations

H100 = [{"type": "nvidia-h100-80gb", "count": 8.0}]
NODE = "tpu.nodeSpec.0.node"
SPEC = queue()["tpu"]["nodeSpec"]
LIMITS = "template.containers.0.resources"
GPU_LIMITS = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
BESIDE: dict[str, tuple[str, dict[str, Any]]] = {
    "8 x H100 on a TPU's machine": (INSTANCE, instance({"guestAccelerators": H100})),
    "the same in snake case": (INSTANCE, instance({"guest_accelerators": H100})),
    "an unknown accelerator": (INSTANCE, instance({"guestAccelerators": UNKNOWN})),
    "a machine in a template": (INSTANCE, instance({"template": {"machineType": "a3-highgpu-8g"}})),
    "JSON beside a machine": (INSTANCE, instance({"extra": '{"machine_type": "a3-highgpu-8g"}'})),
    "two queued resources": (LEASE, {"body": queue(), "other": queue()}),
    "a list of them": (LEASE, {**request("queued_resource"), "more": [queue()]}),
    "both spellings of nodes": (LEASE, {"body": queue({"tpu.nodeSpecs": SPEC})}),
    "a machine beside a queue": (LEASE, {"body": queue(), "template": {"machineType": "a3-highgpu-8g"}}),
    "a queue beside a machine": (LEASE, {**request("flex_start_vm"), "second": queue()}),
    "GPUs on a TPU": (LEASE, queue({f"{NODE}.guestAccelerators": H100})),
    "a queue of the provider": (QUEUE, {**queue(), "gpu": "nvidia-l4"}),
    "a node of the provider": (
        TPU_VM,
        {"zone": "us-east5-b", "acceleratorType": "v6e-4", "labels": LABELS, "accelerators": H100},
    ),
    "a second GPU of a service": (
        SERVICE,
        change(
            service(),
            {"template.nodeSelector": {"accelerator": "nvidia-l4", "run.googleapis.com/accelerator": "nvidia-h100"}},
        ),
    ),
    "a TPU of a service": (SERVICE, service({LIMITS: {"limits": {**GPU_LIMITS, "google.com/tpu": "4"}}})),
    "another GPU of a service": (SERVICE, service({LIMITS: {"limits": {**GPU_LIMITS, "amd.com/gpu": "8"}}})),
    "a command of a service": (SERVICE, service({"template.containers.0.commands": ["gcloud", "run", "deploy"]})),
    "a script of a machine": (INSTANCE, instance({"metadataStartupScript": "gcloud compute instances create x"})),
    "a request of a service": (SERVICE, service({LIMITS: {"limits": GPU_LIMITS, "requests": {"nvidia.com/gpu": "8"}}})),
}
COUNTED = {
    "two nodes": queue({"tpu.nodeSpec": SPEC * 2}),
    "two nodes in snake case": {**queue(), "tpu": {"node_specs": SPEC * 2}},
    "two slices": queue({"tpu.nodeSpec.0.multisliceParams": {"nodeCount": "2"}}),
    "two slices of v2alpha1": queue({"tpu.nodeSpec.0.multiNodeParams": {"nodeCount": 2.0}}),
    "two slices in snake case": queue({"tpu.nodeSpec.0.multislice_params": {"node_count": 2.0}}),
}


@pytest.mark.parametrize("case", BESIDE)
def test_an_accelerator_beside_a_known_one_cannot_be_exempted(case: str) -> None:
    """An accelerator beside a known one is refused and cannot be exempted."""
    token, inputs = BESIDE[case]
    for policy in ("hourly-ceiling", "monthly-ceiling", "allowed-accelerators"):
        config = {"limits": {"dev": ["nvidia-l4", "v6e-4"]}} if "allowed" in policy else {"limits": {"dev": 1e6}}
        assert violations(policy, token, inputs, {**config, "exempt": [token]}), policy


@pytest.mark.parametrize("case", COUNTED)
def test_all_machines_of_one_resource_count(case: str) -> None:
    for inputs in (COUNTED[case], {"body": COUNTED[case]}, {"body": json.dumps(COUNTED[case])}):
        assert violations("hourly-ceiling", LEASE, inputs, {"limits": {"dev": 10.80}}) == []
        (message,) = violations("hourly-ceiling", LEASE, inputs, {"limits": {"dev": 10.79}})
        assert "10.8000 USD" in message


def test_one_slice_in_two_words_must_be_the_same() -> None:
    topology = {f"{NODE}.acceleratorConfig": {"type": "V6E", "topology": "2x2"}}
    assert violations("hourly-ceiling", LEASE, queue(topology)) == []
    topology[f"{NODE}.acceleratorConfig"] = {"type": "V6E", "topology": "16x16"}
    (message,) = violations("hourly-ceiling", LEASE, queue(topology))
    assert "acceleratorConfig is of another slice" in message


def test_two_spellings_of_one_input_with_two_values_are_refused() -> None:
    (message,) = violations("hourly-ceiling", INSTANCE, instance({"machine_type": "e2-small"}))
    assert "machineType and machine_type" in message


SNAKE = {
    "machineType": "machine_type",
    "networkInterfaces": "network_interfaces",
    "serviceAccount": "service_account",
}


def test_a_machine_in_snake_case_is_the_same_machine() -> None:
    small = {SNAKE.get(name, name): value for name, value in instance().items()}
    small["scheduling"] = {"provisioning_model": "FLEX_START", "max_run_duration": {"seconds": "14400"}}
    for policy in ("hourly-ceiling", "monthly-ceiling", "run-duration", "lease-ceiling"):
        for limit in (1, 5.4, 21.6):
            config = {"limits": {"dev": limit}}
            one, other = (violations(policy, INSTANCE, inputs, config) for inputs in (instance(), small))
            assert one == other
    opened = {**small, "network_interfaces": [{"access_configs": [{}]}]}
    assert violations("no-external-address", INSTANCE, opened)


ON: list[object] = [True, "true", "True", "TRUE", 1, 1.0, "1", "yes", "on"]
OFF: list[object] = [False, "false", "False", 0, 0.0, "0", "no", "off", ""]


@pytest.mark.parametrize("value", [*ON, *OFF])
@pytest.mark.parametrize("name", ["enableExternalIps", "enable_external_ips"])
def test_an_address_is_seen_however_its_switch_is_written(name: str, value: object) -> None:
    inputs = {
        LEASE: queue({f"{NODE}.networkConfig": {name: value}}),
        TPU_VM: {"zone": "us-east5-b", "acceleratorType": "v6e-4", "network_config": {name: value}},
    }
    for token, inputs_of_token in inputs.items():
        assert bool(violations("no-external-address", token, inputs_of_token)) == (value in ON and value != "")
        assert switch_value(value) == (value in ON)


@pytest.mark.parametrize("value", [*ON, *OFF])
@pytest.mark.parametrize("name", ["invokerIamDisabled", "invoker_iam_disabled", "allow_unauthenticated"])
def test_an_open_service_is_seen_however_its_switch_is_written(name: str, value: object) -> None:
    assert bool(violations("no-public-invoker", SERVICE, service({name: value}))) == (value in ON)


@pytest.mark.parametrize("value", [*ON, *OFF])
def test_a_price_follows_a_switch_however_it_is_written(value: object) -> None:
    dear = violations(
        "hourly-ceiling", SERVICE, service({"template.gpuZonalRedundancyDisabled": value}), {"limits": {"dev": 1.1}}
    )
    assert bool(dear) == (value in OFF)  # Google's default is the dearer one
    spot = instance({"scheduling.provisioningModel": None, "scheduling.preemptible": value})
    assert bool(violations("hourly-ceiling", INSTANCE, spot)) == (value in OFF)


@pytest.mark.parametrize("value", ["maybe", 2, [], {}])
def test_a_switch_that_says_neither_is_refused(value: object) -> None:
    inputs = queue({f"{NODE}.networkConfig": {"enableExternalIps": value}})
    (message,) = violations("no-external-address", LEASE, inputs)
    assert "expected true or false" in message


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (INSTANCE, instance({"guestAccelerators": []})),
        (INSTANCE, instance({"description": "beside 8 x H100", "labels": {**LABELS, "gpu": "h100"}})),
        (LEASE, request("queued_resource")),
        (LEASE, request("flex_start_vm")),
        (SERVICE, service({"template.nodeSelector": {"accelerator": "nvidia-l4"}})),
        (SERVICE, service({"description": "an nvidia-h100 would be faster"})),
    ],
)
def test_nothing_beside_a_known_accelerator_passes(token: str, inputs: dict[str, Any]) -> None:
    assert all_violations(token, inputs) == {}
