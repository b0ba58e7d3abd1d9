"""Starts a localcloud that is forked from a process that has loaded it, as what it starts in place of containers is.

For tests that need a cloud and do not look at its start: loading it takes a third of a second of CPU time. What is run
is the daemon's own command; `bezel_localcloud.control` finds and stops it as any other.
"""

import functools
import os
import socket
import sys
import time
from pathlib import Path

from bezel_localcloud.core.paths import Endpoint, Paths
from localcloud_support.client import FAKE_DAEMON
from localcloud_support.made_keys import write_keys
from tests.support.e2e import warm_python
from tests.support.e2e.warm_server import LENGTH, Order, write_order
from tests.support.ended import is_readable

SECONDS = 60.0
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR")
_STARTED: list[socket.socket] = []  # a daemon is killed with the end of the connection, so with this process


def start(directory: Path, *options: str) -> Endpoint:
    """Start `python -m bezel_localcloud DIRECTORY OPTIONS`, which serves the directory; none does yet.

    Raises:
        TimeoutError: It did not serve in time.
        RuntimeError: It ended.
    """
    return _fork(directory, _launcher(), ["-m", "bezel_localcloud", str(directory.resolve()), *options])


def start_fake(directory: Path, speed: float = 10_000, idle: float = 900) -> Endpoint:
    """As `start`, with the tiny fake in place of each container: a forked `start_daemon` of the package's tests."""
    return _fork(directory, Path(sys.executable), [str(FAKE_DAEMON), str(directory.resolve()), str(speed), str(idle)])


def _fork(directory: Path, executable: Path, arguments: list[str]) -> Endpoint:
    layout = Paths(directory.resolve())
    layout.create()
    write_keys(layout.root)
    variables = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    order = write_order(Order(str(executable), "", arguments, str(layout.root), variables))
    server = socket.socket(socket.AF_UNIX)
    _STARTED.append(server)
    server.connect(str(warm_python.serve("localcloud", warm_python.shared_place())))
    with Path(os.devnull).open("rb") as nothing, layout.daemon_log.open("ab") as log:
        streams = [stream.fileno() for stream in (nothing, log, log)]
        socket.send_fds(server, [len(order).to_bytes(LENGTH, "big")], streams)
    server.sendall(order)
    process = int.from_bytes(server.recv(LENGTH, socket.MSG_WAITALL), "big")
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        endpoint = Endpoint.read(layout.root)
        if endpoint and endpoint.pid == process:
            return endpoint
        if is_readable(server, 0.02):
            raise RuntimeError(f"localcloud in {layout.root} ended:\n{layout.daemon_log.read_text()}")
    raise TimeoutError(f"localcloud in {layout.root} did not serve in {SECONDS:g} s:\n{layout.daemon_log.read_text()}")


@functools.cache
def _launcher() -> Path:
    """The interpreter of an environment whose simulated servers are forked."""
    folder = warm_python.shared_place() / f"environment-{os.getpid()}"
    if not folder.exists():
        warm_python.serve("localcloud", folder.parent)  # makes the place
        warm_python.environment(folder / ".venv")
    return warm_python.interpreter(folder)
