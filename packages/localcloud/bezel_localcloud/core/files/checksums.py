"""Checksums of contents: MD5 and CRC32C, computed while bytes arrive, and combined where contents are joined."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import google_crc32c

from bezel_localcloud.core.json_types import b64

_POLYNOMIAL = 0x82F63B78
_BITS = 32
_PIECE = 1 << 20  # bytes
Cipher = Callable[[int], Callable[[bytes], bytes]]
"""Returns for an offset the function that encrypts, or decrypts, the bytes of a content from there on."""
Matrix = tuple[int, ...]  # over GF(2): one column of bits for each bit of a checksum


@dataclass(frozen=True)
class Upload:
    """Received bytes that are not yet an object's content.

    Attributes:
        md5: In base64; "" for contents that were joined from others, as Google computes none of them.
        crc32c: In base64, of its four bytes in big-endian order.
    """

    path: Path
    size: int
    md5: str
    crc32c: str


class Hasher:
    """Checksums of a content so far.

    Attributes:
        size: Bytes so far.
    """

    def __init__(self) -> None:
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._crc = 0
        self.size = 0

    def add(self, data: bytes) -> None:
        """Append bytes."""
        self._md5.update(data)
        self._crc = google_crc32c.extend(self._crc, data)
        self.size += len(data)

    def upload(self, path: Path) -> Upload:
        """The bytes so far, which a file holds."""
        return Upload(path, self.size, b64(self._md5.digest()), crc_text(self._crc))


def hash_file(path: Path, cipher: Cipher | None = None) -> Hasher:
    """Read a file; half a gigabyte a second, so a large one belongs in a thread."""
    hasher = Hasher()
    change = cipher(0) if cipher else bytes
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            hasher.add(change(piece))
    return hasher


def measure_file(path: Path) -> Upload:
    """Size and checksums of a file."""
    return hash_file(path).upload(path)


def crc32c(data: bytes) -> int:
    """CRC32C of some bytes."""
    return int(google_crc32c.value(data))


def crc_text(value: int) -> str:
    """A CRC32C as Cloud Storage shows it."""
    return b64(value.to_bytes(4, "big"))


def join_crc32c(first: int, second: int, size: int) -> int:
    """CRC32C of two contents one after the other, from that of each and the size of the second.

    Appending a zero bit to a content is a linear map of its checksum, so appending `size` bytes takes one product for
    each bit of `size` (the method of zlib's crc32_combine).
    """
    power, value = 3, first  # 2**3 zero bits are one zero byte
    while size:
        if size & 1:
            value = _times(_zeros(power), value)
        size >>= 1
        power += 1
    return value ^ second


def _times(matrix: Matrix, vector: int) -> int:
    total, column = 0, 0
    while vector:
        if vector & 1:
            total ^= matrix[column]
        vector >>= 1
        column += 1
    return total


@cache
def _zeros(power: int) -> Matrix:
    """The map of a checksum when 2**power zero bits are appended."""
    if power == 0:
        return (_POLYNOMIAL, *(1 << bit for bit in range(_BITS - 1)))
    half = _zeros(power - 1)
    return tuple(_times(half, column) for column in half)
