"""A policy asked about one resource, without an engine: the library's own views of the inputs, and what it reports."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pulumi_policy import PolicyResource, ResourceValidationArgs, ResourceValidationPolicy, StackValidationArgs
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

from bezel.leases.requests import instance_body, queued_body
from bezel_policies.hardware_cost import pack as hardware_cost
from bezel_policies.security import pack as security

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_policy import Policy

ROOT = Path(__file__).parents[3]
UNKNOWN = UNKNOWN_STRING_VALUE
POLICIES: dict[str, Policy] = {policy.name: policy for policy in [*hardware_cost.POLICIES, *security.POLICIES]}
OF_A_RESOURCE = [name for name, policy in POLICIES.items() if isinstance(policy, ResourceValidationPolicy)]
SERVICE = "gcp:cloudrunv2/service:Service"
INSTANCE = "gcp:compute/instance:Instance"
TPU_VM = "gcp:tpu/v2Vm:V2Vm"
QUEUE = "gcp:tpu/v2QueuedResource:V2QueuedResource"
LEASE = "pulumi-python:dynamic/components:TpuLease"
DIGEST = f"us-east4-docker.pkg.dev/p/hub/vllm/vllm-openai@sha256:{'a' * 64}"
LABELS = {"owner": "ml-platform", "environment": "dev", "expires-at": "never"}


def example(pack: str, environment: str = "dev") -> dict[str, Any]:
    """The shipped configuration of a pack."""
    text = (ROOT / "policies" / f"{pack}.{environment}.json").read_text()
    content: dict[str, Any] = json.loads(text)
    return content


LIMITS = {**example("hardware_cost"), **example("security")}


def service(changes: Mapping[str, object] | None = None) -> dict[str, Any]:
    """The inputs of a service on an L4; `changes` by path, None takes out."""
    return change(
        {
            "location": "us-east4",
            "labels": LABELS,
            "template": {
                "serviceAccount": "bezel-l4@p.iam.gserviceaccount.com",
                "nodeSelector": {"accelerator": "nvidia-l4"},
                "gpuZonalRedundancyDisabled": True,
                "scaling": {"minInstanceCount": 0.0, "maxInstanceCount": 1.0},
                "containers": [
                    {
                        "image": DIGEST,
                        "args": ["/mnt/models/m", "--max-model-len=32768"],
                        "envs": [{"name": "HF_HUB_OFFLINE", "value": "1"}],
                        "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
                    }
                ],
            },
        },
        changes or {},
    )


def instance(changes: Mapping[str, object] | None = None) -> dict[str, Any]:
    """The inputs of a flex-start instance with four v6e chips."""
    return change(
        {
            "machineType": "ct6e-standard-4t",
            "zone": "us-east5-b",
            "labels": LABELS,
            "serviceAccount": {"email": "tpu@p.iam.gserviceaccount.com", "scopes": ["cloud-platform"]},
            "networkInterfaces": [{"network": "default"}],
            "metadata": {"weights": "gs://p-models/m"},
            "scheduling": {"provisioningModel": "FLEX_START", "maxRunDuration": {"seconds": 14400.0}},
        },
        changes or {},
    )


def queue(changes: Mapping[str, object] | None = None) -> dict[str, Any]:
    """The body of a queued resource for a v6e-4, four hours, as the REST API takes it."""
    return change(
        {
            "provisioningModel": "FLEX_START",
            "runDuration": {"maxRunDuration": "14400s"},
            "tpu": {
                "nodeSpec": [
                    {
                        "parent": "projects/p/locations/us-east5-b",
                        "nodeId": "n",
                        "node": {
                            "acceleratorType": "v6e-4",
                            "runtimeVersion": "v2-alpha-tpuv6e",
                            "labels": LABELS,
                            "serviceAccount": {"email": "tpu@p.iam.gserviceaccount.com"},
                            "networkConfig": {"enableExternalIps": False},
                            "metadata": {"weights": "gs://p-models/m"},
                        },
                    }
                ]
            },
        },
        changes or {},
    )


def request(back_end: str, changes: Mapping[str, object] | None = None) -> dict[str, Any]:
    """What a resource of ours asks for four v6e chips with, wherever they are granted; `changes` of the body."""
    metadata = {"bezel-image": DIGEST, "bezel-secrets-by-name": '{"HF_TOKEN":"hf-token"}'}
    more = {"labels": LABELS, "metadata": metadata, "service_account": "tpu@p.iam.gserviceaccount.com"}
    body = (
        queued_body("l", accelerator_type="v6e-4", runtime_version="v2-alpha-tpuv6e", run_seconds=14400, **more)
        if back_end == "queued_resource"
        else instance_body(machine_type="ct6e-standard-4t", source_image="i", run_seconds=14400, **more)
    )
    zones = [{"zone": zone, "patience_seconds": 1800.0} for zone in ("europe-west4-a", "us-east5-a")]
    return {"name": "l", "project": "p", "zones": zones, "body": change(body, changes or {})}


def change(inputs: dict[str, Any], changes: Mapping[str, object]) -> dict[str, Any]:
    """The inputs with other values at paths such as `template.scaling.maxInstanceCount`; None takes one out."""
    made = copy.deepcopy(inputs)
    for path, value in changes.items():
        here: Any = made
        *way, last = path.split(".")
        for step in way:
            here = here[int(step)] if isinstance(here, list) else here.setdefault(step, {})
        if value is None and isinstance(here, dict):
            here.pop(last, None)
        else:
            here[int(last) if isinstance(here, list) else last] = value
    return made


def violations(
    policy: str, token: str, inputs: Mapping[str, Any], config: Mapping[str, Any] | None = None
) -> list[str]:
    """What a policy reports of one resource."""
    messages: list[str] = []
    settings = LIMITS.get(policy, {}) if config is None else config
    args = ResourceValidationArgs(
        token,
        unknown_checking_proxy(dict(inputs)),
        f"urn:pulumi:l4-qat::bezel::{token}::it",
        "it",
        None,  # type: ignore[arg-type]
        None,
        dict(settings),
    )
    POLICIES[policy].validate(args, lambda message, _urn=None: messages.append(message))  # type: ignore[attr-defined]
    return messages


def remedy(policy: str, token: str, inputs: dict[str, Any], config: Mapping[str, Any] | None = None) -> Any:
    """The inputs that a policy puts in place of a resource's own; None where it leaves them."""
    settings = LIMITS.get(policy, {}) if config is None else config
    args = ResourceValidationArgs(token, inputs, "urn", "it", None, None, dict(settings))  # type: ignore[arg-type]
    return POLICIES[policy].remediate(args)  # type: ignore[attr-defined]


def stack_violations(
    policy: str, resources: list[tuple[str, dict[str, Any]]], config: Mapping[str, Any] | None = None
) -> list[str]:
    """What a policy reports of a stack that consists of these resources."""
    messages: list[str] = []
    made = [
        PolicyResource(token, unknown_checking_proxy(inputs), f"urn:{number}", "it", None, None, None, [], {})  # type: ignore[arg-type]
        for number, (token, inputs) in enumerate(resources)
    ]
    args = StackValidationArgs(made, LIMITS.get(policy, {}) if config is None else dict(config))
    POLICIES[policy].validate(args, lambda message, _urn=None: messages.append(message))  # type: ignore[attr-defined]
    return messages
