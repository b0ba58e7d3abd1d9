"""Machines with accelerators of every cloud, and what selects their nodes, are found in values as Google's are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bezel.resource_cost.detection.accelerators import requested_by
from tests.support.policies.harness import DIGEST, LABELS, SERVICE, service, violations
from tests.support.policies.jobs import all_violations

POD = "kubernetes:core/v1:Pod"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
# One of each family of the published lists, and each form of a size.
MACHINES = [
    "p2.xlarge", "p3.2xlarge", "p3dn.24xlarge", "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge",
    "p5en.48xlarge", "p6-b200.48xlarge", "p6e-gb200.36xlarge", "g3.4xlarge", "g3s.xlarge", "g4dn.metal",
    "g4ad.4xlarge", "g5.xlarge", "g5g.xlarge", "g6.48xlarge", "g6e.12xlarge", "g6f.large", "gr6.4xlarge",
    "gr6f.4xlarge", "g7e.2xlarge", "inf1.xlarge", "inf2.48xlarge", "trn1.32xlarge", "trn1n.32xlarge",
    "trn2.48xlarge", "trn2u.48xlarge", "dl1.24xlarge", "dl2q.24xlarge", "vt1.3xlarge", "f1.2xlarge", "f2.6xlarge",
    "Standard_ND96isr_H100_v5", "Standard_NC24ads_A100_v4", "Standard_NC4as_T4_v3", "Standard_NV36ads_A10_v5",
    "Standard_ND96isr_MI300X_v5", "Standard_NG32ads_V620_v1", "Standard_NP10s", "Standard_ND128isr_NDR_GB200_v6",
    "BM.GPU.H100.8", "BM.GPU4.8", "VM.GPU.A10.2", "VM.GPU3.1", "BM.GPU.MI300X.8", "ecs.gn7i-c8g1.2xlarge",
    "ecs.ebmgn7e.32xlarge", "gx3-16x80x1l4", "a2-ultragpu-1g", "a3-megagpu-8g", "a4x-highgpu-4g", "g2-standard-48",
    "g4-standard-48", "ct5lp-hightpu-4t",
]  # fmt: skip
SIZES = [
    "gpu-h100x8-640gb", "H100-1-80G", "L40S-1-48G", "GPU-3070-S", "gpu_8x_h100_sxm5", "g1-gpu-rtx6000-1",
    "h100-380", "A100",
]  # fmt: skip
PLAIN = [
    "m5.large", "c7g.xlarge", "r6i.metal", "t4g.micro", "i4g.large", "d3.xlarge", "x2gd.medium", "hpc7a.12xlarge",
    "u-6tb1.metal", "Standard_D4s_v5", "Standard_B2ms", "Standard_E8as_v5", "Standard_F16s_v2", "Standard_L8s_v3",
    "Standard_M128", "e2-standard-4", "n2d-highmem-8", "c4a-standard-1",
]  # fmt: skip


DEDICATED = "aws:ec2/dedicatedHost:DedicatedHost"
# What each cloud calls a machine, and how it names one with an accelerator.
ELSEWHERE: list[tuple[str, dict[str, Any]]] = [
    (DEDICATED, {"instanceFamily": "p4d"}),
    (DEDICATED, {"instance_family": "g5"}),
    ("aws:ec2/capacityBlockReservation:CapacityBlockReservation", {"capacityBlockOfferingId": "cb-0123"}),
    ("aws:workspaces/workspace:Workspace", {"workspaceProperties": {"computeTypeName": "GRAPHICSPRO_G4DN"}}),
    ("aws:workspaces/workspace:Workspace", {"workspaceProperties": {"computeTypeName": "GRAPHICS"}}),
    ("aws:appstream/fleet:Fleet", {"instanceType": "stream.graphics.g4dn.xlarge"}),
    ("aws:sagemaker/notebookInstance:NotebookInstance", {"instanceType": "ml.g5.xlarge"}),
    ("azure-native:app:ManagedEnvironment", {"workloadProfiles": [{"workloadProfileType": "NC24-A100"}]}),
    (
        "azure-native:app:ManagedEnvironment",
        {"workloadProfiles": [{"workloadProfileType": "Consumption-GPU-NC8as-T4"}]},
    ),
    ("azure-native:app:ManagedEnvironment", {"workloadProfiles": [{"workload_profile_type": "NC8as-T4"}]}),
    ("vultr:index/instance:Instance", {"plan": "vcg-a100-1c-6g-4vram"}),
    ("vultr:index/bareMetalServer:BareMetalServer", {"plan": "vbm-72c-480gb-gh200-gpu"}),
    ("vultr:index/bareMetalServer:BareMetalServer", {"plan": "vbm-112c-2048gb-8-h100"}),
    ("lambdalabs:index/instance:Instance", {"instanceTypeName": "gpu_1x_h100_pcie"}),
    ("ovh:CloudProject/instance:Instance", {"flavorName": "h100-380"}),
    ("ovh:CloudProject/instance:Instance", {"flavor": {"flavorName": "l40s-90"}}),
    ("ovh:CloudProject/instance:Instance", {"flavor_name": "t2-le-45"}),
    ("nebius:compute:Instance", {"resources": {"platform": "gpu-h100-sxm"}}),
    ("nebius:compute:Instance", {"resources": {"preset": "8gpu-128vcpu-1600gb"}}),
    ("civo:index/instance:Instance", {"size": "an.g1.a100.kube.x1"}),
    ("exoscale:index/computeInstance:ComputeInstance", {"type": "gpua5000.large"}),
    ("hcloud:index/server:Server", {"serverType": "gex44"}),
    ("scaleway:index/instanceServer:InstanceServer", {"type": "RENDER-S"}),
    (
        "kubernetes:autoscaling.x-k8s.io/v1:ProvisioningRequest",
        {"spec": {"provisioningClassName": "queued-provisioning.gke.io", "podSets": [{"count": 1}]}},
    ),
    (POD, {"spec": {"resourceClaims": [{"name": "device", "resourceClaimTemplateName": "one"}]}}),
]
PLAIN_ELSEWHERE: list[tuple[str, dict[str, Any]]] = [
    (DEDICATED, {"instanceFamily": "m5"}),
    ("aws:workspaces/workspace:Workspace", {"workspaceProperties": {"computeTypeName": "GENERALPURPOSE_4XLARGE"}}),
    ("aws:appstream/fleet:Fleet", {"instanceType": "stream.standard.medium"}),
    ("azure-native:app:ManagedEnvironment", {"workloadProfiles": [{"workloadProfileType": "D4"}]}),
    ("azure-native:app:ManagedEnvironment", {"workloadProfiles": [{"workloadProfileType": "Consumption"}]}),
    ("vultr:index/instance:Instance", {"plan": "vc2-1c-1gb"}),
    ("vultr:index/bareMetalServer:BareMetalServer", {"plan": "vbm-4c-32gb"}),
    ("ovh:CloudProject/instance:Instance", {"flavorName": "b2-7"}),
    ("nebius:compute:Instance", {"resources": {"platform": "cpu-d3", "preset": "4vcpu-16gb"}}),
    ("civo:index/instance:Instance", {"size": "g4s.kube.small"}),
    ("exoscale:index/computeInstance:ComputeInstance", {"type": "standard.medium"}),
    ("hcloud:index/server:Server", {"serverType": "cax11"}),
    ("scaleway:index/instanceServer:InstanceServer", {"type": "DEV1-S"}),
    ("docker:index/image:Image", {"build": {"platform": "linux/amd64"}}),
    (POD, {"spec": {"resourceClaims": [], "containers": [{"image": DIGEST}]}}),
    ("aws:elasticache/cluster:Cluster", {"nodeType": "cache.t3.micro"}),
    ("aws:elasticache/cluster:Cluster", {"nodeType": "cache.r6g.large"}),
    ("aws:memorydb/cluster:Cluster", {"nodeType": "db.t4g.small"}),
    ("aws:dax/cluster:Cluster", {"nodeType": "dax.r4.large"}),
    ("aws:opensearch/domain:Domain", {"clusterConfig": {"instanceType": "t3.small.search"}}),
    ("aws:opensearch/domain:Domain", {"clusterConfig": {"instanceType": "or1.medium.search"}}),
    ("aws:elasticsearch/domain:Domain", {"clusterConfig": {"instanceType": "m5.large.elasticsearch"}}),
    ("aws:redshift/cluster:Cluster", {"nodeType": "ra3.xlplus"}),
    ("aws:redshift/cluster:Cluster", {"nodeType": "dc2.large"}),
    ("aws:sagemaker/notebookInstance:NotebookInstance", {"instanceType": "ml.t3.medium"}),
    ("aws:mq/broker:Broker", {"hostInstanceType": "mq.m5.large"}),
    ("aws:msk/cluster:Cluster", {"brokerNodeGroupInfo": {"instanceType": "kafka.m5.large"}}),
]


@pytest.mark.parametrize(("token", "inputs"), ELSEWHERE)
def test_a_machine_of_another_cloud_is_found(token: str, inputs: dict[str, Any]) -> None:
    assert requested_by(token, inputs)
    assert violations("hourly-ceiling", token, inputs)


@pytest.mark.parametrize(("token", "inputs"), PLAIN_ELSEWHERE)
def test_a_machine_of_another_cloud_without_one_passes(token: str, inputs: dict[str, Any]) -> None:
    assert requested_by(token, inputs) is None


def selecting(key: str, values: list[str] | None, operator: str = "In") -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": values} if values is not None else {})}


def affinity(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}}


def requiring(*requirements: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"requirements": list(requirements)}}}}


def holders(machine: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Places in which a machine is named."""
    return {
        "an instance": ("aws:ec2/instance:Instance", {"instanceType": machine}),
        "a size": ("azure-native:compute:VirtualMachine", {"hardwareProfile": {"vmSize": machine}}),
        "a list": ("aws:eks/nodeGroup:NodeGroup", {"instanceTypes": ["m5.large", machine]}),
        "another name": ("somebody:knows/this:Type", {"shape": machine}),
        "a selector": (POD, {"spec": {"nodeSelector": {"node.kubernetes.io/instance-type": machine}}}),
        "an affinity": (POD, affinity(selecting("node.kubernetes.io/instance-type", [machine]))),
        "a requirement": (NODE_POOL, requiring(selecting("node.kubernetes.io/instance-type", [machine]))),
        "JSON": ("aws:cloudformation/stack:Stack", {"templateBody": json.dumps({"InstanceType": machine})}),
    }


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_with_accelerators_is_found_wherever_it_stands(machine: str) -> None:
    for place, (token, inputs) in holders(machine).items():
        assert requested_by(token, inputs), place
    assert violations("hourly-ceiling", *holders(machine)["a selector"])


@pytest.mark.parametrize("machine", PLAIN)
def test_a_machine_without_accelerators_is_found_nowhere(machine: str) -> None:
    for place, (token, inputs) in holders(machine).items():
        assert requested_by(token, inputs) is None, place


@pytest.mark.parametrize("size", SIZES)
def test_a_size_that_names_an_accelerator_is_found(size: str) -> None:
    assert requested_by("digitalocean:index/droplet:Droplet", {"size": size})
    assert requested_by("scaleway:index/instance:Instance", {"type": size})


def limits_of(resource: str, count: object = "1") -> dict[str, Any]:
    return {"spec": {"containers": [{"image": DIGEST, "resources": {"limits": {resource: count}}}]}}


def running(*arguments: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"image": DIGEST, "args": list(arguments)}]}}


FOUND = {
    "a GPU's product": {"spec": {"nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"}}},
    "a kind of accelerator": {"spec": {"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}},
    "a pool by its name": {"spec": {"nodeSelector": {"cloud.google.com/gke-nodepool": "gpu-pool"}}},
    "a kind of work": {"spec": {"node_selector": {"workload": "gpu"}}},
    "a family": {"spec": {"nodeSelector": {"cloud.google.com/machine-family": "a3"}}},
    "a class": {"spec": {"nodeSelector": {"cloud.google.com/compute-class": "Accelerator"}}},
    "a PCI device": affinity(selecting("feature.node.kubernetes.io/pci-10de.present", ["true"])),
    "a GPU at all": affinity(selecting("nvidia.com/gpu.present", None, "Exists")),
    "a family of AWS": requiring(selecting("karpenter.k8s.aws/instance-family", ["m5", "p5"])),
    "a category of AWS": requiring(selecting("karpenter.k8s.aws/instance-category", ["g"])),
    "a name of AWS": requiring(selecting("karpenter.k8s.aws/instance-gpu-name", ["h100"])),
    "a count of AWS": requiring(selecting("karpenter.k8s.aws/instance-gpu-count", ["0"], "Gt")),
    "a family of Azure": requiring(selecting("karpenter.azure.com/sku-family", ["N"])),
    "a flavour of Kueue": {"spec": {"nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}}},
    "a toleration": {"spec": {"tolerations": [selecting("nvidia.com/gpu", None, "Exists")]}},
    "a device class": {"spec": {"devices": {"requests": [{"deviceClassName": "gpu.amd.com"}]}}},
    "a GPU": limits_of("nvidia.com/gpu"),
    "a part of a GPU": limits_of("nvidia.com/mig-1g.5gb"),
    "a TPU": limits_of("google.com/tpu", 4.0),
    "a GPU of AMD": limits_of("amd.com/gpu"),
    "a GPU of Intel": limits_of("gpu.intel.com/i915"),
    "a Neuron device": limits_of("aws.amazon.com/neuron"),
    "a Gaudi": limits_of("habana.ai/gaudi"),
    "an Ascend": limits_of("huawei.com/Ascend910"),
    "an option": running("launch", "--instance-type", "p5.48xlarge"),
    "an option with its value": running("launch", "--instance-type=Standard_ND96isr_H100_v5"),
    "GPUs as an option": running("launch", "--gpus", "A100:8"),
    "an accelerator as an option": running("sh", "-c", "create --accelerator=type=nvidia-tesla-t4,count=1"),
    "a machine in a script": running("sh", "-c", "create x --machine-type a3-highgpu-8g"),
    "a kind of resource": {"spec": {"resourceType": "gpu"}},
}
HARMLESS = {
    "categories": requiring(selecting("karpenter.k8s.aws/instance-category", ["c", "m", "r"])),
    "families": requiring(selecting("karpenter.k8s.aws/instance-family", ["m5", "c6i"])),
    "sizes of Azure": requiring(selecting("karpenter.azure.com/sku-family", ["D"])),
    "an architecture": requiring(selecting("kubernetes.io/arch", ["amd64"])),
    "no GPU": affinity(selecting("workload", ["gpu"], "NotIn")),
    "no machine with one": affinity(selecting("node.kubernetes.io/instance-type", ["p5.48xlarge"], "NotIn")),
    "a pool": {"spec": {"nodeSelector": {"cloud.google.com/gke-nodepool": "default-pool"}}},
    "none": limits_of("nvidia.com/gpu", "0"),
    "none as a number": limits_of("nvidia.com/gpu", 0.0),
    "memory": limits_of("memory", "16Gi"),
    "an option of a server": running("serve", "--gpu-memory-utilization=0.9", "--port", "8080"),
    "a label": {"metadata": {"labels": {"gpu": "a100"}}, "spec": {"description": "runs on a gpu p5.48xlarge"}},
    "what another pod has": {"spec": {"topology": {"labelSelector": {"matchLabels": {"app": "gpu"}}}}},
}
NAMED_SO: list[tuple[str, dict[str, Any]]] = [
    ("gcp:storage/bucket:Bucket", {"name": "gpu-models", "labels": LABELS}),
    ("gcp:pubsub/topic:Topic", {"name": "gpu", "labels": {"gpu": "a100"}}),
    ("gcp:compute/firewall:Firewall", {"targetTags": ["gpu"], "description": "for the gpu machines"}),
    ("gcp:artifactregistry/repository:Repository", {"repositoryId": "gpu", "format": "DOCKER", "labels": LABELS}),
    ("gcp:serviceaccount/account:Account", {"accountId": "gpu-runner", "displayName": "GPU runner"}),
    ("digitalocean:index/droplet:Droplet", {"size": "s-1vcpu-1gb"}),
    ("oci:Core/instance:Instance", {"shape": "VM.Standard.E4.Flex"}),
    (SERVICE, service({"template.containers.0.args": ["m", "--gpu-memory-utilization=0.9"]})),
]


@pytest.mark.parametrize("case", FOUND)
def test_what_selects_or_limits_accelerators_is_refused(case: str) -> None:
    assert violations("hourly-ceiling", POD, FOUND[case])
    assert violations("allowed-accelerators", POD, FOUND[case])


@pytest.mark.parametrize("case", HARMLESS)
def test_what_selects_other_nodes_passes(case: str) -> None:
    assert all_violations(POD, HARMLESS[case]) == {}


@pytest.mark.parametrize(("token", "inputs"), NAMED_SO)
def test_a_name_or_a_description_buys_nothing(token: str, inputs: dict[str, Any]) -> None:
    assert all_violations(token, inputs) == {}
