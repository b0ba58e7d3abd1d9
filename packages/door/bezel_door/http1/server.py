"""Connections of callers: a request's head read strictly, its body as it arrives, the response piece by piece.

Owns framing, order, time bounds and the memory of a connection. Leaves out what is admitted: the handler's. A request
that is not plain HTTP/1.1 gets its refusal, and the connection ends.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, cast

from bezel_door.calls import refusals
from bezel_door.calls.refusals import Refusal
from bezel_door.http1.bodies import BodyError, BodyReader, body_reader
from bezel_door.http1.heads import END, LONGEST_HEAD, Framing, HeadError, Headers, RequestHead, read_request_head

HEAD_SECONDS: Final = 10.0
"""Time for a head, from its first byte."""
BODY_SECONDS: Final = 300.0
"""Time for a body."""
_IDLE_SECONDS: Final = 650.0  # longer than Google's front end keeps an idle connection: it closes first
_LINGER_SECONDS: Final = 2.0
_LINGER_BYTES: Final = 64 * 1024 * 1024
_SURPLUS: Final = 64 * 1024
_PHRASES: Final = {status.value: status.phrase.encode() for status in HTTPStatus}

Handler = Callable[["Call"], Awaitable[None]]


class ClientGoneError(Exception):
    """The caller closed its connection."""


class Bodies:
    """Bytes of bodies that the process holds at a time, of which one holder has half at most.

    Requests of one key that arrive slowly leave the other half to the others.
    """

    def __init__(self, most: int) -> None:
        self._free, self._share = most, most // 2
        self._held = Counter[str]()

    def take(self, size: int, holder: str = "") -> bool:
        """Reserve bytes; False where there are not as many, for all or for this holder."""
        if size > self._free or (holder and self._held[holder] + size > self._share):
            return False
        self._free -= size
        self._held[holder] += size
        return True

    def give_back(self, size: int, holder: str = "") -> None:
        """Free reserved bytes."""
        self._free += size
        self._held[holder] -= size
        if not self._held[holder]:
            del self._held[holder]


class Call:
    """One request, and its response.

    Attributes:
        head: Its head.
        peer: Address of the connection's other end, "" where it has none.
        is_begun: Whether the response has begun.
        is_gone: Whether the caller closed its connection.
        when_gone: Called then.
        when_full: Called when the caller does not take what was written, with True, and with False when it does again.
    """

    def __init__(self, connection: "CallerConnection", head: RequestHead, peer: str) -> None:
        self.head, self.peer = head, peer
        self.is_begun = self.is_gone = False
        self.when_gone: Callable[[], None] | None = None
        self.when_full: Callable[[bool], None] | None = None
        self._connection = connection
        self._is_chunked = False
        self._closes = False
        self._has_body = head.method != b"HEAD"  # a body would be read as the next response

    async def read_body(self, most: int, holder: str) -> bytes:
        """Read the whole body.

        Args:
            most: Bytes that it may have.
            holder: Who holds them meanwhile, as to `Bodies`.

        Raises:
            RefusedError: It is too large, or does not arrive.
            ClientGoneError: The caller closed its connection.
        """
        return await self._connection.read_body(self.head, most, holder)

    def respond(self, status: int, headers: Headers, body: bytes, *, closes: bool = False) -> None:
        """Send a whole response."""
        self.begin(status, headers, len(body), closes=closes)
        self.write(body)

    def begin(self, status: int, headers: Headers, length: int | None, *, closes: bool = False) -> None:
        """Send the head of a response.

        Args:
            status: HTTP status.
            headers: Headers beside those of the framing.
            length: Bytes of the body; None where it ends by its last chunk.
            closes: Whether the connection ends with it.
        """
        self.is_begun, self._is_chunked, self._closes = True, length is None, closes
        framing = b"transfer-encoding: chunked" if length is None else b"content-length: %d" % length
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        closing = b"connection: close\r\n" if closes or not self._connection.is_kept else b""
        phrase = _PHRASES.get(status, b"")
        self._connection.write(b"HTTP/1.1 %d %b\r\n%b%b%b\r\n\r\n" % (status, phrase, lines, closing, framing))

    def write(self, piece: bytes) -> None:
        """Send a piece of the body."""
        if piece and self._has_body:
            self._connection.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_chunked else piece)

    def end(self) -> None:
        """Send the end of the body."""
        if self._is_chunked:
            self._connection.write(b"0\r\n\r\n")

    def refuse(self, refusal: Refusal, *, for_anthropic: bool) -> None:
        """Send an error as the whole response."""
        body = refusal.body(for_anthropic=for_anthropic)
        self.respond(refusal.status, refusal.headers(), body, closes=refusal.closes)

    def cut(self) -> None:
        """Close the connection without the end of the body: no caller takes it for complete."""
        self._connection.close()

    @property
    def closes(self) -> bool:
        """Whether the connection ends with the response."""
        return self._closes


class RefusedError(Exception):
    """The request gets an error of the door's.

    Attributes:
        refusal: The error.
        key_id: The key, where it was admitted and what it may do refuses.
    """

    def __init__(self, refusal: Refusal, key_id: str = "") -> None:
        super().__init__(refusal.code)
        self.refusal, self.key_id = refusal, key_id


class CallerConnection(asyncio.Protocol):
    """One connection of a caller.

    Attributes:
        is_kept: Whether it may serve another request.
        ended: Done when it is closed.
    """

    def __init__(self, handler: Handler, bodies: Bodies, connections: "set[CallerConnection]") -> None:
        self.is_kept = True
        self.ended = asyncio.get_running_loop().create_future()
        self._handler, self._bodies, self._connections = handler, bodies, connections
        self._data = b""
        self._call: Call | None = None
        self._reader: BodyReader | None = None
        self._content = bytearray()  # not pieces: one takes 50 bytes, and a chunk may have two
        self._reserved = 0
        self._most: int | None = None
        self._holder = ""
        self._failure: Refusal | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_lingering = False
        self._is_closed = False
        self._is_full = False
        self._ended_call: Call | None = None
        self._lingered = 0
        self._peer = ""

    def stop(self) -> None:
        """Accept no further request; close at once where none is under way."""
        self.is_kept = False
        if self._call is None:
            self.close()

    def write(self, data: bytes) -> None:
        """Send bytes."""
        if not self._is_closed:
            self._transport.write(data)

    def close(self) -> None:
        """Close when everything is sent."""
        self._is_closed = True
        self._transport.close()

    async def read_body(self, head: RequestHead, most: int, holder: str) -> bytes:
        """Read the whole body of the present request.

        Raises:
            RefusedError: It is too large, or does not arrive.
            ClientGoneError: The caller closed its connection.
        """
        if self._failure is not None:
            raise RefusedError(self._failure)
        length = head.framing.length
        if length is not None and length > most:
            raise RefusedError(refusals.too_large(most))
        self._most, self._holder = most, holder
        if self._reader is None or self._reader.is_complete:
            return bytes(self._content)
        self._check_size()  # what has arrived takes memory, not what is announced
        if (head.header(b"expect") or b"").lower() == b"100-continue" and not self._content:
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._arrival = asyncio.get_running_loop().create_future()
        self._transport.resume_reading()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                await self._arrival
        except TimeoutError:
            raise RefusedError(refusals.too_slow()) from None
        finally:
            self._arrival = None
        body = bytes(self._content)
        self._content.clear()
        return body

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._peer = str(transport.get_extra_info("peername")[0])
        self._wait(_IDLE_SECONDS, self.close)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self._is_lingering:
            self._lingered += len(data)
            if self._lingered > _LINGER_BYTES:
                self._transport.abort()
        elif self._call is None:
            if not self._data:
                self._wait(HEAD_SECONDS, self._end_slow_head)
            looked_at = max(0, len(self._data) - len(END) + 1)
            self._data += data
            self._read_head(looked_at)
        elif self._reader is not None and not self._reader.is_complete:
            self._read_piece(self._reader, data)
        else:
            self._keep_surplus(data)

    def eof_received(self) -> bool:
        """See asyncio: a caller that has closed its half is taken for gone, as vLLM's server takes it."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """See asyncio."""
        self._is_closed = True
        self._connections.discard(self)
        self.ended.set_result(None)
        self._stop_timer()
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_exception(ClientGoneError())
        call = self._call
        if call is not None:
            call.is_gone = True
            if call.when_gone is not None:
                call.when_gone()

    def pause_writing(self) -> None:
        """See asyncio."""
        self._is_full = True
        if self._call is not None and self._call.when_full is not None:
            self._call.when_full(True)

    def resume_writing(self) -> None:
        """See asyncio."""
        self._is_full = False
        if self._call is not None and self._call.when_full is not None:
            self._call.when_full(False)
        ended, self._ended_call = self._ended_call, None
        if ended is not None:
            self._next(ended)

    def _read_head(self, looked_at: int = 0) -> None:
        end = self._data.find(END, looked_at)
        if end < 0 and len(self._data) <= LONGEST_HEAD:
            if self._data.find(b"\n\n", looked_at) >= 0:
                self._refuse_head(HeadError("The lines of the head do not end with CR LF."))
            return
        if not 0 <= end <= LONGEST_HEAD:
            self._refuse_head(HeadError(f"The head has more than {LONGEST_HEAD} bytes.", 431))
            return
        try:
            head = read_request_head(self._data[:end])
        except HeadError as error:
            self._refuse_head(error)
            return
        self._stop_timer()
        self.is_kept = self.is_kept and b"close" not in (head.header(b"connection") or b"").lower()
        data, self._data = self._data[end + len(END) :], b""
        self._call = Call(self, head, self._peer)
        self._reader = None if head.framing.is_empty else body_reader(head.framing)
        self._content, self._most, self._failure = bytearray(), None, None
        self._task = asyncio.get_running_loop().create_task(self._handle(self._call))
        if self._reader is None:
            self._data = data
        elif data:
            self._read_piece(self._reader, data)

    def _read_piece(self, reader: BodyReader, data: bytes) -> None:
        """Take a piece of the present body; reading pauses until the handler asks for it."""
        try:
            for piece in reader.take(data):
                self._content += piece
        except BodyError as error:
            self._fail_body(refusals.malformed_request(f"The body is not plain HTTP: {error}."))
            return
        if reader.is_complete:
            self._data, reader.surplus = reader.surplus, b""
        try:
            self._check_size()
        except RefusedError as refused:
            self._fail_body(refused.refusal)
            return
        if reader.is_complete and self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _check_size(self) -> None:
        """Keep the body within its bounds.

        Raises:
            RefusedError: It is too large.
        """
        size = len(self._content)
        if self._most is None:
            if size > _SURPLUS:
                self._transport.pause_reading()
            return
        if size > self._most:
            raise RefusedError(refusals.too_large(self._most))
        if size > self._reserved and not self._reserve(size - self._reserved):
            raise RefusedError(refusals.many_bodies())

    def _fail_body(self, refusal: Refusal) -> None:
        self._content.clear()
        self._transport.pause_reading()
        self.is_kept, self._failure = False, refusal
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_exception(RefusedError(refusal))

    def _keep_surplus(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > _SURPLUS:
            self._transport.pause_reading()

    async def _handle(self, call: Call) -> None:
        try:
            await self._handler(call)
        finally:
            self._release()
            if self._is_full:
                self._ended_call = call  # the next request waits until the caller has taken this response
                self._wait(_IDLE_SECONDS, self._transport.abort)
            else:
                self._next(call)

    def _next(self, call: Call) -> None:
        """Serve the next request of the connection, or end it."""
        self._call = None
        if self._is_closed:
            return
        is_unread = self._reader is not None and not self._reader.is_complete
        self._reader = None
        if not call.is_begun or call.closes or is_unread or not self.is_kept:
            self._linger()
        elif self._data:
            self._transport.resume_reading()
            self._wait(HEAD_SECONDS, self._end_slow_head)
            self._read_head()
        else:
            self._transport.resume_reading()
            self._wait(_IDLE_SECONDS, self.close)

    def _linger(self) -> None:
        """End the connection so that the response arrives: what the caller still sends is read for a moment."""
        self.is_kept, self._is_lingering, self._data = False, True, b""
        self._content.clear()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()
        self._wait(_LINGER_SECONDS, self._transport.abort)

    def _refuse_head(self, error: HeadError) -> None:
        self._end_with(refusals.malformed_request(str(error), error.status))

    def _end_slow_head(self) -> None:
        self._end_with(refusals.too_slow())

    def _end_with(self, refusal: Refusal) -> None:
        head = RequestHead(b"", b"", [], Framing(0, is_chunked=False))
        Call(self, head, self._peer).refuse(refusal, for_anthropic=False)
        self._stop_timer()
        self._linger()

    def _reserve(self, size: int) -> bool:
        if not self._bodies.take(size, self._holder):
            return False
        self._reserved += size
        return True

    def _release(self) -> None:
        self._bodies.give_back(self._reserved, self._holder)
        self._reserved = 0

    def _wait(self, seconds: float, action: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, action)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
