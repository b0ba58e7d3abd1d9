"""Service `pulumirpc.ResourceProvider` of the package: components by the SDK's host of components, checks by `checks`.

The SDK's host takes unknown inputs of components; its framework for custom resources cannot return an unknown output,
so the calls on checks are answered here. They wait for a server for minutes, so each runs in a thread of its own.
"""

import asyncio
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, NoReturn

import grpc
import grpc.aio
import pulumi
from google.protobuf import empty_pb2
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import ProviderServicer
from pulumi.runtime import rpc
from pulumi.runtime.proto import plugin_pb2
from pulumi.runtime.proto import provider_pb2 as pb

from bezel_base.errors import UserError
from bezel_plugin.checks import CheckCalls
from bezel_plugin.construct import construct
from bezel_plugin.schema.file import read_schema, schema_names
from bezel_plugin.table import VERSION

_request: ContextVar[pb.ConstructRequest] = ContextVar("request")


class Components(Provider):
    """What the SDK's host calls for a component."""

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        """Make the component of the present request: the SDK's inputs are Outputs already, of unseen values."""
        del name, resource_type, inputs
        return construct(_request.get(), options or pulumi.ResourceOptions())


class Package(ProviderServicer):
    """The provider of the package.

    Args:
        engine: The engine's address.
    """

    def __init__(self, engine: str) -> None:
        super().__init__(Components(VERSION), [], engine)

    async def GetPluginInfo(self, request: Any, context: Any) -> Any:
        """The package's version."""
        del request, context
        return plugin_pb2.PluginInfo(version=VERSION)

    async def GetSchema(self, request: pb.GetSchemaRequest, context: Any) -> pb.GetSchemaResponse:
        """The package's schema."""
        del request, context
        return pb.GetSchemaResponse(schema=read_schema())

    async def CheckConfig(self, request: pb.CheckRequest, context: Any) -> pb.CheckResponse:
        """Accept any configuration: the package has none of its own."""
        del context
        return pb.CheckResponse(inputs=request.news)

    async def DiffConfig(self, request: pb.DiffRequest, context: Any) -> pb.DiffResponse:
        """Another version of the package replaces nothing."""
        del request, context
        return pb.DiffResponse(changes=pb.DiffResponse.DIFF_NONE)

    async def Configure(self, request: pb.ConfigureRequest, context: Any) -> pb.ConfigureResponse:
        """Say what the package takes: secrets too, as every host of components must."""
        del request, context
        return pb.ConfigureResponse(acceptSecrets=True, acceptResources=True, supportsPreview=True)

    async def Cancel(self, request: Any, context: Any) -> Any:
        """Nothing to end: the engine interrupts the process next."""
        del request, context
        return empty_pb2.Empty()

    async def Construct(self, request: pb.ConstructRequest, context: Any) -> pb.ConstructResponse:
        """Make a component."""
        _request.set(request)
        try:
            return await self._construct(request, context)
        except Exception as error:  # noqa: BLE001 - gRPC drops the text of an error that leaves the handler
            await _refuse(context, error)

    async def Check(self, request: pb.CheckRequest, context: Any) -> pb.CheckResponse:
        """Complete the inputs of a check, or say what is wrong with them."""
        olds, news = _decode(request.olds), _decode(request.news)
        inputs, failures = await _in_thread(context, lambda: CheckCalls(request.urn).check(olds, news))
        listed = [pb.CheckFailure(property=key, reason=reason) for key, reason in failures]
        return pb.CheckResponse(inputs=await _encode(inputs, request.news), failures=listed)

    async def Diff(self, request: pb.DiffRequest, context: Any) -> pb.DiffResponse:
        """Whether a check runs again."""
        olds, news = _decode(request.olds), _decode(request.news)
        changes, replaces = await _in_thread(context, lambda: CheckCalls(request.urn).differs(request.id, olds, news))
        kind = pb.DiffResponse.DIFF_SOME if changes else pb.DiffResponse.DIFF_NONE
        return pb.DiffResponse(changes=kind, replaces=replaces)

    async def Create(self, request: pb.CreateRequest, context: Any) -> pb.CreateResponse:
        """Run a check."""
        inputs = _decode(request.properties)
        id_, state = await _in_thread(context, lambda: CheckCalls(request.urn).create(inputs, preview=request.preview))
        return pb.CreateResponse(id=id_, properties=await _encode(state, request.properties))

    async def Update(self, request: pb.UpdateRequest, context: Any) -> pb.UpdateResponse:
        """Run a check again."""
        olds, news = _decode(request.olds), _decode(request.news)
        state = await _in_thread(
            context, lambda: CheckCalls(request.urn).update(request.id, olds, news, preview=request.preview)
        )
        return pb.UpdateResponse(properties=await _encode(state, request.news))

    async def Read(self, request: pb.ReadRequest, context: Any) -> pb.ReadResponse:
        """Read a check's state at a refresh."""
        properties = _decode(request.properties)
        id_, state = await _in_thread(context, lambda: CheckCalls(request.urn).read(request.id, properties))
        encoded = await _encode(state, request.properties)
        return pb.ReadResponse(id=id_, properties=encoded, inputs=request.inputs)

    async def Delete(self, request: pb.DeleteRequest, context: Any) -> Any:
        """End a check."""
        properties = _decode(request.properties)
        await _in_thread(context, lambda: CheckCalls(request.urn).delete(request.id, properties))
        return empty_pb2.Empty()


def _decode(properties: Any) -> dict[str, Any]:
    """The properties as plain values, secrets opened, unknown ones as `pulumi.UNKNOWN`."""
    decoded = rpc.deserialize_properties(properties, keep_unknowns=True)
    return {key: rpc.unwrap_rpc_secret(value) for key, value in decoded.items()}


async def _encode(properties: dict[str, Any], given: Any) -> Any:
    """The properties for the engine; those that were secrets in the request are secrets again."""
    encoded = await rpc.serialize_properties(properties, {})
    received = rpc.deserialize_properties(given, keep_unknowns=True)
    for key in [key for key, value in received.items() if rpc.is_rpc_secret(value) and key in encoded]:
        sealed = {"value": encoded[key], rpc._special_sig_key: rpc._special_secret_sig}  # noqa: SLF001
        encoded.update({key: sealed})
    return encoded


async def _in_thread(context: Any, call: Callable[[], Any]) -> Any:
    try:
        return await asyncio.to_thread(call)
    except Exception as error:  # noqa: BLE001 - as in Construct
        await _refuse(context, error)


async def _refuse(context: Any, error: Exception) -> NoReturn:
    """End a call with an error's text; that of a bug has its traceback in the engine's log, at standard error."""
    if isinstance(error, UserError):
        error = UserError(*map(schema_names().in_problem, error.problems), title=error.title)
    if isinstance(error, UserError | pulumi.RunError):
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    traceback.print_exception(error)
    await context.abort(grpc.StatusCode.UNKNOWN, f"{type(error).__name__}: {error}")
    raise AssertionError  # not reached: abort raises
