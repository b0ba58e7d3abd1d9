"""Inputs of components, as programs in other languages give them: read, or refused with value, consequence, repair."""

from typing import Any

import pulumi
import pytest
from pulumi.runtime import rpc

from bezel_base.errors import NOT_SHOWN, Problem
from bezel_plugin.construct import InputsError, arguments_of
from bezel_plugin.table import COMPONENTS

SERVICE = COMPONENTS["bezel:cloudrun:CloudRunGpuService"]
BUCKET = COMPONENTS["bezel:storage:WeightsBucket"]
DIGEST = f"sha256:{'0' * 64}"
PROBE = {"path": "/health", "periodSeconds": 30.0, "timeoutSeconds": 5.0, "failureThreshold": 50.0}
CONTAINER: dict[str, Any] = {"arguments": ["/mnt/gemma"], "cpu": 4.0, "memoryGib": 16.0, "startupProbe": PROBE}
INPUTS: dict[str, Any] = {
    "project": "acme-llm",
    "location": "us-east4",
    "service": "chat",
    "image": f"us-east4-docker.pkg.dev/acme/hub/vllm@{DIGEST}",
    "accelerator": "nvidia-l4",
    "serviceAccount": "chat@acme-llm.iam.gserviceaccount.com",
    "maxInstances": 1.0,
    "requestConcurrency": 16.0,
    "container": CONTAINER,
}
SECRET = {rpc._special_sig_key: rpc._special_secret_sig, "value": "acme-llm"}
UNKNOWN = pulumi.UNKNOWN


def with_container(**changes: Any) -> dict[str, Any]:
    return {**INPUTS, "container": {**CONTAINER, **changes}}


def refusal(inputs: dict[str, Any]) -> Problem:
    with pytest.raises(InputsError) as refused:
        arguments_of(SERVICE, "service", inputs)
    (problem,) = refused.value.problems
    assert isinstance(problem, Problem)
    return problem


def test_names_and_numbers_become_those_of_the_model() -> None:
    arguments = arguments_of(SERVICE, "service", INPUTS)
    assert arguments.service_account == INPUTS["serviceAccount"]
    assert (arguments.max_instances, type(arguments.max_instances)) == (1, int)
    assert arguments.container.startup_probe.failure_threshold == 50
    assert arguments.container.arguments == ("/mnt/gemma",)


def test_keys_of_a_map_stay_as_they_are_written() -> None:
    writers = {"compileCache": ["tpu@acme.iam.gserviceaccount.com"]}
    arguments = arguments_of(
        BUCKET, "weights", {"project": "p", "bucket": "b", "location": "us-east4", "writers": writers}
    )
    assert arguments.writers == {"compileCache": ("tpu@acme.iam.gserviceaccount.com",)}


@pytest.mark.parametrize(
    ("inputs", "key", "value", "consequence", "repair"),
    [
        ({**INPUTS, "maxInstancs": 2.0}, "maxInstancs", None, "there is no such input", "write maxInstances instead"),
        (with_container(cpus=2), "container.cpus", None, "there is no such input", "write cpu instead"),
        ({**INPUTS, "zzz": 1}, "zzz", None, "there is no such input", "there are accelerator, audiences"),
        ({**INPUTS, "maxInstances": "two"}, "maxInstances", "two", "valid integer", "correct the value"),
        ({**INPUTS, "maxInstances": 1.5}, "maxInstances", "1.5", "valid integer", "correct the value"),
        (with_container(arguments="vllm"), "container.arguments", "vllm", "valid tuple", "correct the value"),
        ({**INPUTS, "labels": ["a"]}, "labels", '["a"]', "valid dictionary", "correct the value"),
        ({**INPUTS, "deadlineSeconds": 0.0}, "deadlineSeconds", "0.0", "greater than 0", "correct the value"),
        ({**INPUTS, "image": "vllm:latest"}, "", None, "image vllm:latest has no digest", "look up its tag"),
        ({**INPUTS, "invokers": ["allUsers"]}, "", None, "anyone could use the accelerator", "or set public: true if"),
        ({**INPUTS, "project": SECRET}, "project", NOT_SHOWN, "not be a secret", "Secret Manager"),
        ({**INPUTS, "serviceAccount": UNKNOWN}, "serviceAccount", "(not known yet)", "no policy could judge", "itself"),
        (with_container(cpu=UNKNOWN), "container.cpu", "(not known yet)", "no policy could judge", "itself"),
        ({**INPUTS, "project": None}, "project", "(not set)", "it is required", "Google Cloud project"),
    ],
)  # fmt: skip
def test_a_wrong_input_is_refused(
    inputs: dict[str, Any], key: str, value: str | None, consequence: str, repair: str
) -> None:
    problem = refusal(inputs)
    assert problem.key == f"service: {key}".rstrip(": ")
    assert problem.value == value
    assert consequence in problem.consequence
    assert repair in problem.repair


def test_every_wrong_input_is_told_at_once() -> None:
    with pytest.raises(InputsError) as refused:
        arguments_of(SERVICE, "service", {**INPUTS, "one": 1, "two": 2})
    assert len(refused.value.problems) == 2


@pytest.mark.usefixtures("event_loop")
def test_an_unknown_image_stays_unknown() -> None:
    """No policy reads it, so it may come from another resource."""
    arguments = arguments_of(SERVICE, "service", {**INPUTS, "image": UNKNOWN})
    assert isinstance(arguments.image, pulumi.Output)
