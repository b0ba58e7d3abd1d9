"""The very proxy with the very command of the gateway's container, on this machine, before nodes that do as told."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from bezel_base.loopback.listeners import bind, free_port
from bezel_components.config.gateway import gateway_configuration
from bezel_components.config.gateway_fallback import IDENTITY, identity_program
from bezel_components.identity_gateway import CONFIGURATION, SCRIPT, SCRIPT_WITH_FALLBACK

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

SECONDS = 60.0
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"


def missing_proxy() -> str:
    """Why there is no proxy on this machine, "" where there is one."""
    program = shutil.which("haproxy", path=PATH)
    if program is None:
        return "no haproxy: run `make setup-dev`"
    run = subprocess.run([program, "-v"], capture_output=True, text=True, timeout=60, check=False)
    return run.stderr if run.returncode else ""


@dataclass
class Request:
    """What a node got."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Node:
    """A listener on a loopback address of its own; `/v1/hold` and `/v1/stream` wait for `go`, `/v1/talk` never ends.

    `/v1/pieces` takes most of a second, and `/v1/page/401` answers as Google's front end does.

    Attributes:
        well: Whether its health check passes.
        seen: What it was asked, checks left out.
        waiting: Requests that wait for `go` right now.
        left: Answers to `/v1/talk` that nobody took any more.
    """

    address: str
    port: int
    well: bool = True
    seen: list[Request] = field(default_factory=list)
    go: threading.Event = field(default_factory=threading.Event)
    waiting: int = 0
    left: int = 0
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self.listen()

    def listen(self) -> None:
        self._listener = socket.create_server((self.address, self.port), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Refuse connections from now on."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def die(self) -> None:
        """End as a server does: refuse connections, and break off all responses."""
        self.close()
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(listener.accept()[0],), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)
        try:
            self._respond(connection)
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _respond(self, accepted: socket.socket) -> None:
        with suppress(OSError):
            self._read_and_answer(self.tls.wrap_socket(accepted, server_side=True) if self.tls else accepted)

    def _read_and_answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            line = stream.readline().decode("latin-1").split()
            if len(line) != 3:
                return
            headers: dict[str, str] = {}
            while text := stream.readline().decode("latin-1").strip():
                name, _, value = text.partition(":")
                headers[name.lower()] = value.strip()
            body = stream.read(int(headers.get("content-length", 0)))
            request = Request(line[0], line[1], headers, body)
            if headers.get("host") == "node":  # a check
                connection.sendall(f"HTTP/1.1 {200 if self.well else 500} X\r\nContent-Length: 0\r\n\r\n".encode())
                return
            with self._lock:
                self.seen.append(request)
            self._answer(connection, request)

    def _answer(self, connection: socket.socket, request: Request) -> None:
        path = request.target.partition("?")[0]
        if path == "/v1/break":
            return
        if path == "/v1/stream":
            self._stream(connection)
            return
        if path == "/v1/pieces":
            self._pieces(connection)
            return
        if path.startswith("/v1/page/"):
            status = path.rpartition("/")[2]
            head = f"HTTP/1.1 {status} X\r\nContent-Type: text/html; charset=UTF-8\r\nContent-Length: 6\r\n\r\n"
            connection.sendall(head.encode() + b"<html>")
            return
        if path == "/v1/talk":
            self._talk(connection)
        if path == "/v1/hold" and not self._hold(connection):
            return
        document = {"node": self.address, "bytes": len(request.body)}
        content = json.dumps(document).encode()
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content)

    def _stream(self, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"d\r\ndata: first\n\n\r\n")
        if self._hold(connection):
            connection.sendall(b"e\r\ndata: second\n\n\r\n0\r\n\r\n")

    def _pieces(self, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(8):
            connection.sendall(b"d\r\ndata: first\n\n\r\n")
            threading.Event().wait(0.08)
        connection.sendall(b"c\r\ndata: last\n\n\r\n0\r\n\r\n")

    def _talk(self, connection: socket.socket) -> None:
        """Write on and on, until nobody takes it any more."""
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        with self._lock:
            self.waiting += 1
        try:
            while True:
                connection.sendall(b"d\r\ndata: first\n\n\r\n")
                threading.Event().wait(0.02)
        except OSError:
            self.left += 1
            raise

    def _hold(self, connection: socket.socket) -> bool:
        """Wait for `go`; False if the connection ends before."""
        connection.settimeout(0.02)
        with self._lock:
            self.waiting += 1
        try:
            while not self.go.is_set():
                with suppress(TimeoutError):
                    if connection.recv(1) == b"":
                        return False
            connection.settimeout(SECONDS)
            return True
        finally:
            with self._lock:
                self.waiting -= 1


def nodes(count: int) -> list[Node]:
    """Some nodes on one port, each on an address of its own."""
    first = Node("127.83.0.1", 0)
    return [first, *(Node(f"127.83.0.{number + 1}", first.port) for number in range(1, count))]


class Gateway:
    """The proxy as a process, before so many nodes that are not there and before these; a context.

    With `machines`, these are the addresses that so many nodes may have. With `fallback`, the URL of another server,
    that serves while no node lives; `metadata` is the address of the metadata server, `replaced` what of the
    configuration is another text here, and `variables` are further ones.
    """

    def __init__(
        self,
        behind: list[Node],
        absent: int = 0,
        machines: int | None = None,
        *,
        fallback: str | None = None,
        metadata: str = "",
        replaced: Mapping[str, str] = MappingProxyType({}),
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        # Bound here too, it is drawn by nothing else before the proxy listens.
        self._drawn = bind("127.0.0.1", free_port())
        self.port = self._drawn.getsockname()[1]
        addresses = [*[""] * absent, *(node.address for node in behind)]
        text = gateway_configuration(addresses, behind[0].port if behind else 8000, machines, fallback)
        for old, new in replaced.items():
            assert old in text
            text = text.replace(old, new)
        environment = {"PATH": PATH, "PORT": str(self.port), "GATEWAY_ADDRESS": "127.0.0.1", CONFIGURATION: text}
        if fallback is not None:
            environment |= {IDENTITY: identity_program(), "GCE_METADATA_HOST": metadata, **variables}
        script = SCRIPT if fallback is None else SCRIPT_WITH_FALLBACK
        self._process = subprocess.Popen(
            ["sh", "-c", script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.log: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(ValueError):  # closed
            for line in self._process.stdout or ():
                self.log.append(line)

    def __enter__(self) -> Self:
        until(self._listens, "the proxy listens", self.log)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(SECONDS)
        self._drawn.close()

    def _listens(self) -> bool:
        assert self._process.poll() is None, self.log
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def connect(self) -> http.client.HTTPConnection:
        """A connection of a caller."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)

    def ask(
        self, target: str, method: str = "GET", body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        connection = self.connect()
        try:
            connection.request(method, target, body, headers or {})
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content[:1] == b"{" else content.decode()
        finally:
            connection.close()

    def raw(self, text: str) -> bytes:
        """All that comes back for some bytes sent."""
        with socket.create_connection(("127.0.0.1", self.port), SECONDS) as connection:
            connection.sendall(text.encode("latin-1"))
            received = b""
            while piece := connection.recv(65536):
                received += piece
            return received


def until(condition: Any, what: str, log: object = "", seconds: float = SECONDS) -> None:
    """Wait for a condition, up to a deadline."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}: {log}"
        threading.Event().wait(0.02)
