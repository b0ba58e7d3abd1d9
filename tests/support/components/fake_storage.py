"""Cloud Storage's list of objects, two objects a page, as a route of a real HTTP server."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tests.support.rest import fake_google
from tests.support.rest.fake_google import Answer, Call, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "ya29.planted-access-token"


class FakeStorage:
    """Buckets with objects (name -> size), contents of some, and a fault to answer with."""

    def __init__(self, server: Server) -> None:
        self.buckets: dict[str, dict[str, int]] = {}
        self.contents: dict[str, object] = {}
        self.fault: int | None = None
        self.server, self.base = server, f"{server.url}/storage/v1/"
        server.routes.append(self._answer)

    def _answer(self, call: Call) -> Answer:
        if self.fault:
            return _error(self.fault, "the fault of this test")
        if call.headers.get("authorization") != f"Bearer {TOKEN}":
            return _error(401, "Invalid Credentials")
        if "/o/" in call.path:
            return _content(call, self.contents[unquote(call.path.partition("/o/")[2])])
        bucket = unquote(call.path.removeprefix("/storage/v1/b/").removesuffix("/o"))
        if bucket not in self.buckets:
            return _error(404, "The specified bucket does not exist.")
        prefix, start = call.query.get("prefix", ""), int(call.query.get("pageToken", 0))
        names = sorted(
            name for name in self.buckets[bucket] if name.startswith(prefix) and "/" not in name.removeprefix(prefix)
        )
        page: dict[str, object] = {"kind": "storage#objects"}
        items = [{"name": name, "size": str(self.buckets[bucket][name])} for name in names[start : start + 2]]
        if items:
            page["items"] = items
        if len(names) > start + 2:
            page["nextPageToken"] = str(start + 2)
        return Answer(json=page)


def _content(call: Call, content: object) -> Answer:
    """JSON as it is, bytes in the range that the request asks for."""
    if not isinstance(content, bytes):
        return Answer(json=content)
    begin, end = (int(part) for part in call.headers["range"].removeprefix("bytes=").split("-"))
    return Answer(206, chunks=[content[begin : end + 1]])


def _error(status: int, message: str) -> Answer:
    content = {"code": status, "message": message, "errors": [{"reason": "test", "message": message}]}
    return Answer(status, {"error": content})


@contextmanager
def serving() -> Iterator[FakeStorage]:
    """A server on a free port of 127.0.0.1 for as long as the block lasts."""
    with fake_google.serving() as server:
        yield FakeStorage(server)
