"""A real HTTP server that answers like Cloud Storage's list of objects, two objects a page."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "ya29.planted-access-token"


class FakeStorage:
    """Buckets with objects (name -> size), the requests that came, and a fault to answer with."""

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, int]] = {}
        self.requests: list[str] = []
        self.contents: dict[str, object] = {}
        self.fault: int | None = None
        self.base = ""

    def answer(self, path: str, authorization: str) -> tuple[int, object]:
        """Status and JSON for one request."""
        self.requests.append(path)
        if self.fault:
            return self.fault, _error(self.fault, "the fault of this test")
        if authorization != f"Bearer {TOKEN}":
            return 401, _error(401, "Invalid Credentials")
        parts = urlsplit(path)
        if "/o/" in parts.path:
            return 200, self.contents[unquote(parts.path.partition("/o/")[2])]
        bucket = unquote(parts.path.removeprefix("/storage/v1/b/").removesuffix("/o"))
        if bucket not in self.buckets:
            return 404, _error(404, "The specified bucket does not exist.")
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        prefix, start = query.get("prefix", ""), int(query.get("pageToken", 0))
        names = sorted(
            name for name in self.buckets[bucket] if name.startswith(prefix) and "/" not in name.removeprefix(prefix)
        )
        page = {"kind": "storage#objects"}
        items = [{"name": name, "size": str(self.buckets[bucket][name])} for name in names[start : start + 2]]
        if items:
            page["items"] = items
        if len(names) > start + 2:
            page["nextPageToken"] = str(start + 2)
        return 200, page


def _error(status: int, message: str) -> object:
    return {"error": {"code": status, "message": message, "errors": [{"reason": "test", "message": message}]}}


@contextmanager
def serving() -> Iterator[FakeStorage]:
    """A server on a free port of 127.0.0.1 for as long as the block lasts."""
    storage = FakeStorage()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, answer = storage.answer(self.path, self.headers.get("Authorization", ""))
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    storage.base = f"http://127.0.0.1:{server.server_port}/storage/v1/"
    try:
        yield storage
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
