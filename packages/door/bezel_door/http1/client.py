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
_JOINED: Final = 65536  # a longer body is not copied into one write with its head
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


def place_of(text: str) -> tuple[str, int]:
    """Host and port in `HOST:PORT`.

    Raises:
        ValueError: It is something else.
    """
    host, _, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port) <= 65535:
        raise ValueError("expected HOST:PORT")
    return host, int(port)


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


class ServerAnswer:
    """The answer to one request; its state is its own, as its connection may serve another request before it is read.

    Attributes:
        head: Its head, once it has arrived.
        ended: Done when its body has arrived.
    """

    def __init__(self, connection: "ServerConnection", method: bytes) -> None:
        loop = asyncio.get_running_loop()
        self.head: asyncio.Future[ResponseHead] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.method = method
        self._connection: ServerConnection | None = connection
        self._take: Callable[[bytes], None] | None = None
        self._early: list[bytes] = []

    async def relay(self, take: Callable[[bytes], None]) -> None:
        """Pass the body's pieces on as they arrive, until its end.

        Raises:
            BrokenError: The connection broke before.
        """
        self._take = take
        early, self._early = self._early, []
        for piece in early:
            take(piece)
        await self.ended

    def pause(self, *, is_paused: bool) -> None:
        """Read no more for the time being, as the caller does not take it; or read again."""
        if self._connection is not None:
            self._connection.pause(is_paused=is_paused)

    def abort(self) -> None:
        """End the request at once."""
        if self._connection is not None:
            self._connection.abort()

    def add(self, piece: bytes) -> None:
        """Take a piece of the body from the connection."""
        if self._take is not None:
            self._take(piece)
        else:
            self._early.append(piece)

    def finish(self, error: BrokenError | None = None) -> None:
        """Note that the body has arrived, or that the connection broke before."""
        self._connection = None
        for future in (self.head, self.ended) if error else ():
            if not future.done():
                future.set_exception(error or BrokenError())
                future.exception()  # retrieved: no task may wait for the second one
        if not self.ended.done():
            self.ended.set_result(None)


class ServerConnection(asyncio.Protocol):
    """One connection.

    Attributes:
        is_closed: Whether it can serve no request.
        idle_since: When its last answer ended, by the monotonic clock.
    """

    def __init__(self, released: Callable[["ServerConnection"], None]) -> None:
        self._released = released
        self._answer: ServerAnswer | None = None
        self._data = b""
        self._body: BodyReader | None = None
        self._is_kept = False
        self.is_closed = False
        self.idle_since = 0.0

    def send(self, method: bytes, target: bytes, headers: Headers, body: bytes) -> ServerAnswer:
        """Send a request; its answer is to come."""
        self._answer, self._data, self._body = ServerAnswer(self, method), b"", None
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        head = b"%b %b HTTP/1.1\r\n%b\r\n" % (method, target, lines)
        if len(body) > _JOINED:
            self._transport.write(head)
            self._transport.write(body)
        else:
            self._transport.write(head + body)
        return self._answer

    def pause(self, *, is_paused: bool) -> None:
        """Read no more for the time being, or again."""
        if self.is_closed:
            return
        if is_paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def abort(self) -> None:
        """End the connection at once, and its request with it."""
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
        answer = self._answer
        try:
            if answer is None:
                self._fail("the server sent what no request asked for")
            elif self._body is not None:
                self._read_body(answer, self._body, data)
            else:
                self._data += data
                self._read_head(answer)
        except (HeadError, BodyError) as error:
            self._fail(str(error))

    def eof_received(self) -> bool:
        """See asyncio."""
        if self._answer is not None and self._body is not None:
            try:
                self._body.end()
            except BodyError as error:
                self._fail(str(error))
            else:
                self._finish(self._answer)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self.is_closed = True
        self._fail("the connection was closed" if exc is None else type(exc).__name__)

    def _read_head(self, answer: ServerAnswer) -> None:
        while (end := self._data.find(END)) >= 0:
            head = read_response_head(self._data[:end], answer.method)
            self._data = self._data[end + len(END) :]
            if head.status >= 200:
                break
        else:
            if len(self._data) > LONGEST_HEAD:
                raise HeadError("the head of the answer is too long")
            return
        self._body, self._is_kept = body_reader(head.framing), head.is_kept
        data, self._data = self._data, b""
        if not answer.head.done():
            answer.head.set_result(head)
        self._read_body(answer, self._body, data)

    def _read_body(self, answer: ServerAnswer, body: BodyReader, data: bytes) -> None:
        for piece in body.take(data):
            answer.add(piece)
        if body.is_complete:
            self._is_kept = self._is_kept and not body.surplus
            self._finish(answer)

    def _finish(self, answer: ServerAnswer) -> None:
        self._answer = self._body = None
        answer.finish()
        if self._is_kept and not self.is_closed:
            self._transport.resume_reading()
            self.idle_since = time.monotonic()
            self._released(self)
        else:
            self.is_closed = True
            self._transport.close()

    def _fail(self, reason: str) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.finish(BrokenError(reason))
        if not self.is_closed:
            self.abort()


class ServerConnections:
    """The connections to one server."""

    def __init__(self, url: str, context: ssl.SSLContext, place: tuple[str, int] | None = None) -> None:
        """Connect to nothing yet.

        Args:
            url: URL of the server; a path in it precedes that of each request.
            context: TLS.
            place: Host and port to connect to, where the name in the URL does not lead to the server.

        Raises:
            ValueError: It is no `https` URL, nor one of this machine.
        """
        self.address = address_of(url)
        self._place = place or (self.address.host, self.address.port)
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
                lambda: ServerConnection(self._release), *self._place, ssl=self._context, server_hostname=host
            )
        return connection

    def _release(self, connection: ServerConnection) -> None:
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.abort()
