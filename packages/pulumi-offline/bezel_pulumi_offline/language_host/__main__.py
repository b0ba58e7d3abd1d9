"""Entry point of the language hosts: prints its port for the engine, serves `LanguageRuntime`, ends with the engine.

Owns the process: imports, signals, the watch over its parent. Leaves the calls to `runtime`, the processes that it
starts to `children`. Runs with `python -IS` for a short start-up: `site` is skipped, and of the SDK only the generated
protocol modules are imported (`import pulumi` would cost about 80 ms of every engine run).
"""

import os
import select
import signal
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel_pulumi_offline.language_host.runtime import Host

MESSAGE_LIMIT = 400 << 20  # the engine's own limit for one message
_HERE = Path(__file__).resolve().parent
_BASE = "bezel_base"


def _find_packages() -> None:
    """Put the folders on the path that `site` would: those of this package, the interpreter's packages and the base."""
    lib = Path(sys.executable).parent.parent / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = lib / "site-packages"
    # A checkout's packages are linked: the file holds the folder.
    linked = site / f"{_BASE}.pth"
    base = [linked.read_text(encoding="utf-8").strip()] if linked.is_file() else []
    folders = [folder for folder in sys.path if Path(folder) != _HERE]  # its modules are those of a package
    sys.path[:] = dict.fromkeys([*folders, str(_HERE.parents[1]), str(site), *base])


def _host_class() -> "type[Host]":
    """The host of the language that the script names; Python's without one."""
    if sys.argv[1:2] == ["nodejs"]:
        from bezel_pulumi_offline.language_host.node import NodeHost

        return NodeHost
    from bezel_pulumi_offline.language_host.runtime import Host

    return Host


def main() -> None:
    """Serve until the engine ends or signals; exit status 1 where the interpreter lacks what the host needs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback when stopped while still importing
    parent = os.getppid()
    _find_packages()
    from bezel_pulumi_offline.plugin.fast_import import lighten

    lighten()
    try:
        import grpc
        from pulumi.runtime.proto import language_pb2_grpc

        from bezel_base.loopback.grpc_guard import OwnCalls
        from bezel_pulumi_offline.language_host.children import Children

        host_class = _host_class()
    except ModuleNotFoundError as error:
        text = "so no Python program can run. Set BEZEL_PYTHON to the interpreter of the environment that has"
        sys.exit(f"language host: {sys.executable} has no {error.name}, {text} bezel-pulumi-offline.")

    children = Children()
    limits = [("grpc.max_receive_message_length", MESSAGE_LIMIT), ("grpc.max_send_message_length", MESSAGE_LIMIT)]
    guard = OwnCalls()
    server = grpc.server(ThreadPoolExecutor(32), interceptors=[guard], options=limits)
    host = host_class(engine=sys.argv[-1] if len(sys.argv) > 1 else "", children=children)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = guard.port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    # A signal may be delivered to a thread of gRPC; the pipe wakes the main thread even then.
    wakened, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)

    def leave(*_signal: object) -> None:
        children.end_all(grace_seconds=0 if _signal else 5)
        os._exit(2)

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()

    # Whichever way the engine ends, its end of our standard input closes; without a pipe our parent changes then.
    watched = [wakened, 0] if stat.S_ISFIFO(os.fstat(0).st_mode) else [wakened]
    while os.getppid() == parent:
        ready, _, _ = select.select(watched, [], [], 0.5)
        if 0 in ready and not os.read(0, 4096):
            break
    leave()


if __name__ == "__main__":
    main()
