"""A server on a real socket that answers as a test asks, and remembers its requests."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Call:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def form(self) -> dict[str, str]:
        return {key: values[0] for key, values in parse_qs(self.body.decode()).items()}


@dataclass
class Answer:
    """What to send: ``chunks`` is a stream of bytes or of pauses in seconds; ``reset`` closes without a word."""

    status: int = 200
    json: Any = None
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[bytes | float] | None = None
    reset: bool = False


Route = Callable[[Call], Answer | None]


class _EndedError(Exception):
    """The server was closed."""


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    answer: Route
    now: Callable[[], float] = staticmethod(time.time)
    has_ended = False

    def service_actions(self) -> None:
        """End the thread that serves; it comes here after each event."""
        if self.has_ended:
            raise _EndedError

    def handle_error(self, *_: object) -> None:
        """A client that hangs up is a part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    server: _Http

    def log_message(self, *_: object) -> None:
        pass

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string(self.server.now() if timestamp is None else timestamp)

    def serve(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        headers = {key.lower(): value for key, value in self.headers.items()}
        missing = {"error": {"code": 404, "message": "no route", "status": "NOT_FOUND"}}
        self._send(self.server.answer(Call(self.command, parts.path, query, headers, body)) or Answer(404, missing))

    def _send(self, answer: Answer) -> None:
        if answer.reset:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.chunks is not None:
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self._stream(answer.chunks)
            return
        data = answer.text.encode() if answer.json is None else json.dumps(answer.json).encode()
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, chunks: list[bytes | float]) -> None:
        for chunk in chunks:
            if isinstance(chunk, float):
                time.sleep(chunk)
            else:
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


for _method in ("GET", "POST", "PATCH", "PUT", "DELETE"):
    setattr(_Handler, f"do_{_method}", _Handler.serve)


class Server:
    """Answers with the first of its routes that knows the call, else 404."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.routes: list[Route] = []
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.answer = self._answer
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _answer(self, call: Call) -> Answer | None:
        self.calls.append(call)
        return next((answer for route in self.routes if (answer := route(call)) is not None), None)

    def _serve(self) -> None:
        with suppress(_EndedError):
            self._http.serve_forever(0.02)

    def set_clock(self, now: Callable[[], float]) -> None:
        """The time that the server's answers are stamped with."""
        self._http.now = now

    def close(self) -> None:
        # `shutdown()` of the server would wait for the end of the poll: each of 400 fast tests for 10 ms.
        self._http.has_ended = True
        with suppress(OSError):  # where only a connection can be shut down, the poll ends by itself
            self._http.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._http.server_close()

    def paths(self) -> list[str]:
        return [f"{call.method} {call.path}" for call in self.calls]


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.close()


def act_once(server: Server, path: str, requests: int, act: Callable[[], object]) -> None:
    """Have something done at the first request to a path that comes after so many, however many come at once."""
    turns = iter(range(requests + 1))  # a step of it is one for all threads that answer

    def count(call: Call) -> Answer | None:
        if call.path == path and next(turns, None) == requests:
            act()
        return None

    server.routes.insert(0, count)
