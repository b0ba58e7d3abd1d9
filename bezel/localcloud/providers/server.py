"""A plugin's process: the gRPC server, the port on stdout, and an end in good order.

The engine ends a plugin by an interrupt; a killed engine ends none, so the parent is watched. A `Plugin` answers what
every provider is asked for; google_plugin.py and docker_plugin.py add what they are there for.
"""

import os
import signal
import sys
import threading
from concurrent import futures
from types import FrameType
from typing import NoReturn

import grpc
from google.protobuf import any_pb2, empty_pb2, message
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from bezel.localcloud.own_calls import OwnCalls

from .lean import sdk_version
from .wire import decode

Context = grpc.ServicerContext
LARGEST = 400 << 20  # bytes of one message; the engine's own limit
_CALLS = 32  # resources at work at the same time: the engine asks for 16 by default and looks up beside them


class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """What the engine asks of every provider before it gets to resources."""

    sdk = ""  # the package whose resources the provider serves

    def GetPluginInfo(self, request: empty_pb2.Empty, context: Context) -> plugin_pb2.PluginInfo:
        """Say which version of the published plugin this stands in for."""
        del request, context
        return plugin_pb2.PluginInfo(version=sdk_version(self.sdk))

    def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> empty_pb2.Empty:
        """Be attached to a running engine (PULUMI_DEBUG_PROVIDERS)."""
        del request, context
        return empty_pb2.Empty()

    def CheckConfig(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        """Take any configuration."""
        del context
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        """Say what of the configuration changed; where nothing did, the engine's own comparison says so."""
        del context
        old, new = decode(request.old_inputs), decode(request.news)
        changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        kind = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_UNKNOWN
        return provider_pb2.DiffResponse(changes=kind, diffs=changed)

    def Cancel(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:
        """End what is waiting."""
        del request, context
        self.stop()
        return empty_pb2.Empty()

    def stop(self) -> None:
        """End every wait of the provider."""


def refuse(context: Context, text: str, detail: message.Message | None = None) -> NoReturn:
    """End a call with an error for the user, and with what the engine has to keep where something was made."""
    if detail is not None:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=text, details=[packed])
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, text)
    raise AssertionError(text)  # not reached: abort raises


def serve(plugin: Plugin) -> NoReturn:
    """Serve until the engine interrupts or is gone. The port is the one line on stdout."""
    own = OwnCalls()
    server = grpc.server(
        futures.ThreadPoolExecutor(_CALLS),
        interceptors=[own],
        options=[("grpc.max_receive_message_length", LARGEST), ("grpc.max_send_message_length", LARGEST)],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, server)
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        ended.set()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    port = own.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    parent = os.getppid()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    while not ended.wait(0.5):
        if os.getppid() != parent:
            os._exit(1)  # the engine was killed: nobody will read an answer
    plugin.stop()
    server.stop(1).wait(2)
    os._exit(0)  # without waiting for the threads of calls that did not heed the stop
