"""The README's pictures: a page becomes a PNG that holds the same picture in fewer bytes."""

from __future__ import annotations

import struct
import zlib

from tools.docs.pictures import COMMENT, comment_page, recompress


def chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png(data: bytes, *more: bytes) -> bytes:
    """One line of grey pixels, its data in two chunks."""
    header = struct.pack(">IIBBBBB", len(data) - 1, 1, 8, 0, 0, 0, 0)
    whole = zlib.compress(data, 0)
    parts = [chunk(b"IDAT", whole[:10]), chunk(b"IDAT", whole[10:])]
    return b"\x89PNG\r\n\x1a\n" + b"".join([chunk(b"IHDR", header), *more, *parts, chunk(b"IEND", b"")])


def data_of(picture: bytes) -> bytes:
    start = picture.index(b"IDAT")
    (length,) = struct.unpack(">I", picture[start - 4 : start])
    return zlib.decompress(picture[start + 4 : start + 4 + length])


def test_packed_picture_is_the_same_in_fewer_bytes() -> None:
    data = b"\0" + b"\x7f" * 4000
    before = png(data, chunk(b"tEXt", b"Software\0anything"))
    after = recompress(before)
    assert data_of(after) == data
    assert len(after) < len(before) / 10
    assert b"tEXt" not in after


def test_other_data_give_another_picture() -> None:
    assert recompress(png(b"\0" + b"\x7f" * 40)) != recompress(png(b"\0" + b"\x7e" * 40))


def test_comment_page_shows_the_comment_as_a_forge_does() -> None:
    page = comment_page(COMMENT.read_text(encoding="utf-8"))
    assert "<strong>1.05 → 2.09 USD/h (+1.04)</strong>" in page
    assert "<summary>All changes and messages</summary>" in page
    assert "**" not in page
