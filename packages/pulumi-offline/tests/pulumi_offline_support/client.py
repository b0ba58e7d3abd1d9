"""A provider process as the engine has one: started, asked over gRPC, ended."""

import os
import subprocess
import sys
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc, status_pb2

import bezel_pulumi_offline
from bezel_pulumi_offline.lifecycle.values import decode, encode
from bezel_pulumi_offline.plugin.server import Plugin

PLUGINS = Path(bezel_pulumi_offline.__file__).parent / "plugins"
SEED = b"0123456789abcdef"


class FailedError(Exception):
    """An error of the provider: its text, and what it wants kept."""

    def __init__(self, error: grpc.RpcError) -> None:
        self.text = str(error.details())  # type: ignore[attr-defined]
        self.kept: pb.ErrorResourceInitFailed | None = None
        for key, value in error.trailing_metadata() or ():  # type: ignore[attr-defined]
            if key == "grpc-status-details-bin":
                detail = pb.ErrorResourceInitFailed()
                status_pb2.Status.FromString(value).details[0].Unpack(detail)
                self.kept = detail
        super().__init__(self.text)


class Provider:
    """A provider at the other end of a gRPC channel."""

    def __init__(self, port: int, config: dict[str, Any] | None = None) -> None:
        self.port = port
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.stub = provider_pb2_grpc.ResourceProviderStub(self.channel)
        self.configured = self.call("Configure", pb.ConfigureRequest(args=encode(config or {})))

    def close(self) -> None:
        self.channel.close()

    def call(self, method: str, request: Any, timeout: float = 30) -> Any:
        try:
            return getattr(self.stub, method)(request, timeout=timeout)
        except grpc.RpcError as error:
            raise FailedError(error) from None

    def check(self, kind: str, news: dict[str, Any], olds: dict[str, Any] | None = None, **more: Any) -> Any:
        request = pb.CheckRequest(
            urn=urn(kind), news=encode(news), olds=encode(olds or {}), randomSeed=SEED, name="thing", **more
        )
        return self.call("Check", request)

    def inputs(self, kind: str, news: dict[str, Any]) -> dict[str, Any]:
        checked = self.check(kind, news)
        assert not checked.failures, checked.failures
        return decode(checked.inputs)

    def create(
        self, kind: str, news: dict[str, Any], *, preview: bool = False, timeout: float = 0
    ) -> tuple[str, dict[str, Any]]:
        request = pb.CreateRequest(
            urn=urn(kind), properties=encode(self.inputs(kind, news)), preview=preview, timeout=timeout
        )
        made = self.call("Create", request)
        return made.id, decode(made.properties)

    def diff(self, kind: str, resource_id: str, olds: dict[str, Any], news: dict[str, Any], **more: Any) -> Any:
        news = self.inputs(kind, news)
        return self.call(
            "Diff", pb.DiffRequest(id=resource_id, urn=urn(kind), olds=encode(olds), news=encode(news), **more)
        )

    def update(
        self,
        kind: str,
        resource_id: str,
        olds: dict[str, Any],
        news: dict[str, Any],
        *,
        preview: bool = False,
        timeout: float = 0,
    ) -> dict[str, Any]:
        request = pb.UpdateRequest(
            id=resource_id,
            urn=urn(kind),
            olds=encode(olds),
            news=encode(self.inputs(kind, news)),
            preview=preview,
            timeout=timeout,
        )
        return decode(self.call("Update", request).properties)

    def read(
        self, kind: str, resource_id: str, olds: dict[str, Any] | None = None, inputs: dict[str, Any] | None = None
    ) -> Any:
        request = pb.ReadRequest(
            id=resource_id, urn=urn(kind), properties=encode(olds or {}), inputs=encode(inputs or {})
        )
        return self.call("Read", request)

    def delete(self, kind: str, resource_id: str, olds: dict[str, Any]) -> None:
        self.call("Delete", pb.DeleteRequest(id=resource_id, urn=urn(kind), properties=encode(olds)))

    def invoke(self, token: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = self.call("Invoke", pb.InvokeRequest(tok=token, args=encode(arguments)))
        return decode(getattr(answer, "return"))

    def cancel(self) -> None:
        self.call("Cancel", empty_pb2.Empty())


class ServedProvider(Provider):
    """A provider served by this process: what a stand-in does, without the time that a process takes."""

    def __init__(self, plugin: Plugin, config: dict[str, Any] | None = None) -> None:
        self.server = grpc.server(futures.ThreadPoolExecutor(16))
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, self.server)
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        super().__init__(port, config)

    def close(self) -> None:
        super().close()
        self.server.stop(0).wait(5)


class StartedProvider(Provider):
    """A provider as the engine has it: a process of its own, by the executable on PATH."""

    def __init__(self, name: str, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [PLUGINS / f"pulumi-resource-{name}", "127.0.0.1:1"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], "BEZEL_PYTHON": sys.executable, **environment},
            cwd=PLUGINS.parents[1],
        )
        assert self.process.stdout is not None
        super().__init__(int(self.process.stdout.readline()))

    def close(self) -> None:
        super().close()
        self.process.kill()
        self.process.communicate(timeout=60)


def urn(kind: str) -> str:
    return f"urn:pulumi:dev::bezel::{kind}::thing"
