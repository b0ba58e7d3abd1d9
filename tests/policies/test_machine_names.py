"""Machines with accelerators of every cloud, and what selects their nodes, are found in values as Google's are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bezel.resource_cost.accelerators import requested_by
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


def limited(resource: str, count: object = "1") -> dict[str, Any]:
    return {"spec": {"containers": [{"image": DIGEST, "resources": {"limits": {resource: count}}}]}}


def running(*words: str) -> dict[str, Any]:
    return {"spec": {"containers": [{"image": DIGEST, "args": list(words)}]}}


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
    "a GPU": limited("nvidia.com/gpu"),
    "a part of a GPU": limited("nvidia.com/mig-1g.5gb"),
    "a TPU": limited("google.com/tpu", 4.0),
    "a GPU of AMD": limited("amd.com/gpu"),
    "a GPU of Intel": limited("gpu.intel.com/i915"),
    "a Neuron device": limited("aws.amazon.com/neuron"),
    "a Gaudi": limited("habana.ai/gaudi"),
    "an Ascend": limited("huawei.com/Ascend910"),
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
    "none": limited("nvidia.com/gpu", "0"),
    "none as a number": limited("nvidia.com/gpu", 0.0),
    "memory": limited("memory", "16Gi"),
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
