"""Process of a plugin: the gRPC server, the port on stdout, and an orderly shutdown.

The engine ends its plugins all at once and waits for the last one: it calls `Cancel`, closes the connection, interrupts
the process, and kills it after five seconds. A provider that takes longer to answer `Cancel` is reported as one with a
bug; engines up to 3.260 have five seconds for all of them, one after the other. So the shutdown takes no time: it does
not wait for calls whose response no one reads. A killed engine ends no plugin, but the standard input, to which the
engine never writes, is then closed.

`Plugin` serves the calls that every provider gets; google_plugin.py and docker_plugin.py add their own.
"""

import contextlib
import os
import select
import signal
import stat
import sys
from concurrent import futures
from typing import NoReturn

import grpc
from google.protobuf import any_pb2, empty_pb2, message
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from bezel_base.loopback.grpc_guard import OwnCalls
from bezel_pulumi_offline.lifecycle.values import Properties, decode, encode
from bezel_pulumi_offline.plugin.fast_import import sdk_version

Context = grpc.ServicerContext
LARGEST = 400 << 20  # bytes of one message; the engine's own limit
_LOGGED = 5.0  # seconds for the engine to take a message
_CALLS = 32  # concurrent calls: the engine works on 16 resources at a time by default, with look-ups beside them


class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """The calls of the engine to every provider that concern no resource."""

    sdk = ""  # the package whose resources the provider serves
    cancelled = False  # whether the engine has cancelled
    engine = ""  # the address of the engine's own server, the argument of a plugin's process

    def GetPluginInfo(self, request: empty_pb2.Empty, context: Context) -> plugin_pb2.PluginInfo:
        """Return the version of the published plugin that this one replaces."""
        del request, context
        return plugin_pb2.PluginInfo(version=sdk_version(self.sdk))

    def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> empty_pb2.Empty:
        """Attach to a running engine (PULUMI_DEBUG_PROVIDERS)."""
        del context
        self.engine = request.address
        return empty_pb2.Empty()

    def log(self, urn: str, message: str, severity: str = "ERROR") -> None:
        """Show an error or a warning in the row of a resource; without an engine, or with one that is gone, do nothing.

        Args:
            urn: The resource.
            message: The text.
            severity: ERROR or WARNING.
        """
        if not self.engine:
            return
        from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc  # late: only a failure needs them

        request = engine_pb2.LogRequest(severity=engine_pb2.LogSeverity.Value(severity), message=message, urn=urn)
        with grpc.insecure_channel(self.engine) as channel, contextlib.suppress(grpc.RpcError):
            engine_pb2_grpc.EngineStub(channel).Log(request, timeout=_LOGGED)

    def CheckConfig(self, request: provider_pb2.CheckRequest, context: Context) -> provider_pb2.CheckResponse:
        """Accept any configuration."""
        del context
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: provider_pb2.DiffRequest, context: Context) -> provider_pb2.DiffResponse:
        """Return the changed settings of the configuration; if there are none, leave the comparison to the engine."""
        del context
        old, new = decode(request.old_inputs), decode(request.news)
        changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        kind = provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_UNKNOWN
        return provider_pb2.DiffResponse(changes=kind, diffs=changed)

    def Cancel(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:
        """End every wait of the provider."""
        del request, context
        self.cancelled = True
        self.stop()
        return empty_pb2.Empty()

    def stop(self) -> None:
        """End every wait of the provider; overridden by a provider that has any."""


def refuse(context: Context, text: str, detail: message.Message | None = None) -> NoReturn:
    """End a call with an error for the user, and with the properties to store where a resource was created."""
    if detail is not None:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=text, details=[packed])
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, text)
    raise AssertionError(text)  # not reached: abort raises


def invoke_response(result: Properties) -> provider_pb2.InvokeResponse:
    """The response to a look-up."""
    response = provider_pb2.InvokeResponse()
    getattr(response, "return").CopyFrom(encode(result))  # a Python keyword
    return response


def serve(plugin: Plugin) -> NoReturn:
    """Serve until the engine interrupts or is gone. The port is the one line on stdout."""
    plugin.engine = sys.argv[1] if len(sys.argv) > 1 else ""
    guard = OwnCalls()
    server = grpc.server(
        futures.ThreadPoolExecutor(_CALLS),
        interceptors=[guard],
        options=[("grpc.max_receive_message_length", LARGEST), ("grpc.max_send_message_length", LARGEST)],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(plugin, server)
    end = _End()
    port = guard.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    if not end.wait():
        os._exit(1)  # the engine was killed: no one reads a response
    if not plugin.cancelled:
        # Interrupted by another process: the engine still reads the results of its calls.
        plugin.stop()
        server.stop(1).wait(2)
    os._exit(0)  # without waiting for the threads of calls that ignored the stop


class _End:
    """The events that end the process; uses no lock, which an interrupt could find taken."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._signals, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)

    def wait(self) -> bool:
        """Wait for the end; returns True for a signal, False where the engine is gone."""
        # A plugin that is started by hand has no pipe: then only the parent can be watched.
        piped = stat.S_ISFIFO(os.fstat(0).st_mode)
        watched = [self._signals, 0] if piped else [self._signals]
        while True:
            ready, _, _ = select.select(watched, [], [], None if piped else 0.5)
            if self._signals in ready:
                return True
            if (0 in ready and not os.read(0, 4096)) or os.getppid() != self._parent:
                return False
