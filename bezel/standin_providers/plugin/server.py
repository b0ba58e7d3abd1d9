"""A plugin's process: the gRPC server, the port on stdout, and an end in good order.

The engine ends its plugins one after the other, in five seconds for all of them: it says so (`Cancel`), closes the
connection, interrupts the process, and waits until it is gone. A plugin whose turn comes later hears no `Cancel`, and
the engine then calls it a bug of the provider. So the end here takes no time: nothing is waited for that nobody reads.
A killed engine ends no plugin: its end of the standard input, which it never writes to, closes with it.

A `Plugin` answers what every provider is asked for; google_plugin.py and docker_plugin.py add what they are there for.
"""

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

from bezel.loopback.grpc_guard import OwnCalls
from bezel.standin_providers.lifecycle.values import decode
from bezel.standin_providers.plugin.fast_import import sdk_version

Context = grpc.ServicerContext
LARGEST = 400 << 20  # bytes of one message; the engine's own limit
_CALLS = 32  # resources at work at the same time: the engine asks for 16 by default and looks up beside them


class Plugin(provider_pb2_grpc.ResourceProviderServicer):
    """What the engine asks of every provider before it gets to resources."""

    sdk = ""  # the package whose resources the provider serves
    called_off = False  # the engine has told the provider to end

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
        self.called_off = True
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
    end = _End()
    port = own.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    if not end.asked_for():
        os._exit(1)  # the engine was killed: nobody will read an answer
    if not plugin.called_off:
        # Somebody else's interrupt: the engine reads what becomes of its calls.
        plugin.stop()
        server.stop(1).wait(2)
    os._exit(0)  # without waiting for the threads of calls that did not heed the stop


class _End:
    """What ends the process, without a lock that an interrupt could find taken."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._signals, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)

    def asked_for(self) -> bool:
        """Wait for the end; whether somebody asked for it, and the engine is not simply gone."""
        # Started by hand there is no pipe: then only the parent can be watched.
        piped = stat.S_ISFIFO(os.fstat(0).st_mode)
        watched = [self._signals, 0] if piped else [self._signals]
        while True:
            ready, _, _ = select.select(watched, [], [], None if piped else 0.5)
            if self._signals in ready:
                return True
            if (0 in ready and not os.read(0, 4096)) or os.getppid() != self._parent:
                return False
