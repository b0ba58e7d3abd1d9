"""The engine at the wire, as a component of the package sees it: notes what is declared.

Every resource is made at once, with its inputs as outputs and those that Google Cloud would add.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import engine_pb2_grpc, provider_pb2, resource_pb2, resource_pb2_grpc

from tests.support.components.fake_engine import DIGEST, OUTPUTS

URN = "urn:pulumi:dev::shop::"
_OUTPUTS: dict[str, dict[str, Any]] = {
    **OUTPUTS,
    "bezel:smoke:HealthCheck": {"verdict": {"ok": True}},
    "bezel:smoke:ShortBenchmark": {"figures": {"completed": 8}},
}


@dataclass
class Monitor(resource_pb2_grpc.ResourceMonitorServicer, engine_pb2_grpc.EngineServicer):
    """The engine's monitor of resources, and its log.

    Attributes:
        address: Where it listens.
        inputs: Inputs of each declared resource, by type and name.
        dependencies: URNs that each waits for.
    """

    address: str = ""
    inputs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    dependencies: dict[tuple[str, str], set[str]] = field(default_factory=dict)

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Nothing to note."""
        del request, context
        return empty_pb2.Empty()

    def GetDeploymentInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Every feature."""
        del request, context
        features = resource_pb2.ResourceMonitorFeature.values()
        return resource_pb2.DeploymentInfo(supportedFeatures=features)

    def RegisterResource(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Note a resource, and make it."""
        del context
        declared = request.type, request.name
        self.inputs[declared] = json_format.MessageToDict(request.object)
        self.dependencies[declared] = set(request.dependencies)
        answer = resource_pb2.RegisterResourceResponse(
            urn=f"{URN}{request.type}::{request.name}", id=f"{request.name}-id" if request.custom else ""
        )
        answer.object.CopyFrom(request.object)
        answer.object.update(_OUTPUTS.get(request.type, {}))
        return answer

    def RegisterResourceOutputs(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Nothing to note."""
        del request, context
        return empty_pb2.Empty()

    def RegisterErrorHook(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Nothing to note: nothing fails here."""
        del request, context
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any) -> Any:  # noqa: N802
        """A registry's answer: the digest of an image."""
        del request, context
        return json_format.ParseDict({"return": {"sha256Digest": DIGEST, "id": DIGEST}}, provider_pb2.InvokeResponse())


@contextmanager
def listen() -> Iterator[Monitor]:
    """A monitor that listens on the loopback."""
    server = grpc.server(ThreadPoolExecutor(4))
    monitor = Monitor()
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(monitor, server)
    engine_pb2_grpc.add_EngineServicer_to_server(monitor, server)
    monitor.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield monitor
    finally:
        server.stop(grace=None).wait()
