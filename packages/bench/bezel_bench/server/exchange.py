"""One HTTP exchange over an open connection: a request, and its whole response.

The response is read by the parser of the load: the standard library's client takes longer to import than all single
requests of a run take. What that parser does not take, and a body that ends with its connection, is read by the
standard library's client, which says what is wrong. Leaves out the connection (`bezel_bench.server.http_probe`).
"""

import io
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httptools

from bezel_bench.result.no_response import NotHttpError

if TYPE_CHECKING:
    import socket

_PIECE: Final = 65_536
_NOT_IN_PATH: Final = re.compile(r"[^!-~]")
_FIRST_FINAL: Final = 200


class NotWholeError(Exception):
    """A request cannot be sent, or its response began and did not end, as HTTP says."""


class WholeResponse(NamedTuple):
    """A response; `location` is where it redirects to, "" for nowhere."""

    status: int
    body: bytes
    location: str


def request_bytes(method: str, path: str, host: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """Return the bytes of a request, with the headers that each one has.

    Raises:
        NotWholeError: The path, or a header, has characters that it cannot have.
    """
    if character := _NOT_IN_PATH.search(path):
        raise NotWholeError(f"URL can't contain control characters. {path!r} (found at least {character[0]!r})")
    standard = {"Host": host, "Accept-Encoding": "identity"} | (
        {} if body is None else {"Content-Length": str(len(body))}
    )
    names = {name.lower() for name in headers}
    lines = [f"{name}: {value}" for name, value in standard.items() if name.lower() not in names]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if any(end in line for line in lines for end in "\r\n"):
        raise NotWholeError("a header of the request contains a line end")
    head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""])
    return head.encode("latin-1") + (body or b"")


def receive_response(connection: "socket.socket", method: str) -> WholeResponse:
    """Read the response to a request of this method that was sent.

    Raises:
        OSError: The connection broke, or nothing came in time.
        NotHttpError: What came is not HTTP/1.1.
        NotWholeError: It is, and ends early.
    """
    response, received = _Response(), bytearray()
    with suppress(httptools.HttpParserError):
        while not response.is_whole and (piece := connection.recv(_PIECE)):
            received += piece
            response.parser.feed_data(piece)
    if response.is_whole:
        return WholeResponse(response.status, b"".join(response.pieces), response.location)
    return _received_by_library(_BegunStream(bytes(received), connection), method)


class _Response:
    """Receiver of the parser's notifications; whole once a final response is complete."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.status, self.location, self.is_whole = 0, "", False
        self.pieces: list[bytes] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the first header that says where the response redirects to."""
        if name.lower() == b"location" and not self.location:
            self.location = value.decode("latin-1")

    def on_body(self, piece: bytes) -> None:
        """Keep a piece of the body; what follows a whole response is not of it."""
        if not self.is_whole:
            self.pieces.append(piece)

    def on_message_complete(self) -> None:
        """Note that the response is whole, if it is no interim one."""
        if not self.is_whole and self.parser.get_status_code() >= _FIRST_FINAL:
            self.status, self.is_whole = self.parser.get_status_code(), True


class _BegunStream(io.RawIOBase):
    """Bytes of a connection from its begin, of which some were read before."""

    def __init__(self, begin: bytes, connection: "socket.socket") -> None:
        self._begin, self._connection = begin, connection

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, room: Any) -> int:
        """Read into a buffer; return the number of bytes, 0 at the end."""
        if not self._begin:
            return self._connection.recv_into(room)
        piece, self._begin = self._begin[: len(room)], self._begin[len(room) :]
        room[: len(piece)] = piece
        return len(piece)

    def makefile(self, *_: object) -> io.BufferedReader:
        """Return what the standard library's client reads from a socket."""
        return io.BufferedReader(self)


def _received_by_library(stream: _BegunStream, method: str) -> WholeResponse:
    import http.client  # late: few responses need it

    try:
        with http.client.HTTPResponse(stream, method=method) as response:  # type: ignore[arg-type]
            response.begin()
            return WholeResponse(response.status, response.read(), response.headers.get("Location") or "")
    except http.client.RemoteDisconnected:
        raise NotHttpError("no HTTP", b"") from None
    except (http.client.BadStatusLine, http.client.UnknownProtocol) as error:
        raise NotHttpError("no HTTP", str(error).encode("latin-1", "replace")) from None
    except http.client.HTTPException as error:
        raise NotWholeError(str(error) or type(error).__name__) from None
