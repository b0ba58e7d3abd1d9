"""Connections to the server behind the door: kept alive, one request at a time each, the answer piece by piece.

Owns framing, reuse and the end of a connection. A request is sent again here only where no connection was made.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import urlsplit

from bezel_door.http1.bodies import BodyError, BodyReader, body_reader
from bezel_door.http1.heads import END, LONGEST_HEAD, HeadError, Headers, ResponseHead, read_response_head

_IDLE_SECONDS: Final = 15.0
"""Shorter than servers keep an idle connection: one that they close is not reused."""
_MOST_IDLE: Final = 64
_CONNECT_SECONDS: Final = 10.0
_ATTEMPTS: Final = 3
_PAUSE: Final = 0.1


class UnreachableError(Exception):
    """No connection was made: nothing was sent."""


class BrokenError(Exception):
    """The connection broke after the request was sent."""


@dataclass(frozen=True, slots=True)
class Address:
    """Address of the server.

    Attributes:
        host: Its name.
        port: Its port.
        prefix: A path that precedes that of each request.
        authority: The `Host` header.
        is_tls: Whether it is reached by TLS.
    """

    host: str
    port: int
    prefix: bytes
    authority: bytes
    is_tls: bool


def address_of(url: str) -> Address:
    """The address in a URL.

    Raises:
        ValueError: It is no `https` URL, nor one of this machine.
    """
    parts = urlsplit(url)
    is_local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost")
    is_plain = not (parts.query or parts.fragment or "@" in parts.netloc)
    if not parts.hostname or not is_plain or not (parts.scheme == "https" or is_local):
        raise ValueError("expected an https URL")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    prefix = parts.path.rstrip("/").encode()
    return Address(parts.hostname, port, prefix, parts.netloc.encode(), parts.scheme == "https")


class ServerConnection(asyncio.Protocol):
    """One connection."""

    def __init__(self, released: Callable[["ServerConnection"], None]) -> None:
        self._released = released
        self._head: asyncio.Future[ResponseHead] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._method = b""
        self._data = b""
        self._body: BodyReader | None = None
        self._take: Callable[[bytes], None] | None = None
        self._early: list[bytes] = []
        self._is_kept = False
        self.is_closed = False
        self.idle_since = 0.0

    async def send(self, method: bytes, target: bytes, headers: Headers, body: bytes) -> ResponseHead:
        """Send a request, and wait for the head of its answer.

        Raises:
            BrokenError: The connection broke.
        """
        loop = asyncio.get_running_loop()
        self._head, self._ended = loop.create_future(), loop.create_future()
        self._method, self._data, self._body, self._take, self._early = method, b"", None, None, []
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        self._transport.write(b"%b %b HTTP/1.1\r\n%b\r\n" % (method, target, lines) + body)
        return await self._head

    async def relay(self, take: Callable[[bytes], None]) -> None:
        """Pass the body's pieces on as they arrive, until its end.

        Raises:
            BrokenError: The connection broke before.
        """
        self._take = take
        early, self._early = self._early, []
        for piece in early:
            take(piece)
        assert self._ended is not None  # noqa: S101 - for the type checker
        await self._ended

    def pause(self) -> None:
        """Read no more for the time being: the client does not take it."""
        if not self.is_closed:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if not self.is_closed:
            self._transport.resume_reading()

    def abort(self) -> None:
        """End the connection at once, and the request with it."""
        self.is_closed = True
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
                if hasattr(socket, name):
                    sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        try:
            if self._body is not None:
                self._read_body(self._body, data)
            elif self._head is None or self._head.done():
                self._fail("the server sent what no request asked for")
            else:
                self._data += data
                self._read_head()
        except (HeadError, BodyError) as error:
            self._fail(str(error))

    def eof_received(self) -> bool:
        """See asyncio."""
        if self._body is not None and not self._body.is_complete:
            try:
                self._body.end()
            except BodyError as error:
                self._fail(str(error))
            else:
                self._finish()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self.is_closed = True
        self._fail("the connection was closed" if exc is None else type(exc).__name__)

    def _read_head(self) -> None:
        while (end := self._data.find(END)) >= 0:
            head = read_response_head(self._data[:end], self._method)
            self._data = self._data[end + len(END) :]
            if head.status >= 200:
                break
        else:
            if len(self._data) > LONGEST_HEAD:
                raise HeadError("the head of the answer is too long")
            return
        self._body, self._is_kept = body_reader(head.framing), head.is_kept
        data, self._data = self._data, b""
        assert self._head is not None  # noqa: S101 - for the type checker
        if not self._head.done():
            self._head.set_result(head)
        self._read_body(self._body, data)

    def _read_body(self, body: BodyReader, data: bytes) -> None:
        for piece in body.take(data):
            if self._take is not None:
                self._take(piece)
            else:
                self._early.append(piece)
        if body.is_complete:
            self._is_kept = self._is_kept and not body.surplus
            self._finish()

    def _finish(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
            self._body = self._head = None
            if self._is_kept and not self.is_closed:
                self.idle_since = time.monotonic()
                self._released(self)
            else:
                self.is_closed = True
                self._transport.close()

    def _fail(self, reason: str) -> None:
        for future in (self._head, self._ended):
            if future is not None and not future.done():
                future.set_exception(BrokenError(reason))
                future.exception()  # retrieved: no task may wait for the second one
        if not self.is_closed:
            self.abort()


class ServerConnections:
    """The connections to one server."""

    def __init__(self, url: str, context: ssl.SSLContext) -> None:
        """Connect to nothing yet.

        Args:
            url: URL of the server; a path in it precedes that of each request.
            context: TLS.

        Raises:
            ValueError: It is no `https` URL, nor one of this machine.
        """
        self.address = address_of(url)
        self._context = context if self.address.is_tls else None
        self._idle: list[ServerConnection] = []

    async def connection(self) -> ServerConnection:
        """A connection without a request, a kept one or a new one.

        Raises:
            UnreachableError: None can be made.
        """
        now = time.monotonic()
        while self._idle:
            kept = self._idle.pop()
            if not kept.is_closed and now - kept.idle_since < _IDLE_SECONDS:
                return kept
            kept.abort()
        for attempt in range(_ATTEMPTS):
            try:
                return await self._connect()
            except (OSError, TimeoutError) as error:
                if attempt == _ATTEMPTS - 1:
                    raise UnreachableError(type(error).__name__) from None
                await asyncio.sleep(_PAUSE * 2**attempt)
        raise UnreachableError

    def close(self) -> None:
        """Close the idle ones."""
        for kept in self._idle:
            kept.abort()
        self._idle.clear()

    async def _connect(self) -> ServerConnection:
        loop = asyncio.get_running_loop()
        host = self.address.host if self._context else None
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, connection = await loop.create_connection(
                lambda: ServerConnection(self._release),
                self.address.host,
                self.address.port,
                ssl=self._context,
                server_hostname=host,
            )
        return connection

    def _release(self, connection: ServerConnection) -> None:
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.abort()
