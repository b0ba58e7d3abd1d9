"""Downloads: an object's bytes with the headers that describe them, ranges, and decompression of gzip."""

import asyncio
import os
import re
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from email.utils import formatdate
from typing import BinaryIO

from starlette.responses import Response, StreamingResponse

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.files.checksums import Cipher
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.objects.retention import seconds

_PIECE = 1 << 20  # bytes
_AT_ONCE = 1 << 16  # bytes that are read without a thread and a stream, which take longer than the read
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_DESCRIBED = {
    "content-type": "contentType",
    "cache-control": "cacheControl",
    "content-disposition": "contentDisposition",
    "content-language": "contentLanguage",
    "x-goog-generation": "generation",
    "x-goog-metageneration": "metageneration",
    "x-goog-storage-class": "storageClass",
    "x-goog-custom-time": "customTime",
    "x-goog-component-count": "componentCount",
    "x-goog-stored-content-length": "size",
}
_DEFAULTS = {"cacheControl": "no-cache, no-store, max-age=0, must-revalidate"}


def describing_headers(row: Json, etag: str, *, custom: bool = False) -> dict[str, str]:
    """Headers that describe an object.

    Args:
        row: The object.
        etag: Its etag in the API of the request.
        custom: Whether custom metadata has headers of its own, as in the XML API.
    """
    fields = _DEFAULTS | row
    headers = {name: str(fields[field]) for name, field in _DESCRIBED.items() if fields.get(field)}
    hashes = [f"{name}={row[field]}" for name, field in (("crc32c", "crc32c"), ("md5", "md5Hash")) if row.get(field)]
    headers |= {"x-goog-hash": ",".join(hashes)} if hashes else {}
    if row.get("kmsKeyName"):
        headers["x-goog-encryption-kms-key-name"] = row["kmsKeyName"]
    if encryption := row.get("customerEncryption"):
        headers["x-goog-encryption-algorithm"] = encryption["encryptionAlgorithm"]
        headers["x-goog-encryption-key-sha256"] = encryption["keySha256"]
    headers |= {"etag": etag, "accept-ranges": "bytes"}
    headers["x-goog-stored-content-encoding"] = row.get("contentEncoding") or "identity"
    headers["last-modified"] = formatdate(seconds(row["updated"]), usegmt=True)
    headers["vary"] = "Accept-Encoding"
    if custom:
        metadata = {key: value for key, value in (row.get("metadata") or {}).items() if _HEADER_NAME.fullmatch(key)}
        headers |= {f"x-goog-meta-{key.lower()}": value for key, value in metadata.items()}
    return headers


def download(call: Call, row: Json, headers: dict[str, str], cipher: Cipher | None = None) -> Response:
    """Respond with an object's bytes, or the requested part of them; a gzip content is decompressed if it must be.

    The file is opened here, so that the response is of one generation whatever becomes of the object.

    Args:
        call: The request.
        row: The object.
        headers: Headers that describe it.
        cipher: What its bytes are encrypted with.

    Raises:
        ApiError: 416, the range begins behind the end.
    """
    requested, size = call.request.headers, int(row["size"])
    headers |= _responses_own(call.request.query_params)
    if row.get("contentEncoding") == "gzip" and not _takes_gzip(requested, row):
        headers |= {"x-guploader-response-body-transformations": "gunzipped", "warning": "214 UploadServer gunzipped"}
        headers.pop("accept-ranges")
        return _response(call, row, 200, headers, lambda file: _decompress(file, cipher))
    if row.get("contentEncoding"):
        headers["content-encoding"] = row["contentEncoding"]
    begin, end = _range(requested.get("range", ""), size)
    part = (begin, end) != (0, size)
    headers["content-length"] = str(end - begin)
    if part:
        headers["content-range"] = f"bytes {begin}-{end - 1}/{size}"
    status = 206 if part else 200
    if end - begin <= _AT_ONCE and call.request.method != "HEAD":
        return _whole(call, row, status, headers, (begin, end), cipher)
    return _response(call, row, status, headers, lambda file: _read(file, begin, end, cipher))


def raw_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as they are sent: in UTF-8, a line break in a value as a blank."""
    return [(name.encode(), _CONTROL.sub(" ", value).encode()) for name, value in headers.items()]


def _response(
    call: Call, row: Json, status: int, headers: dict[str, str], read: Callable[[BinaryIO], AsyncIterator[bytes]]
) -> Response:
    response = Response(status_code=status)
    if call.request.method != "HEAD":
        response = StreamingResponse(read(_open(call, row)), status)
    response.raw_headers = raw_headers(headers)
    return response


def _whole(
    call: Call, row: Json, status: int, headers: dict[str, str], part: tuple[int, int], cipher: Cipher | None
) -> Response:
    begin, end = part
    with _open(call, row) as file:
        content = os.pread(file.fileno(), end - begin, begin)
    response = Response(cipher(begin)(content) if cipher else content, status)
    response.raw_headers = raw_headers(headers)
    return response


def _open(call: Call, row: Json) -> BinaryIO:
    return call.cloud.objects.content(row).open("rb")


def _responses_own(query: Mapping[str, str]) -> dict[str, str]:
    """Headers that the query of a signed URL replaces."""
    names = ("content-type", "content-disposition", "cache-control", "content-language", "content-encoding")
    return {name: query[f"response-{name}"] for name in names if query.get(f"response-{name}")}


def _takes_gzip(requested: Mapping[str, str], row: Json) -> bool:
    accepted = [part.strip() for part in requested.get("accept-encoding", "").lower().split(",")]
    takes = any(part.partition(";")[0] in {"gzip", "*"} and not re.search(r"q=0(\.0*)?$", part) for part in accepted)
    return takes or "no-transform" in (row.get("cacheControl") or "")


def _range(header: str, size: int) -> tuple[int, int]:
    """Return (first byte, end) of a range; a header that asks for several ranges, or is malformed, has no effect.

    Raises:
        ApiError: 416.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or not (match[1] or match[2]) or (match[1] and match[2] and int(match[1]) > int(match[2])):
        return 0, size
    if not match[1]:
        begin, end = max(0, size - int(match[2])), size
    else:
        begin, end = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
    if begin >= size:
        text = f"The requested range cannot be satisfied: the object has {size} bytes."
        raise ApiError("INVALID_ARGUMENT", text, status=416, reason="requestedRangeNotSatisfiable")
    return begin, end


async def _read(file: BinaryIO, begin: int, end: int, cipher: Cipher | None) -> AsyncIterator[bytes]:
    with file:
        position, change = begin, cipher(begin) if cipher else bytes
        while position < end:
            piece = await asyncio.to_thread(os.pread, file.fileno(), min(_PIECE, end - position), position)
            if not piece:
                return
            position += len(piece)
            yield change(piece)


async def _decompress(file: BinaryIO, cipher: Cipher | None) -> AsyncIterator[bytes]:
    """The bytes behind a gzip content; bytes that are none are sent as they are, as Google does."""
    inflate, size = zlib.decompressobj(wbits=31), os.fstat(file.fileno()).st_size
    async for piece in _read(file, 0, size, cipher):
        rest = piece
        try:
            while rest:  # a few bytes can become a thousand times as many
                yield inflate.decompress(rest, _PIECE)
                rest = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
                if inflate.eof:
                    inflate = zlib.decompressobj(wbits=31)
        except zlib.error:
            yield rest
