"""Plain requests: most of what clients send, read by two expressions and answered without a parser's states.

Plain is a request in HTTP/1.1 with a path as its target, whose head came whole, whose body has a length or is absent,
and that asks for nothing of the connection but to stay open. Owns its reading and the bytes of its response. Leaves out
all other requests, malformed ones too: h11 reads them (serving.py). A parser in Python takes a third of the time of a
small request.
"""

import asyncio
import re
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, RequestResponseCycle

Headers = list[tuple[bytes, bytes]]

_LONGEST_HEAD = 16 << 10  # bytes; only h11 reads longer ones
_TOKEN = rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]+"
_CHARACTER = rb"(?:[\w.~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})"
_HEAD = re.compile(
    rb"(?P<method>GET|HEAD|POST|PUT|PATCH|DELETE) (?P<path>/" + _CHARACTER + rb"*)"
    rb"(?:\?(?P<query>(?:" + _CHARACTER + rb"|\?)*))? HTTP/1\.1\r\n"
    rb"(?P<lines>(?:" + _TOKEN + rb":[\t\x20-\x7e\x80-\xff]*\r\n)*)\r\n"
)
_LENGTH = re.compile(rb"[0-9]{1,18}")
_HOST = re.compile(rb"[\w.-]+(?::[0-9]*)?")
_FIELD = rb"(?:[^\x00\s]+(?:[ \t]+[^\x00\s]+)*)?"  # as h11 accepts it
_LINES = re.compile(rb"(?:" + _TOKEN + rb": " + _FIELD + rb"\r\n)*")
_NOT_PLAIN = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"http2-settings"})
_FRAMING = frozenset({b"transfer-encoding", b"content-length"})
_JOINED = 1 << 16  # bytes of a body that is copied behind its head, so that both are one write


class PlainRequest(NamedTuple):
    """A request's head.

    Attributes:
        method: Its method.
        path: Its path as it was sent.
        query: What follows the question mark.
        headers: Names in lower case, and values.
        length: Bytes of the body.
        end: Bytes of the head.
    """

    method: str
    path: bytes
    query: bytes
    headers: Headers
    length: int
    end: int


def plain_request(data: bytes) -> PlainRequest | None:
    """The request at the beginning of what a client sent; None where it is not a plain one, or not whole yet."""
    match = _HEAD.match(data, 0, _LONGEST_HEAD)
    if match is None:
        return None
    lines = (line.partition(b":") for line in match["lines"].split(b"\r\n")[:-1])
    headers = [(name.lower(), value.strip(b" \t")) for name, _, value in lines]
    by_name = dict(headers)
    if len(by_name) != len(headers) and not _are_single(headers):
        return None
    length, host = by_name.get(b"content-length", b"0"), by_name.get(b"host")
    if (
        host is None
        or not _HOST.fullmatch(host)
        or not by_name.keys().isdisjoint(_NOT_PLAIN)
        or by_name.get(b"connection", b"keep-alive").lower() != b"keep-alive"
        or not _LENGTH.fullmatch(length)
    ):
        return None
    return PlainRequest(
        match["method"].decode(), match["path"], match["query"] or b"", headers, int(length), match.end()
    )


def _are_single(headers: Headers) -> bool:
    """Whether the headers on which the reading depends come once at most."""
    names = [name for name, _ in headers]
    return all(names.count(name) < 2 for name in (b"host", b"content-length", b"connection"))


class PlainCycle(RequestResponseCycle):
    """One plain request and its response.

    Attributes:
        missing_bytes: Bytes of the body that the client has not sent yet.
    """

    missing_bytes = 0
    _head = b""  # as long as it is not written

    def take(self, data: bytes) -> bytes:
        """Take the body's part of some bytes and return what follows it."""
        part = data[: self.missing_bytes]
        self.missing_bytes -= len(part)
        self.body += part
        self.more_body = self.missing_bytes > 0
        if part or not self.missing_bytes:
            self.message_event.set()
        return data[len(part) :]

    async def run_asgi(self, app: ASGIApp) -> None:  # type: ignore[override]
        """Run the application; what it has sent before it fails is written."""

        async def run(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await app(scope, receive, send)
            finally:
                self._write_head()

        await super().run_asgi(run)  # type: ignore[arg-type]

    async def send(self, message: Message) -> None:  # type: ignore[override]
        """Send a part of the response.

        Raises:
            RuntimeError: The application sent something else than it must, or a header that none may have.
        """
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if not self.response_started and message["type"] == "http.response.start":
            self._start(message["status"], [*self.default_headers, *message.get("headers", ())])
        elif self.response_started and not self.response_complete and message["type"] == "http.response.body":
            self._write_body(message.get("body", b""), more=message.get("more_body", False))
        else:
            raise RuntimeError(f"Unexpected ASGI message '{message['type']}'")

    def _start(self, status: int, headers: Headers) -> None:
        by_name = {name.lower(): value for name, value in headers}
        if b"transfer-encoding" in by_name:  # an application that passes another server's response on
            headers = [header for header in headers if header[0].lower() not in _FRAMING]
            by_name.pop(b"content-length", None)
        options = [option.strip() for option in by_name.get(b"connection", b"").lower().split(b",")]
        self.keep_alive = self.keep_alive and CLOSE_HEADER[1] not in options
        length = by_name.get(b"content-length")
        self._chunked = length is None and status not in {204, 304}
        if self._chunked:
            headers.append((b"Transfer-Encoding", b"chunked"))
        self._bodiless = self.scope["method"] == "HEAD" or status in {204, 304}
        self._expected = int(length or 0)
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        if not _LINES.fullmatch(lines) or lines.count(b"\r\n") != len(headers):
            raise RuntimeError("a header of the response is none of HTTP/1.1")
        self._head = b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, STATUS_PHRASES[status], lines)
        self.response_started = True
        asyncio.get_running_loop().call_soon(self._write_head)  # where the body does not follow at once

    def _write_head(self) -> None:
        if head := self._take_head():
            self.transport.write(head)

    def _take_head(self) -> bytes:
        head, self._head = self._head, b""
        return head

    def _write_body(self, body: bytes, *, more: bool) -> None:
        if self._bodiless:
            body = b""
        elif self._chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        else:
            self._expected -= len(body)
        if self._expected < 0:
            raise RuntimeError("a response is longer than it was announced")
        head = self._take_head()
        for part in [head + body] if len(body) <= _JOINED else [head, body]:
            if part:
                self.transport.write(part)
        if not more and self._expected and not self._bodiless:
            raise RuntimeError("a response is shorter than it was announced")
        if not more:
            self.response_complete = True
            self.message_event.set()
            if self.missing_bytes or not self.keep_alive:
                self.transport.close()
            self.on_response()
