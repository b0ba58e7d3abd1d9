"""Forms of a service: what gcloud describes is the same service as the API's answer, and so is a compose file's."""

import json
from typing import Any

import pytest
import yaml

from bezel.conversion.inputs.found_server import FoundServer
from bezel.conversion.inputs.readers import read_text
from tests.support.conversion.six_inputs import COMPOSE, IMAGE, LIVE

KNATIVE: dict[str, Any] = {
    "apiVersion": "serving.knative.dev/v1",
    "kind": "Service",
    "metadata": {
        "name": "chat",
        "namespace": "acme-llm",
        "labels": {"cloud.googleapis.com/location": "us-east4", "team": "chat"},
        "annotations": {
            "run.googleapis.com/ingress": "internal",
            "run.googleapis.com/minScale": "1",
            "run.googleapis.com/operation-id": "1",
        },
    },
    "spec": {
        "template": {
            "metadata": {
                "annotations": {
                    "autoscaling.knative.dev/maxScale": "2",
                    "run.googleapis.com/gpu-zonal-redundancy-disabled": "true",
                    "run.googleapis.com/startup-cpu-boost": "true",
                    "run.googleapis.com/network-interfaces": '[{"network":"llm","subnetwork":"llm","tags":["a"]}]',
                    "run.googleapis.com/vpc-access-egress": "all-traffic",
                }
            },
            "spec": {
                "containerConcurrency": 16,
                "timeoutSeconds": 600,
                "serviceAccountName": "own@acme-llm.iam.gserviceaccount.com",
                "nodeSelector": {"run.googleapis.com/accelerator": "nvidia-l4"},
                "containers": [
                    {
                        "image": IMAGE,
                        "args": ["--model=/mnt/models/gemma-4-12B-it-qat-w4a16-ct"],
                        "ports": [{"name": "http1", "containerPort": 8080}],
                        "env": [
                            {"name": "A", "value": "1"},
                            {"name": "T", "valueFrom": {"secretKeyRef": {"name": "t", "key": "latest"}}},
                        ],
                        "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
                        "startupProbe": {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 10},
                        "volumeMounts": [{"name": "m", "mountPath": "/mnt/models"}],
                    }
                ],
                "volumes": [
                    {
                        "name": "m",
                        "csi": {
                            "driver": "gcsfuse.run.googleapis.com",
                            "readOnly": True,
                            "volumeAttributes": {
                                "bucketName": "acme-weights",
                                "mountOptions": "uid=1,implicit-dirs",
                            },
                        },
                    }
                ],
            },
        },
        "traffic": [{"percent": 100, "latestRevision": True}],
    },
    "status": {"url": "https://chat.a.run.app"},
}
RUN: dict[str, Any] = {
    "name": "projects/acme-llm/locations/us-east4/services/chat",
    "labels": {"team": "chat"},
    "ingress": "INGRESS_TRAFFIC_INTERNAL_ONLY",
    "scaling": {"minInstanceCount": 1},
    "template": {
        "scaling": {"maxInstanceCount": 2},
        "gpuZonalRedundancyDisabled": True,
        "vpcAccess": {
            "egress": "ALL_TRAFFIC",
            "networkInterfaces": [{"network": "llm", "subnetwork": "llm", "tags": ["a"]}],
        },
        "maxInstanceRequestConcurrency": 16,
        "timeout": "600s",
        "serviceAccount": "own@acme-llm.iam.gserviceaccount.com",
        "nodeSelector": {"accelerator": "nvidia-l4"},
        "containers": [
            {
                **KNATIVE["spec"]["template"]["spec"]["containers"][0],
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "T", "valueSource": {"secretKeyRef": {"secret": "t", "version": "latest"}}},
                ],
                "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}, "startupCpuBoost": True},
            }
        ],
        "volumes": [
            {
                "name": "m",
                "gcs": {"bucket": "acme-weights", "readOnly": True, "mountOptions": ["uid=1", "implicit-dirs"]},
            }
        ],
    },
    "traffic": [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}],
}


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["json", "yaml"])
def test_what_gcloud_describes_is_the_service_of_the_api(write: Any) -> None:
    described, answered = read_text(write(KNATIVE), "FILE"), read_text(json.dumps(RUN), "FILE")
    assert described == answered
    assert described.remarks == []
    assert (described.min_instances, described.max_instances, described.cpu_boost) == (1, 2, True)


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        (("template", "maxInstanceRequestConcurrency"), 8, "concurrency"),
        (("ingress",), "INGRESS_TRAFFIC_ALL", "ingress"),
        (("template", "vpcAccess", "egress"), "PRIVATE_RANGES_ONLY", "egress"),
    ],
)
def test_another_value_is_another_service(path: tuple[str, ...], value: Any, name: str) -> None:
    document = json.loads(json.dumps(RUN))
    inside = document
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    one, other = read_text(json.dumps(RUN), "FILE"), read_text(json.dumps(document), "FILE")
    assert getattr(one, name) != getattr(other, name)


def test_what_no_setting_says_is_named_by_its_path() -> None:
    document = {**LIVE, "binaryAuthorization": {"useDefault": True}, "customAudiences": ["a"]}
    keys = {remark.key for remark in read_text(json.dumps(document), "FILE").remarks}
    assert {"binaryAuthorization.useDefault", "customAudiences[0]", "template.sessionAffinity"} <= keys
    assert not {key for key in keys if key.startswith(("uid", "etag", "uri", "generation"))}


def service(**keys: Any) -> FoundServer:
    return read_text(yaml.safe_dump({"services": {"v": {"image": "vllm/vllm-openai:v0.32.0", **keys}}}), "FILE")


@pytest.mark.parametrize("command", ["--model m --seed 1", ["--model", "m", "--seed", "1"], "--model m\n--seed 1\n"])
def test_a_command_is_read_as_a_list_and_as_text(command: Any) -> None:
    assert service(command=command).tokens == ("--model", "m", "--seed", "1")


@pytest.mark.parametrize("environment", [{"A": 1, "B": True, "C": None}, ["A=1", "B=true", "C"]])
def test_variables_are_read_as_a_map_and_as_a_list(environment: Any) -> None:
    assert service(environment=environment).variables == {"A": "1", "B": "true", "C": "${C}"}


@pytest.mark.parametrize(
    ("device", "count"), [({"count": 2}, 2), ({"device_ids": ["0", "3"]}, 2), ({"count": "all"}, None)]
)
def test_gpus_are_counted_where_a_service_counts_them(device: dict[str, Any], count: int | None) -> None:
    deploy = {"resources": {"reservations": {"devices": [{"driver": "nvidia", **device}]}}}
    assert service(deploy=deploy).gpus == count


def test_a_file_fills_in_its_own_defaults_and_reads_no_other_file() -> None:
    server = read_text(COMPOSE, "FILE")
    assert server.image == "vllm/vllm-openai:v0.33.0"
    assert server.variables["HUGGING_FACE_HUB_TOKEN"] == "${HF_TOKEN}"
    assert {"services.vllm.env_file", "services.web", "services.vllm.volumes"} == {each.key for each in server.remarks}


def test_only_the_first_of_several_servers_is_read() -> None:
    two = {"services": {name: {"image": "vllm/vllm-openai", "command": f"--model {name}"} for name in "ab"}}
    server = read_text(yaml.safe_dump(two, sort_keys=False), "FILE")
    assert server.tokens == ("--model", "a")
    assert [(each.key, each.reason) for each in server.remarks] == [("services.b", "a stack has one server.")]
