"""CPU of localcloud for a small request, and the time of a large one, beside another checkout and another server.

    .venv/bin/python -m tools.measure.request_cost [--beside ../before] [--requests 1000] [--rounds 5]

Requests of each kind go to the servers in turn, over one connection each, so that all of them have the same load of the
machine beside them. The figure of small requests is the CPU of the server's process, which other work changes little.
The other server is fake-gcs-server, which keeps objects as files too, and checks neither identity nor permission. It
takes part where it is found:

    go install github.com/fsouza/fake-gcs-server@v1.56.1
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bezel_localcloud import control
from bezel_localcloud.core.paths import PROJECT, Endpoint
from tools.measure.localcloud import cpu_seconds, listens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Found = TypeVar("_Found")
ROOT = Path(__file__).resolve().parents[2]
OTHER = "fake-gcs-server"
_BUCKET = "cost-shelf"
_OBJECTS = f"/storage/v1/b/{_BUCKET}/o"
_UPLOAD = f"/upload{_OBJECTS}?uploadType=media&name="
_LARGE = 64 << 20  # bytes
_START_SECONDS, _END_SECONDS, _ANSWER_SECONDS = 60.0, 20.0, 60.0
_WARM = 20  # requests of each kind before those that count


@dataclass
class Server:
    """A server that runs.

    Attributes:
        name: What it is called in the table.
        pid: Its process.
        connection: The connection that all requests take.
        token: Access token of its deployer, "" where it asks for none.
    """

    name: str
    pid: int
    connection: http.client.HTTPConnection
    token: str = ""
    _names: Iterator[int] = field(default_factory=count)

    def send(self, verb: str, path: str, content: bytes | None = None, kind: str = "application/octet-stream") -> bytes:
        """Send a request and return the body of its response.

        Raises:
            SystemExit: The response is a refusal.
        """
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        self.connection.request(verb, path, content, headers | ({"Content-Type": kind} if content else {}))
        response = self.connection.getresponse()
        body = response.read()
        if response.status >= http.HTTPStatus.MULTIPLE_CHOICES:
            sys.exit(f"{self.name}: {verb} {path}: {response.status} {body[:300]!r}")
        return body

    def prepare(self) -> None:
        """Make the bucket and the objects that are read."""
        self.send(
            "POST", f"/storage/v1/b?project={PROJECT}", json.dumps({"name": _BUCKET}).encode(), "application/json"
        )
        self.send("POST", f"{_UPLOAD}small", b"x" * 1024)

    def upload(self) -> None:
        """Upload 1 KiB under a new name."""
        self.send("POST", f"{_UPLOAD}new-{next(self._names)}", b"y" * 1024)


SMALL: dict[str, Callable[[Server], object]] = {
    "metadata": lambda server: server.send("GET", f"{_OBJECTS}/small"),
    "1 KiB": lambda server: server.send("GET", f"{_OBJECTS}/small?alt=media"),
    "upload of 1 KiB": lambda server: server.upload(),
}
LARGE: dict[str, Callable[[Server], object]] = {
    "64 MiB up": lambda server: server.send("POST", f"{_UPLOAD}large", bytes(range(256)) * (_LARGE >> 8)),
    "64 MiB down": lambda server: server.send("GET", f"{_OBJECTS}/large?alt=media"),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, action="append", default=[], help="another checkout; repeatable")
    parser.add_argument("--requests", type=int, default=1000, help="requests of a kind in a round (default: 1000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds over all servers (default: 5)")
    chosen = parser.parse_args()
    print(f"{os.cpu_count()} cores; load of the last minute {os.getloadavg()[0]:.2f}")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bezel-measure-")))
        checkouts = {str(path): path.resolve() for path in chosen.beside} | {"this checkout": ROOT}
        servers = [
            stack.enter_context(localcloud(name, root, folder / str(number)))
            for number, (name, root) in enumerate(checkouts.items())
        ]
        if program := shutil.which(OTHER) or shutil.which(OTHER, path=str(Path.home() / "go" / "bin")):
            servers.append(stack.enter_context(other_server(program, folder / OTHER)))
        for server in servers:
            server.prepare()
        for kind, request in SMALL.items():
            show(f"{kind}, ms of CPU", in_turn(servers, chosen.rounds, partial(cpu_of, request, chosen.requests)))
        for kind, request in LARGE.items():
            show(f"{kind}, s", in_turn(servers, chosen.rounds, partial(seconds_of, request)))
    print(f"load of the last minute {os.getloadavg()[0]:.2f}")


def in_turn(servers: list[Server], rounds: int, measure: Callable[[Server], float]) -> dict[str, list[float]]:
    """The figures of each server by its name, measured in turn."""
    figures: dict[str, list[float]] = {server.name: [] for server in servers}
    for _ in range(rounds):
        for server in servers:
            figures[server.name].append(measure(server))
    return figures


def cpu_of(request: Callable[[Server], object], number: int, server: Server) -> float:
    """Milliseconds of the server's CPU for one request, of some that are sent one after the other."""
    for _ in range(_WARM):
        request(server)
    before = cpu_seconds(server.pid)
    for _ in range(number):
        request(server)
    return (cpu_seconds(server.pid) - before) / number * 1000


def seconds_of(request: Callable[[Server], object], server: Server) -> float:
    """Seconds of one request."""
    begin = time.monotonic()
    request(server)
    return time.monotonic() - begin


def show(title: str, figures: dict[str, list[float]]) -> None:
    """Print a line for each server: the median, and the least and the most."""
    print(title)
    for name, values in figures.items():
        print(f"  {name}: {statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})")


@contextlib.contextmanager
def localcloud(name: str, root: Path, folder: Path) -> Iterator[Server]:
    """A localcloud of a checkout's sources, in this environment; it ends with the block."""
    sources = os.pathsep.join(map(str, sorted((root / "packages").iterdir())))
    command = [sys.executable, "-m", "bezel_localcloud", str(folder), "--parent", str(os.getpid())]
    with _running(command, os.environ | {"PYTHONPATH": sources}) as process:
        endpoint = _wait_for(process, lambda: Endpoint.read(folder))
        connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=_ANSWER_SECONDS)
        yield Server(name, process.pid, connection, control.access_token(endpoint))


@contextlib.contextmanager
def other_server(program: str, folder: Path) -> Iterator[Server]:
    """The other server, with its objects in a folder; it ends with the block."""
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    command += ["-backend", "filesystem", "-filesystem-root", str(folder), "-log-level", "error"]
    with _running(command, dict(os.environ)) as process:
        _wait_for(process, lambda: listens(port))
        yield Server(OTHER, process.pid, http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS))


@contextlib.contextmanager
def _running(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], look: Callable[[], _Found | None]) -> _Found:
    """What is found once the server has started.

    Raises:
        SystemExit: It ended, or did not start in time.
    """
    deadline = time.monotonic() + _START_SECONDS
    while not (answer := look()):
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"{process.args!r} did not start within {_START_SECONDS:g} s")
        time.sleep(0.05)
    return answer


if __name__ == "__main__":
    main()
