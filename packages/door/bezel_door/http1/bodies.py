"""Bodies of HTTP/1.1 messages, taken out of their framing as they arrive. Pure.

Strict where two programs could read a body in two ways: no extensions of chunks, no trailers, sizes without signs
and spaces.
"""

import re
from typing import Final, Protocol

from bezel_door.http1.heads import Framing

_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")
_LONGEST_SIZE_LINE: Final = 10


class BodyError(ValueError):
    """A body whose framing is broken."""


class BodyReader(Protocol):
    """A body in its framing.

    Attributes:
        is_complete: Whether its end has been read.
        surplus: Bytes after that end.
    """

    is_complete: bool
    surplus: bytes

    def take(self, data: bytes) -> list[bytes]:
        """The pieces of the body in further bytes.

        Raises:
            BodyError: The framing is broken.
        """

    def end(self) -> None:
        """Note that the connection has ended.

        Raises:
            BodyError: The body is not complete.
        """


def body_reader(framing: Framing) -> BodyReader:
    """A reader of a body with this framing."""
    if framing.is_chunked:
        return ChunkedReader()
    return LengthReader(framing.length) if framing.length is not None else EndReader()


class LengthReader:
    """A body of as many bytes as its head says."""

    def __init__(self, length: int) -> None:
        self._missing = length
        self.is_complete = length == 0
        self.surplus = b""

    def take(self, data: bytes) -> list[bytes]:
        """See `BodyReader`."""
        piece, rest = data[: self._missing], data[self._missing :]
        self._missing -= len(piece)
        self.is_complete = self._missing == 0
        self.surplus += rest
        return [piece] if piece else []

    def end(self) -> None:
        """See `BodyReader`."""
        if not self.is_complete:
            raise BodyError(f"{self._missing} bytes are missing")


class EndReader:
    """A body that ends with its connection."""

    def __init__(self) -> None:
        self.is_complete = False
        self.surplus = b""

    def take(self, data: bytes) -> list[bytes]:
        """See `BodyReader`."""
        return [data] if data else []

    def end(self) -> None:
        """See `BodyReader`."""
        self.is_complete = True


class ChunkedReader:
    """A body in chunks. Pieces of one call are those of its chunks that have arrived."""

    def __init__(self) -> None:
        self.is_complete = False
        self.surplus = b""
        self._rest = b""
        self._missing = 0  # bytes of the present chunk, with the two behind it

    def take(self, data: bytes) -> list[bytes]:
        """See `BodyReader`."""
        if self.is_complete:
            self.surplus += data
            return []
        data = self._rest + data if self._rest else data
        self._rest = b""
        pieces: list[bytes] = []
        place = 0
        while not self.is_complete:
            if self._missing:
                place = self._chunk(data, place, pieces)
                if self._missing:
                    return pieces
            end = data.find(b"\r\n", place)
            if end < 0:
                if len(data) - place > _LONGEST_SIZE_LINE or (b"\n" in data[place:]):
                    raise BodyError("a chunk has no size")
                self._rest = data[place:]
                return pieces
            size = _size(data[place:end])
            if size:
                place, self._missing = end + 2, size + 2
            elif len(data) < end + 4:
                self._rest = data[place:]
                return pieces
            elif data[end + 2 : end + 4] != b"\r\n":
                raise BodyError("it has trailers")
            else:
                self.is_complete, self.surplus = True, data[end + 4 :]
        return pieces

    def _chunk(self, data: bytes, place: int, pieces: list[bytes]) -> int:
        """Take what has arrived of the present chunk; the place behind it."""
        content = min(len(data) - place, self._missing - 2)
        if content > 0:
            pieces.append(data[place : place + content])
            self._missing -= content
            place += content
        if self._missing == 2 and len(data) >= place + 2:
            if data[place : place + 2] != b"\r\n":
                raise BodyError("a chunk is longer than its size")
            self._missing = 0
            return place + 2
        if self._missing <= 2:
            self._rest = data[place:]
        return place

    def end(self) -> None:
        """See `BodyReader`."""
        if not self.is_complete:
            raise BodyError("its last chunk is missing")


def _size(line: bytes) -> int:
    if not _SIZE.fullmatch(line):
        raise BodyError("the size of a chunk is not a plain number")
    return int(line, 16)
