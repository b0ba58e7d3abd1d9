"""An accelerator on a type of resource that nobody prices: refused wherever it is asked for, until it is exempted."""

from __future__ import annotations

import pytest

from bezel_policies.hardware_cost.pack import POLICIES as PACK
from tests.support.policies.harness import LIMITS, SERVICE, UNKNOWN, service, stack_violations, violations

GKE_AFFINITY = {
    "spec": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "cloud.google.com/gke-accelerator", "operator": "In", "values": ["nvidia-l4"]}
                            ]
                        }
                    ]
                }
            }
        }
    }
}
COMPUTE_CLASS = "kubernetes:cloud.google.com/v1:ComputeClass"
# Each passed once: what asks for an accelerator in a place of its own.
FOREIGN: list[tuple[str, dict[str, object]]] = [
    (
        "gcp:workbench/instance:Instance",
        {"gceSetup": {"acceleratorConfigs": [{"type": "NVIDIA_L4", "coreCount": "1"}]}},
    ),
    ("gcp:workbench/instance:Instance", {"gceSetup": {"machineType": "a2-highgpu-1g"}}),
    (
        "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager",
        {
            "instanceFlexibilityPolicy": {
                "instanceSelections": [{"name": "a", "machineTypes": ["e2-small", "g2-standard-4"]}]
            }
        },
    ),
    (
        "gcp:container/cluster:Cluster",
        {"clusterAutoscaling": {"resourceLimits": [{"resourceType": "nvidia-tesla-t4", "maximum": 4.0}]}},
    ),
    ("gcp:container/cluster:Cluster", {"enableTpu": True}),
    (COMPUTE_CLASS, {"spec": {"priorities": [{"gpu": {"type": "nvidia-l4", "count": 1.0}}]}}),
    (COMPUTE_CLASS, {"spec": {"priorities": [{"machineFamily": "n2"}, {"machineFamily": "g2"}]}}),
    (COMPUTE_CLASS, {"spec": {"priorities": [{"machineType": "ct6e-standard-4t"}]}}),
    (
        "gcp:dataflow/flexTemplateJob:FlexTemplateJob",
        {"additionalExperiments": ["worker_accelerator=type:nvidia-tesla-t4;count:1;install-nvidia-driver"]},
    ),
    ("gcp:dataflow/job:Job", {"machineType": "a2-highgpu-1g"}),
    ("kubernetes:core/v1:Pod", GKE_AFFINITY),
    ("kubernetes:core/v1:Pod", {"spec": {"nodeSelector": {"cloud.google.com/gke-tpu-topology": "2x2"}}}),
    ("gcp:compute/instance:Instance", {"machineType": "z99-standard-4", "zone": "us-east5-b"}),
    ("gcp:vertex/aiEndpointWithModelGardenDeployment:AiEndpointWithModelGardenDeployment", {"location": "us-east4"}),
    ("gcp:deploymentmanager/deployment:Deployment", {"target": {"config": {"content": '{"acceleratorType": "v3-8"}'}}}),
    ("gcp:compute/resizeRequest:ResizeRequest", {"resizeBy": 8.0, "instanceGroupManager": "g"}),
    ("kubernetes:yaml/v2:ConfigGroup", {"yaml": "kind: Job\nmachineType: a3-highgpu-8g\n"}),
    ("nobody:knows/this:Type", {"spec": {"gpus": 8.0}}),
    ("bezel:smoke:ShortBenchmark", {"planned": {"nodeSelector": {"accelerator": "nvidia-l4"}}}),
    ("pulumi-python:dynamic/smoke:HealthCheck2", {"planned": {"nodeSelector": {"accelerator": "nvidia-l4"}}}),
]
OF_A_RESOURCE = [policy.name for policy in PACK if not policy.name.startswith("stack-")]


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("gcp:compute/instance:Instance", {"machineType": "g2-standard-8"}),
        ("gcp:compute/instanceTemplate:InstanceTemplate", {"machineType": UNKNOWN}),
        ("gcp:cloudrunv2/job:Job", {"template": {"template": {"nodeSelector": {"accelerator": UNKNOWN}}}}),
        ("gcp:compute/instance:Instance", {"machineType": "n1", "guestAccelerators": [{"type": "nvidia-t4"}]}),
        ("gcp:container/nodePool:NodePool", {"nodeConfig": {"machineType": "ct6e-standard-4t"}}),
        ("kubernetes:core/v1:Pod", {"spec": {"containers": [{"resources": {"limits": {"google.com/tpu": "4"}}}]}}),
        ("gcp:tpu/node:Node", {"acceleratorType": "v3-8"}),
        (
            "gcp:cloudrun/service:Service",
            {"template": {"spec": {"nodeSelector": {"run.googleapis.com/accelerator": "nvidia-l4"}}}},
        ),
        ("gcp:cloudrunv2/job:Job", {"template": {"template": {"nodeSelector": {"accelerator": "nvidia-l4"}}}}),
        *FOREIGN,
    ],
)
def test_an_accelerator_on_an_unpriced_type_is_refused_or_exempted(token: str, inputs) -> None:
    """An accelerator on a type that nobody prices is refused and may be exempted."""
    labelled = {**inputs, "labels": {"environment": "dev"}}
    for policy in ("hourly-ceiling", "monthly-ceiling", "allowed-accelerators"):
        (message,) = violations(policy, token, labelled)
        assert f'The owner of the limits can exempt the type: `"exempt": ["{token}"]`' in message
        assert violations(policy, token, labelled, {**LIMITS[policy], "exempt": [token]}) == []


def test_a_tpu_that_nothing_ends_is_refused_until_its_type_is_exempt() -> None:
    token, inputs = "gcp:container/nodePool:NodePool", {"placementPolicy": {"tpuTopology": "2x2"}}
    (message,) = violations("run-duration", token, inputs)
    assert f'"exempt": ["{token}"]' in message
    assert violations("run-duration", token, inputs, {"limits": {"dev": 4}, "exempt": [token]}) == []


def test_a_machine_that_a_preview_cannot_know_is_refused() -> None:
    for policy in ("hourly-ceiling", "monthly-ceiling", "allowed-accelerators"):
        (message,) = violations(policy, "gcp:compute/instance:Instance", {"machineType": UNKNOWN, "zone": "us-east5-b"})
        assert "machineType = (not known before the deploy)" in message


@pytest.mark.parametrize("policy", ["stack-hourly-ceiling", "stack-monthly-ceiling"])
def test_a_stack_with_unpriced_parts_is_refused_unless_exempt(policy: str) -> None:
    """A stack with what nobody prices is refused unless its types are exempt."""
    resources = [(token, {**inputs, "labels": {"environment": "dev"}}) for token, inputs in FOREIGN]
    for resource in resources:
        assert stack_violations(policy, [resource])
    assert stack_violations(policy, resources, {**LIMITS[policy], "exempt": [token for token, _ in FOREIGN]}) == []


def test_what_has_a_price_cannot_be_exempted() -> None:
    exempting = {"limits": {"dev": 1}, "exempt": [SERVICE]}
    assert violations("hourly-ceiling", SERVICE, service(), exempting) == violations(
        "hourly-ceiling", SERVICE, service(), {"limits": {"dev": 1}}
    )
    assert violations("hourly-ceiling", SERVICE, service(), exempting)


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("gcp:workbench/instance:Instance", {"gceSetup": {"machineType": "n1-standard-4", "acceleratorConfigs": []}}),
        ("gcp:container/cluster:Cluster", {"enableTpu": False, "tpuConfig": {"enabled": False}}),
        (
            "gcp:container/cluster:Cluster",
            {"clusterAutoscaling": {"resourceLimits": [{"resourceType": "cpu", "maximum": 4.0}]}},
        ),
        ("gcp:cloudrunv2/service:Service", {"template": {"gpuZonalRedundancyDisabled": True}}),
        ("gcp:dataflow/flexTemplateJob:FlexTemplateJob", {"parameters": {"outputTable": "p:d.t", "tputs": "x"}}),
        ("gcp:compute/instance:Instance", {"machineType": "e2-small", "zone": "z", "network": "tpu-1", "tag": "v2-1"}),
        ("gcp:cloudbuild/trigger:Trigger", {"build": {"options": {"machineType": "E2_MEDIUM"}}}),
        ("gcp:bigtable/instance:Instance", {"instanceType": "PRODUCTION"}),
        ("gcp:monitoring/alertPolicy:AlertPolicy", {"conditions": [{"filter": "accelerator = nvidia-l4"}]}),
        ("gcp:cloudquota/sQuotaPreference:SQuotaPreference", {"dimensions": {"gpu_family": "NVIDIA_H100"}}),
        ("gcp:storage/bucket:Bucket", {"name": "nvidia-l4", "labels": {"accelerator": "nvidia-l4"}}),
        ("kubernetes:core/v1:ConfigMap", {"data": {"gpu": "nvidia-l4"}}),
        (
            "pulumi-python:dynamic/smoke:HealthCheck",
            {"planned": {"template": {"nodeSelector": {"accelerator": "nvidia-l4"}}}},
        ),
        (
            "bezel:smoke:HealthCheck",
            {"planned": {"template": {"nodeSelector": {"accelerator": "nvidia-l4"}}}},
        ),
        (
            "kubernetes:core/v1:Pod",
            {"metadata": {"annotations": {"gpu": "l4"}}, "spec": {"containers": [{"image": "i"}]}},
        ),
        ("kubernetes:apps/v1:Deployment", {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}]}),
        ("pulumi:providers:gcp", {"accelerator": "nvidia-l4"}),
    ],
)
def test_what_only_speaks_of_accelerators_passes(token: str, inputs) -> None:
    for policy in OF_A_RESOURCE:
        assert violations(policy, token, inputs) == []
