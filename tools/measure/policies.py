"""Run time of the policy packs for a large stack, in process: seconds for 1,000 resources through every policy.

    .venv/bin/python -m tools.measure.policies [RESOURCES]

Each resource is passed to each policy as the library does it: one resource after another, with new views of its inputs.
Every tenth breaks a rule.
Prints the seconds of each pack, and its violations; the engine's own time for a stack of that size is not included.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pulumi_policy import (
    Policy,
    PolicyProviderResource,
    PolicyResource,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import unknown_checking_proxy

from bezel_policies.hardware_cost import pack as hardware_cost
from bezel_policies.price import pack as price
from bezel_policies.security import pack as security

CLONE = Path(__file__).resolve().parents[2]

PACKS = {"hardware_cost": hardware_cost.POLICIES, "security": security.POLICIES, price.NAME: price.POLICIES}
NONE: Any = None  # options of a resource, which no policy here reads
PROVIDER = PolicyProviderResource("pulumi:providers:gcp", {}, "urn:pulumi:l4-qat::bezel::gcp::default", "default")
LABELS = {"owner": "ml-platform", "environment": "dev", "expires-at": "never", "stack": "l4-qat", "model": "gemma"}


def service(max_instances: int) -> dict[str, Any]:
    """A service on an L4, as large as this repository's own."""
    probe = {"failureThreshold": 180.0, "httpGet": {"path": "/health", "port": 8080.0}, "periodSeconds": 10.0}
    container = {
        "args": [f"--option-{number}=value" for number in range(16)],
        "envs": [{"name": f"VARIABLE_{number}", "value": str(number)} for number in range(6)],
        "image": f"us-east4-docker.pkg.dev/p/hub/vllm/vllm-openai@sha256:{'a' * 64}",
        "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
        "startupProbe": probe,
        "livenessProbe": probe,
    }
    template = {
        "containers": [container],
        "gpuZonalRedundancyDisabled": True,
        "nodeSelector": {"accelerator": "nvidia-l4"},
        "scaling": {"minInstanceCount": 0.0, "maxInstanceCount": float(max_instances)},
        "serviceAccount": "bezel-l4@p.iam.gserviceaccount.com",
    }
    return {"location": "us-east4", "labels": LABELS, "template": template}


def instance(hours: int) -> dict[str, Any]:
    """A flex-start instance with a v6e-4."""
    return {
        "machineType": "ct6e-standard-4t",
        "zone": "us-east5-b",
        "labels": LABELS,
        "metadata": {f"key-{number}": "x" * 500 for number in range(5)},
        "networkInterfaces": [{"network": "default"}],
        "scheduling": {"provisioningModel": "FLEX_START", "maxRunDuration": {"seconds": hours * 3600.0}},
        "serviceAccount": {"email": "tpu@p.iam.gserviceaccount.com"},
    }


def resources(count: int) -> list[tuple[str, dict[str, Any]]]:
    """`count` resources: half of them services, the rest resources around them."""
    resources: list[tuple[str, dict[str, Any]]] = []
    for number in range(count):
        wrong = number % 10 == 0
        resources.append(
            [
                ("gcp:cloudrunv2/service:Service", service(40 if wrong else 1)),
                ("gcp:cloudrunv2/serviceIamMember:ServiceIamMember", {"member": "group:chat@acme.example"}),
                ("gcp:cloudrunv2/service:Service", service(1)),
                ("gcp:compute/instance:Instance", instance(4)),
                ("gcp:cloudrunv2/service:Service", service(1)),
                ("gcp:storage/bucket:Bucket", {"name": "b", "labels": LABELS}),
                ("gcp:cloudrunv2/service:Service", service(1)),
                ("gcp:projects/service:Service", {"service": "run.googleapis.com"}),
                ("gcp:cloudrunv2/service:Service", service(1)),
                ("pulumi-python:dynamic/smoke:HealthCheck", {"url": "http://127.0.0.1:1", "service": "s"}),
            ][number % 10]
        )
    return resources


def main() -> None:
    """Measure, and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    batch = resources(count)
    print(f"resources {count}; seconds, and those of CPU: on a busy machine the figure to go by")
    for pack, policies in PACKS.items():
        evaluations, violations, seconds, busy = measure(pack, policies, batch)
        print(f"{pack:<14} {evaluations:>6} evaluations {violations:>5} violations {seconds:>6.2f} s {busy:>6.2f} s")


def measure(pack: str, policies: Sequence[Policy], batch: Sequence[tuple[str, Any]]) -> tuple[int, int, float, float]:
    """Evaluations and violations of a pack, its seconds, and those of CPU."""
    limits_file = CLONE / "policies" / f"{pack}.dev.json"
    config = json.loads(limits_file.read_text()) if limits_file.exists() else {}
    violations: list[str] = []
    evaluations = 0
    started, busy = time.perf_counter(), time.process_time()
    urns = [f"urn:pulumi:l4-qat::bezel::{token}::{number}" for number, (token, _) in enumerate(batch)]
    for (token, inputs), urn in zip(batch, urns, strict=True):
        for policy in policies:
            if isinstance(policy, ResourceValidationPolicy):
                view, limits = unknown_checking_proxy(inputs), config.get(policy.name, {})
                args = ResourceValidationArgs(token, view, urn, "it", NONE, PROVIDER, limits)
                policy.validate(args, lambda message, _urn: violations.append(message))
                evaluations += 1
    for policy in policies:
        if isinstance(policy, StackValidationPolicy):
            stack = [
                PolicyResource(token, unknown_checking_proxy(inputs), urn, "it", NONE, PROVIDER, None, [], {})
                for (token, inputs), urn in zip(batch, urns, strict=True)
            ]
            limits = config.get(policy.name, {})
            policy.validate(StackValidationArgs(stack, limits), lambda message, _urn: violations.append(message))
            evaluations += len(stack)
    return evaluations, len(violations), time.perf_counter() - started, time.process_time() - busy


if __name__ == "__main__":
    main()
