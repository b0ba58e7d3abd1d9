"""Refusal of HTTP/2 with prior knowledge, in HTTP/2 itself, so that a client ends at once instead of trying again.

A gRPC call ends with the status UNIMPLEMENTED, which no client repeats. Any other request ends with HTTP_1_1_REQUIRED,
upon which clients that can fall back to HTTP/1.1. Knows no more of HTTP/2 than that takes (RFC 9113, RFC 7541; "gRPC
over HTTP2", trailers only): frames are parsed, header blocks are only searched for the content type of gRPC.
"""

from collections.abc import Callable
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client sends first."""
_TEXT = "localcloud serves HTTP/1.1 only, neither HTTP/2 nor gRPC: use the client's REST transport."
_HEAD = 9  # bytes of a frame before its content
_LARGEST = 16_384  # bytes of a frame's content, the initial SETTINGS_MAX_FRAME_SIZE
_HEADERS, _RESET, _SETTINGS, _PING, _GO_AWAY, _CONTINUATION = 1, 3, 4, 6, 7, 9
_ACK, _END_STREAM, _END_HEADERS = 0x1, 0x1, 0x4
_NO_ERROR, _FRAME_SIZE_ERROR, _HTTP_1_1_REQUIRED = 0x0, 0x6, 0xD
_MOST_STREAMS = 100  # refused on one connection before it ends
# "application/grpc" as it may stand in a header block: as text, or in HPACK's Huffman code (RFC 7541, appendix B): 88
# bits, which end with a byte, whatever follows.
_MARKS = (b"application/grpc", bytes.fromhex("1d75d0620d263d4c4d6564"))


class Http2Refusal:
    """One connection whose client speaks HTTP/2.

    Args:
        write: Sends bytes.
        close: Closes the connection when what was written has been sent.
    """

    def __init__(self, write: Callable[[bytes], object], close: Callable[[], object]) -> None:
        self._write, self._close = write, close
        self._data = b""
        self._block = b""
        self._refused = 0
        self._grpc = False
        self._ended = False
        write(_frame(_SETTINGS, 0, 0))

    def receive(self, data: bytes) -> None:
        """Answer the frames in the data behind the preface; an incomplete one waits for its rest."""
        self._data += data
        while not self._ended and len(self._data) >= _HEAD:
            size = int.from_bytes(self._data[:3])
            if size > _LARGEST:
                self._end(_FRAME_SIZE_ERROR)
                return
            if len(self._data) < _HEAD + size:
                return
            kind, flags = self._data[3], self._data[4]
            stream = int.from_bytes(self._data[5:_HEAD]) & 0x7FFF_FFFF
            content, self._data = self._data[_HEAD : _HEAD + size], self._data[_HEAD + size :]
            self._answer(kind, flags, stream, content)

    def _answer(self, kind: int, flags: int, stream: int, content: bytes) -> None:
        if kind in {_SETTINGS, _PING} and not flags & _ACK:
            self._write(_frame(kind, _ACK, 0, content if kind == _PING else b""))
        elif kind in {_HEADERS, _CONTINUATION}:
            self._block = (self._block + content)[-_LARGEST:]
            if flags & _END_HEADERS:
                # Later calls of a connection may name their content type by its place in HPACK's table.
                self._grpc = self._grpc or any(mark in self._block for mark in _MARKS)
                self._block = b""
                self._refuse(stream)
        elif kind == _GO_AWAY:
            self._end(_NO_ERROR)

    def _refuse(self, stream: int) -> None:
        self._refused += 1
        if not self._grpc:
            self._write(_frame(_RESET, 0, stream, _HTTP_1_1_REQUIRED.to_bytes(4)))
            self._end(_HTTP_1_1_REQUIRED, stream)
            return
        self._write(_frame(_HEADERS, _END_STREAM | _END_HEADERS, stream, _UNIMPLEMENTED))
        self._write(_frame(_RESET, 0, stream, _NO_ERROR.to_bytes(4)))  # the rest of the request need not be sent
        if self._refused == _MOST_STREAMS:
            self._end(_NO_ERROR, stream)

    def _end(self, error: int, last: int = 0) -> None:
        self._ended = True
        self._write(_frame(_GO_AWAY, 0, 0, last.to_bytes(4) + error.to_bytes(4) + _TEXT.encode()))
        self._close()


def _frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    return len(content).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + content


def _field(name: bytes, value: bytes) -> bytes:
    """A header field as a literal without indexing; both texts are shorter than 127 bytes."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


# A status of 200 with a status of gRPC in the same header block is a whole response, without a message.
_UNIMPLEMENTED: Final = b"\x88" + b"".join(
    _field(name, value)
    for name, value in (
        (b"content-type", b"application/grpc"),
        (b"grpc-status", b"12"),
        (b"grpc-message", _TEXT.encode()),
    )
)
