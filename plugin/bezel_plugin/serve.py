"""Process of the package's provider: a gRPC server, its port on standard output, and a quick end.

The engine gives its address as the first argument, and ends its plugins by an interrupt. After a killed engine the
language host that started this process is gone, and so it ends.
"""

import asyncio
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

_LARGEST = 400 << 20  # bytes of one message; the engine's own limit
_CALLS = 32  # checks that wait at a time


def main() -> None:
    """Serve the engine of the first argument until it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback when stopped while still importing
    parent = os.getppid()  # before the engine has read the port, after which it may end
    from bezel_base.loopback.grpc_async_guard import guard_async_servers

    guard_async_servers()
    # Late, as everything made from here on is behind the guard.
    from bezel_components.base.caller_names import use_names
    from bezel_components.base.check_resource import declare_in_package
    from bezel_components.base.dynamic import set_engine_address
    from bezel_plugin.schema.file import schema_names

    engine = sys.argv[1] if len(sys.argv) > 1 else ""
    set_engine_address(engine)
    declare_in_package()
    use_names(schema_names())
    asyncio.run(_serve(engine, parent))


async def _serve(engine: str, parent: int) -> None:
    import grpc.aio
    from pulumi.runtime.proto import provider_pb2_grpc

    from bezel_plugin.servicer import Package

    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(_CALLS))
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, os._exit, 0)  # without waiting for calls whose response no one reads
    options = [("grpc.max_receive_message_length", _LARGEST), ("grpc.max_send_message_length", _LARGEST)]
    server = grpc.aio.server(options=options)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Package(engine), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    while os.getppid() == parent:  # noqa: ASYNC110 - nothing tells of a parent's end
        await asyncio.sleep(0.5)
    os._exit(1)
