"""The process that the engine starts for dynamic resources, and an engine to listen to what it says."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider
from pulumi.runtime import rpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2, provider_pb2_grpc

ROOT = Path(__file__).parents[3]
UNKNOWN = rpc.UNKNOWN


class Engine(engine_pb2_grpc.EngineServicer):
    def __init__(self) -> None:
        self.logged: list[engine_pb2.LogRequest] = []
        self.kill: Callable[[], object] = lambda: None

    def Log(self, request: engine_pb2.LogRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: ARG002, N802
        self.logged.append(request)
        return empty_pb2.Empty()


@dataclass
class Plugin:
    stub: provider_pb2_grpc.ResourceProviderStub
    engine: Engine
    process: subprocess.Popen[str]
    kill_engine: Callable[[], object]

    def check(self, provider: ResourceProvider, news: dict[str, Any]) -> provider_pb2.CheckResponse:
        return self.stub.Check(provider_pb2.CheckRequest(news=bag(provider, news)), timeout=60)

    def create(self, provider: ResourceProvider, props: dict[str, Any]) -> dict[str, Any]:
        answer = self.stub.Create(provider_pb2.CreateRequest(properties=bag(provider, props)), timeout=60)
        return plain(answer.properties) | {"id": answer.id}

    def diff(self, provider: ResourceProvider, olds: dict[str, Any], news: dict[str, Any]) -> str:
        request = provider_pb2.DiffRequest(id="x", olds=bag(provider, olds), news=bag(provider, news))
        return provider_pb2.DiffResponse.DiffChanges.Name(self.stub.Diff(request, timeout=60).changes)

    def update(self, provider: ResourceProvider, olds: dict[str, Any], news: dict[str, Any]) -> dict[str, Any]:
        request = provider_pb2.UpdateRequest(id="x", olds=bag(provider, olds), news=bag(provider, news))
        return plain(self.stub.Update(request, timeout=60).properties)

    def delete(self, provider: ResourceProvider, props: dict[str, Any]) -> None:
        self.stub.Delete(provider_pb2.DeleteRequest(id="x", properties=bag(provider, props)), timeout=60)


def bag(provider: ResourceProvider, props: dict[str, Any]) -> struct_pb2.Struct:
    """Properties as the engine sends them: no None, and the provider pickled beside them."""
    values = {key: value for key, value in props.items() if value is not None}
    values = {key: value for key, value in values.items() if key not in {"id", "__provider"}}
    return asyncio.run(rpc.serialize_properties(values | {"__provider": serialize_provider(provider)}, {}))


def plain(properties: struct_pb2.Struct) -> dict[str, Any]:
    return dict(rpc.deserialize_properties(properties))


@contextmanager
def engine_listening() -> Iterator[tuple[Engine, str]]:
    """An engine that takes messages, and its address."""
    engine = Engine()
    listener = grpc.server(futures.ThreadPoolExecutor(2))
    engine_pb2_grpc.add_EngineServicer_to_server(engine, listener)
    port = listener.add_insecure_port("127.0.0.1:0")
    listener.start()
    engine.kill = lambda: listener.stop(0).wait()
    try:
        yield engine, f"127.0.0.1:{port}"
    finally:
        listener.stop(0)


@contextmanager
def plugin_running(environment: dict[str, str], directory: Path = ROOT) -> Iterator[Plugin]:
    """Starts the plugin as the engine does: in the program's directory, with the engine's address."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("GOOGLE_", "BEZEL_"))}
    with engine_listening() as (engine, address):
        process = subprocess.Popen(
            [ROOT / "components" / "bezel_components" / "dynamic_plugin" / "pulumi-resource-pulumi-python", address],
            cwd=directory,
            env=inherited | {"PULUMI_RUNTIME_VIRTUALENV": sys.prefix} | environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                yield Plugin(provider_pb2_grpc.ResourceProviderStub(channel), engine, process, engine.kill)
        finally:
            process.kill()
            process.wait(60)
