"""Components of the package as the engine has them made: a request to the process, and what it declares for it."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc

from bezel_components.base.check_resource import camel_case
from bezel_plugin.table import COMPONENTS
from tests.support.components.fake_cloud_run import running
from tests.support.plugin.monitor import URN, Monitor, listen
from tests.support.plugin.program import PLUGIN

pytestmark = pytest.mark.slow
SECONDS = 60
PLACE = {"project": "acme-llm", "location": "us-east4"}
ACCOUNT = "chat@acme-llm.iam.gserviceaccount.com"
IMAGE = f"us-east4-docker.pkg.dev/acme-llm/hub/vllm@sha256:{'0' * 64}"
PROBE = {"path": "/health", "periodSeconds": 30, "timeoutSeconds": 5, "failureThreshold": 50}
SERVICE = "gcp:cloudrunv2/service:Service"
EARLIER = f"{URN}gcp:storage/bucket:Bucket::theirs"
# Type -> its inputs, a child that it declares, and (output, value) of its own.
REQUESTS: dict[str, tuple[dict[str, Any], tuple[str, str], tuple[str, Any]]] = {
    "bezel:address:GlobalAddress": (
        {"project": "acme-llm", "domain": "llm.acme.example", "services": {"us-east4": "chat"}, "zone": "acme"},
        ("gcp:dns/recordSet:RecordSet", "it-record"),
        ("url", "https://llm.acme.example"),
    ),
    "bezel:cloudrun:CloudRunGpuService": (
        {**PLACE, "service": "chat", "image": IMAGE, "accelerator": "nvidia-l4", "serviceAccount": ACCOUNT,
         "maxInstances": 1, "requestConcurrency": 16,
         "container": {"arguments": ["/mnt/gemma"], "cpu": 4, "memoryGib": 16, "startupProbe": PROBE}},
        (SERVICE, "it-service"),
        ("url", "https://chat.example"),
    ),
    "bezel:door:KeyDoor": (
        {**PLACE, "service": "chat-door", "accountId": "chat-door", "image": IMAGE, "secretId": "chat-door-program",
         "bucket": "acme-llm-chat-door", "upstream": "https://chat.example", "servers": {"us-east4": "chat"}},
        (SERVICE, "it-service"),
        ("resourceName", "projects/acme-llm/locations/us-east4/services/chat-door"),
    ),
    "bezel:gateway:IdentityGateway": (
        {**PLACE, "service": "gate", "accountId": "chat-gateway", "image": IMAGE, "nodes": ["10.64.0.5"],
         "network": "nodes", "subnetwork": "nodes-us-east4"},
        (SERVICE, "it-service"),
        ("resourceName", "projects/acme-llm/locations/us-east4/services/gate"),
    ),
    "bezel:identity:RuntimeIdentity": (
        {"project": "acme-llm", "accountId": "chat-runtime"},
        ("gcp:serviceaccount/account:Account", "it-account"),
        ("email", "chat-runtime@acme-llm.iam.gserviceaccount.com"),
    ),
    "bezel:project:EnabledApis": (
        {"project": "acme-llm", "services": ["run.googleapis.com"]},
        ("gcp:projects/service:Service", "it-run"),
        ("services", ["run.googleapis.com"]),
    ),
    "bezel:registry:ContainerImage": (
        {**PLACE, "repositoryId": "hub", "image": "vllm/vllm-openai", "tag": "v0.32.0"},
        ("gcp:artifactregistry/repository:Repository", "it-repository"),
        ("digest", "sha256:" + "0123456789abcdef" * 4),
    ),
    "bezel:services:VllmService": (
        {"project": "acme-llm", "model": "gemma-4-e2b-it", "accelerator": "nvidia-l4", "region": "us-east4",
         "rollout": "gated", "scaling": {"maxInstances": 1}},
        ("bezel:smoke:HealthCheck", "it-health"),
        ("model", "gemma-4-e2b-it"),
    ),
    "bezel:storage:WeightsBucket": (
        {**PLACE, "bucket": "acme-models", "create": True},
        ("gcp:storage/bucket:Bucket", "it-bucket"),
        ("bucket", "acme-models"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def monitor() -> Iterator[Monitor]:
    with listen() as made:
        yield made


@pytest.fixture(scope="module")
def plugin(monitor: Monitor) -> Iterator[Any]:
    with (
        pytest.MonkeyPatch.context() as patch,
        running(patch) as cloud_run,
        subprocess.Popen([sys.executable, PLUGIN, monitor.address], stdout=subprocess.PIPE, text=True) as process,
    ):
        cloud_run.quota = 4
        assert process.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}") as channel:
            yield provider_pb2_grpc.ResourceProviderStub(channel)
        process.terminate()


def test_every_component_is_made_over_the_wire() -> None:
    assert REQUESTS.keys() == COMPONENTS.keys()


@pytest.mark.parametrize("type_", REQUESTS)
def test_a_component_is_made_with_its_children(plugin: Any, monitor: Monitor, type_: str) -> None:
    inputs, child, (output, value) = REQUESTS[type_]
    request = pb.ConstructRequest(
        project="shop", stack="dev", type=type_, name="it", monitorEndpoint=monitor.address, parallel=4
    )
    request.inputs.update(inputs)
    request.inputDependencies["project"].urns.append(EARLIER)
    made = plugin.Construct(request, timeout=SECONDS)
    assert made.urn == f"{URN}{type_}::it"
    assert (type_, "it") in monitor.inputs
    assert EARLIER in monitor.dependencies[child], monitor.inputs.keys()
    state = json_format.MessageToDict(made.state)
    assert state.keys() == {camel_case(name) for name in COMPONENTS[type_].outputs}
    assert state[output] == value
