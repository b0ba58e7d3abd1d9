"""Bodies of requests as they were before their client compressed them, with `Content-Encoding: gzip`.

Google's front end unpacks them for every API; clients of Java and .NET compress by default. Owns the unpacking and its
bounds. Leaves out Cloud Storage's XML API, where the header describes the object.
"""

import zlib

from starlette.requests import Request
from starlette.types import Message, Receive

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.http.api_request import ApiRequest

LARGEST_MESSAGE, LARGEST_OBJECT = 10 << 20, 5 << 40
"""Google's limits of a request's body and of an object, in bytes."""
_PIECE = 256 << 10  # bytes that are unpacked at once
_GZIP = 16 + zlib.MAX_WBITS
_NAMES = {"gzip", "x-gzip"}
_DESCRIBING = {b"content-encoding", b"content-length"}


def unpack_body(request: Request, limit: int) -> Request:
    """A request with its body as it was before it was compressed; the same one where it is not compressed.

    Args:
        request: A request whose body was not read yet.
        limit: Bytes of the unpacked body at most; to read beyond it raises ApiError with status 413.

    Raises:
        ApiError: INVALID_ARGUMENT for another encoding; on reading, for a body that is not in the encoding.
    """
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in _NAMES:
        if encoding in {"", "identity"} or limit == LARGEST_OBJECT:  # of an object's bytes it is a description
            return request
        text = f"Content-Encoding {encoding[:100]!r} is not supported: use gzip, or leave it out."
        raise invalid(text, ("Content-Encoding", encoding[:100]))
    headers = [(name, value) for name, value in request.scope["headers"] if name not in _DESCRIBING]
    return ApiRequest({**request.scope, "headers": headers}, _Unpacking(request.receive, limit))


class _Unpacking:
    """The receive of a request, which yields the body in pieces of a bounded size."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._size = 0
        self._inflate = zlib.decompressobj(_GZIP)
        self._packed = b""
        self._begun = self._ended = self._full = False

    async def __call__(self) -> Message:
        while not (self._packed or self._full or self._ended):
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._packed = message.get("body", b"")
            self._ended = not message.get("more_body", False)
        piece = self._piece() if self._packed or self._full else b""
        # At a piece's full size the decompressor may hold more, though it has taken all input.
        self._full = len(piece) == _PIECE and not self._inflate.eof
        more = bool(self._packed) or self._full or not self._ended
        if not more and self._begun and not self._inflate.eof:
            raise _broken_body("it ends too early")
        self._size += len(piece)
        if self._size > self._limit:
            text = f"Request payload size exceeds the limit: {self._limit} bytes when unpacked."
            raise ApiError("INVALID_ARGUMENT", text, status=413)
        return {"type": "http.request", "body": piece, "more_body": more}

    def _piece(self) -> bytes:
        if self._inflate.eof:  # a further member: RFC 1952, section 2.2
            self._inflate = zlib.decompressobj(_GZIP)
        self._begun = True
        try:
            piece = self._inflate.decompress(self._packed, _PIECE)
        except zlib.error:
            raise _broken_body("its bytes are not in this format") from None
        self._packed = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
        return piece


def _broken_body(why: str) -> ApiError:
    return invalid(f"The body cannot be unpacked by its Content-Encoding, gzip: {why}.", ("Content-Encoding", "gzip"))
