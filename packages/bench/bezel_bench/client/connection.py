"""One connection to the server: one request at a time, with the arrival instant of every received piece.

The instant is the kernel's receive stamp where available: it is right however late the bytes are read. (TCP has one
stamp for all that is read at once, that of the last segment: a client that is so late that it reads several chunks
together sees them arrive together.) Of the first requests, and of some later ones, the kernel also stamps when they
left (Documentation/networking/timestamping.rst). Owns HTTP/1.1 framing (by httptools' parser) and TLS. Leaves out the
meaning of a body, the choice of the next request and the consequence of a broken connection: the connection notifies
its owner.
"""

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, Final, Protocol

import httptools

from bezel_bench.client.loop import ARRIVES, ENDS, ERROR, READ, WRITE, Loop
from bezel_bench.client.response_buffer import ResponseBuffer
from bezel_bench.result.no_response import LONGEST, NotHttpError

if TYPE_CHECKING:
    from bezel_bench.client.route import Route
    from bezel_bench.client.sse_template import Alike
    from bezel_bench.client.tls import Tls

# include/uapi/asm-generic/socket.h: both the socket's option and the type of the ancillary message, a timespec.
_SO_TIMESTAMPNS: Final = 35
# include/uapi/linux/net_tstamp.h: stamps of what was sent come to the socket's error queue, of messages that ask
# (TX_SOFTWARE): the first requests, then one of so many, as each costs some microseconds.
_SO_TIMESTAMPING: Final = 37
_STAMPED: Final = ((socket.SOL_SOCKET, _SO_TIMESTAMPING, struct.pack("I", 1 << 1)),)
_FIRST, _ONE_OF = 512, 127
# Bytes that leave without waiting for the server: 10 segments (RFC 6928). The rest of a request is the network's.
_FLIGHT: Final = 14_000
_TIMESPEC: Final = struct.Struct("qq")
_timespec: Final[Callable[[bytes], tuple[int, int]]] = _TIMESPEC.unpack
_ROOM: Final = socket.CMSG_SPACE(_TIMESPEC.size)
# Bytes of one read. Of more than glibc's 128 KiB, each read would map memory of its own.
_MOST: Final = 64 * 1024
# An event's end, then its frame's end. A body ends before the latter, so data with this end stops between two frames.
_EVENT_AND_FRAME_END: Final = b"\n\n\r\n"
_FIRST_FINAL: Final = 200


class Owner(Protocol):
    """Receiver of a connection's notifications."""

    def on_open(self, connection: "Connection") -> None:
        """The connection can send."""

    def on_open_failure(self, connection: "Connection", error: OSError) -> None:
        """The connection could not be made."""

    def more(self, answer: ResponseBuffer) -> None:
        """Enough of a response has arrived to be read."""

    def on_response(self, connection: "Connection", answer: ResponseBuffer, *, kept: bool) -> None:
        """A response is complete; `kept` is whether the connection can send another request."""

    def on_close(self, connection: "Connection") -> None:
        """The server closed the connection while it was idle."""

    def on_break(self, answer: ResponseBuffer, *, begun: bool, error: Exception | None) -> None:
        """The connection ended before the response did.

        Args:
            answer: The part of the response that arrived; its connection is closed.
            begun: Whether any byte arrived.
            error: The error of the system or TLS, or `NotHttpError`; None where the server just closed.
        """


class Connection:
    """A connection in one of these states: opening, idle, awaiting a response, idle again, closed for good."""

    __slots__ = (
        *("_address", "_answer", "_begun", "_bodies", "_frames", "_loop", "_owner", "_parser"),
        *("_route", "_sent", "_socket", "_stamp", "_tls", "_unsent", "on_body"),
    )

    def __init__(self, loop: Loop, route: "Route", owner: Owner) -> None:
        self._loop, self._route, self._owner = loop, route, owner
        self._address = -1
        self._answer: ResponseBuffer | None = None
        self._begun = False
        # Filled by the parser through list.append itself: a method would cost a call for every chunk.
        self._bodies: list[bytes] = []
        # Set between two frames of "chunked", while each frame holds one event of the known template.
        self._frames: Alike | None = None
        self.on_body = self._bodies.append
        self._parser: httptools.HttpResponseParser | None = None
        self._sent = self._stamp = 0
        self._socket: socket.socket | None = None
        self._tls: Tls | None = route.tls()
        self._unsent: memoryview | None = None

    def open(self) -> None:
        """Begin to connect to the next of the route's addresses; the owner is notified after this returns."""
        self._address += 1
        family, address = self._route.addresses[self._address]
        try:
            made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            failure = error
            self._loop.at(0, lambda: self._owner.on_open_failure(self, failure))
            return
        self._socket = made
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A sandbox's kernel may lack stamps: then the loop's own clock is read instead.
        with contextlib.suppress(OSError):
            made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            # SOFTWARE, OPT_TSONLY: without the bytes.
            made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, 1 << 4 | 1 << 11)
        made.connect_ex(address)
        self._loop.watch(made.fileno(), WRITE, self._connecting)

    def ask(self, request: bytes, answer: ResponseBuffer) -> None:
        """Send a request; the owner is notified of its response, or that there will be none."""
        self._answer, self._begun = answer, False
        if self._tls is not None:
            try:
                request = self._tls.encrypt(request)
            except self._tls.Error as error:
                failure = error
                self._loop.at(0, lambda: self._end(failure))
                return
        self._sent = answer.sample.sent = monotonic_ns()
        if (answer.sample.index < _FIRST or not answer.sample.index % _ONE_OF) and self._socket:
            # A sandbox's kernel may refuse it, and `_write` handles a connection that is full or broken.
            with contextlib.suppress(OSError):
                request = request[self._socket.sendmsg((request[:_FLIGHT],), _STAMPED) :]
                self._take_stamp(ERROR)
        self._write(request)

    def close(self) -> None:
        """Close the connection without notifying the owner."""
        if self._socket is not None:
            self._loop.forget(self._socket.fileno())
            self._socket.close()
        # The parser holds this object's methods: without garbage collection the two would stay.
        self._socket = self._parser = self._answer = self._tls = None

    def on_headers_complete(self) -> None:
        """Parser callback: the status is known."""
        if self._answer is not None and self._parser is not None:
            self._answer.sample.status = self._parser.get_status_code()

    def on_message_complete(self) -> None:
        """Parser callback: the response has ended as its framing defines."""
        answer, parser = self._answer, self._parser
        # 100 Continue and other 1xx are not final responses.
        if answer is None or parser is None or answer.sample.status < _FIRST_FINAL:
            return
        self._take()
        answer.at = self._stamp
        self._answer = None
        kept = self._unsent is None and parser.should_keep_alive()
        if not kept:
            self.close()
        self._owner.on_response(self, answer, kept=kept)

    def _connecting(self, _: int) -> None:
        made = self._socket
        if made is None:
            return
        # A second connect reports the result of the first.
        error = made.connect_ex(self._route.addresses[self._address][1])
        if error in {errno.EINPROGRESS, errno.EALREADY}:
            return
        if error in {0, errno.EISCONN}:
            if self._tls is None:
                self._is_open()
            else:
                self._loop.change(made.fileno(), READ, self._shaking)
                self._shaking(READ)
            return
        self._loop.forget(made.fileno())
        made.close()
        self._socket = None
        if self._address + 1 < len(self._route.addresses):
            self.open()
        else:
            self._owner.on_open_failure(self, OSError(error, os.strerror(error)))

    def _shaking(self, _: int) -> None:
        tls, made = self._tls, self._socket
        if tls is None or made is None:
            return
        try:
            try:
                if records := made.recv(_MOST):
                    tls.take(records)
                else:
                    raise ConnectionResetError(errno.ECONNRESET, "the server closed during the TLS handshake")
            except BlockingIOError:
                pass
            shaken = tls.shaken()
            # A handshake's flights are far smaller than a socket's buffer.
            made.sendall(tls.records())
        except OSError as error:
            self.close()
            self._owner.on_open_failure(self, error)
            return
        if shaken:
            self._is_open()

    def _is_open(self) -> None:
        self._watch()
        self._parser = httptools.HttpResponseParser(self)
        self._owner.on_open(self)

    def _writable(self, event: int) -> None:
        if event & WRITE and self._unsent is not None:
            rest, self._unsent = self._unsent, None
            self._write(rest)
        if event & ~WRITE:
            self._readable(event)

    def _write(self, data: bytes | memoryview) -> None:
        made = self._socket
        if made is None or not data:
            return
        try:
            size = made.send(data)
        except BlockingIOError:
            size = 0
        except OSError:
            # Reading reports the error, after a response that the server may still have sent (413, 431).
            return
        if size < len(data):
            self._unsent = memoryview(data)[size:]
            self._watch()
        elif isinstance(data, memoryview):
            self._watch()

    def _take_stamp(self, event: int) -> None:
        """Note when the request left, if the kernel's stamp of it has come: its event is that of an error."""
        if event & ERROR and self._socket and self._answer:
            with contextlib.suppress(OSError):
                seconds, nanoseconds = _timespec(self._socket.recvmsg(0, _ROOM, socket.MSG_ERRQUEUE)[1][0][2])
                stamp = seconds * 1_000_000_000 + nanoseconds + self._loop.offset
                # The clocks are compared every 10 ms, and may gain some microseconds on each other meanwhile.
                if self._sent - 20_000 <= stamp <= monotonic_ns():
                    self._answer.sample.departed = max(stamp, self._sent)

    def _watch(self) -> None:
        """Register for unread data, new data, and room for unsent data."""
        if self._socket is None:
            return
        if self._unsent is None:
            self._loop.change(self._socket.fileno(), ARRIVES, self._readable)
        else:
            self._loop.change(self._socket.fileno(), ARRIVES | WRITE, self._writable)

    def _readable(self, event: int) -> None:
        # The hot path of every chunk: inlined instead of calls.
        made = self._socket
        if made is None:
            return
        try:
            data, stamps, _, _ = made.recvmsg(_MOST, _ROOM)
        except BlockingIOError:
            self._take_stamp(event)
            return
        except OSError as error:
            self._end(error)
            return
        if not data:
            self._end(None)
            return
        if event & ENDS or len(data) == _MOST:
            # There is more, and the edge-triggered event fires only once.
            self._take_stamp(event)
            self._watch()
        at = monotonic_ns()
        if stamps:
            seconds, nanoseconds = _timespec(stamps[0][2])
            stamp = seconds * 1_000_000_000 + nanoseconds + self._loop.offset
            # Outside of these only if the wall clock was set: then the instant of reading is the better one.
            if self._sent <= stamp <= at:
                at = stamp
        else:
            self._loop.stamped = False
        # Frames counted here bypass the parser, which stays between two frames.
        frames = self._frames
        if frames is not None and frames.frame(at, data):
            return
        self._stamp, self._frames = at, None
        if self._tls is None:
            self._parse(data)
        else:
            self._decrypt(self._tls, data)

    def _decrypt(self, tls: "Tls", records: bytes) -> None:
        tls.take(records)
        try:
            for data in tls.plain():
                if not data:
                    self._end(None)
                    return
                self._parse(data)
                if self._socket is None:
                    return
        except tls.Error as error:
            self._end(error)
            return
        # Session tickets and key updates may need a reply.
        if self._unsent is None and (answer := tls.records()):
            self._write(answer)

    def _parse(self, data: bytes | memoryview) -> None:
        parser = self._parser
        if parser is None or self._answer is None:
            # No request is open: a server may announce that it closes before it does.
            self._end(None)
            return
        self._begun = True
        wrong = None
        try:
            parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            # Raised by a callback on this side, not by the parser.
            raise (error.__context__ or error) from None
        except httptools.HttpParserError as error:
            wrong = NotHttpError(str(error), bytes(data[:LONGEST]))
        if self._bodies:
            self._take()
            # (Bytes decrypted by TLS are in another buffer, and go through the parser.)
            if self._tls is None and self._answer is not None and data[-4:] == _EVENT_AND_FRAME_END:
                self._frames = self._answer.alike
        if wrong is not None and self._socket is not None:
            self._end(wrong)

    def _take(self) -> None:
        """Pass the parsed part of the body to the response."""
        answer, at = self._answer, self._stamp
        if answer is not None and self._bodies:
            if answer.sample.departed and not answer.sample.first:
                answer.reader.since[at] = self._loop.since
            # Unless each may be an event like those before it, they are one piece: all came at one instant.
            for body in self._bodies if answer.alike else (b"".join(self._bodies),):
                if not (answer.alike and answer.alike.event(at, body)) and answer.keep(at, body):
                    self._owner.more(answer)
        self._bodies.clear()

    def _end(self, error: Exception | None) -> None:
        answer, begun = self._answer, self._begun
        self.close()
        if answer is None:
            self._owner.on_close(self)
        else:
            answer.at = monotonic_ns()
            self._owner.on_break(answer, begun=begun, error=error)
