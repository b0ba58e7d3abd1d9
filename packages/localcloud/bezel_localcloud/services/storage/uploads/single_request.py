"""Uploads of objects in one request: the bytes alone (media), or with metadata (multipart)."""

import asyncio
import re
from collections.abc import AsyncIterator
from email.message import Message

from starlette.responses import Response

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.http.messages import checked_message, json_object
from bezel_localcloud.http.multipart import head_and_content, parts_of
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import BUCKET, OF_OBJECTS, RESUMABLE, UPLOAD, api, bucket_of
from bezel_localcloud.services.storage.encryption.customer_keys import key_of, new_lock
from bezel_localcloud.services.storage.objects.generations import Placed
from bezel_localcloud.services.storage.objects.metadata import object_json
from bezel_localcloud.services.storage.uploads import header_commands
from bezel_localcloud.services.storage.uploads.sessions import open_session, resume, session_id
from bezel_localcloud.services.storage.uploads.writes import announced_sums, check_permitted, place_object

_MULTIPART = 64 << 20  # bytes; Google's clients use another kind of upload for objects of more than 16 MiB
_METADATA = 1 << 20
_PIECE = 1 << 20
_USED = f"name contentEncoding kmsKeyName {OF_OBJECTS}"


@api.route("POST", UPLOAD, query=_USED, reads_body=True)
@api.route("POST", RESUMABLE, query=_USED, reads_body=True)
async def upload(call: Call) -> Json | Response:
    """Upload an object, or with uploadType=resumable open a session for one; with the address of one, resume it."""
    if session_id(call):
        return await (header_commands.obey(call) if header_commands.commands(call) else resume(call))
    bucket, kind = bucket_of(call), header_commands.upload_type(call)
    content: AsyncIterator[bytes] = call.request.stream()
    lock = new_lock(key_of(call.request.headers))
    metadata: Json = {"name": call.query("name")}
    if encoding := call.query("contentEncoding"):
        metadata["contentEncoding"] = encoding
    if key := call.query("kmsKeyName"):
        metadata["kmsKeyName"] = key
    if kind == "media":
        metadata["contentType"] = call.request.headers.get("content-type")
    elif kind == "multipart":
        sent, data = _parts(await whole(call, _MULTIPART), call.request.headers.get("content-type", ""))
        metadata, content = metadata | sent, in_pieces(data)
    elif kind == "resumable":
        metadata["contentType"] = header_commands.content_type(call)
        metadata |= _checked_metadata(json_object(await whole(call, _METADATA), null_is_empty=True))
        return header_commands.opening_response(call, open_session(call, bucket, metadata, lock))
    else:
        raise invalid(f"Invalid upload type: {kind!r}; use media, multipart or resumable.")
    name = str(metadata.get("name") or "")
    check_permitted(call, bucket, name)  # before any byte is written to the disk
    received = await call.cloud.objects.receive(content, lock.cipher if lock else None)
    placed = Placed(received, metadata, lock=lock.fields(received) if lock else None)
    sums = announced_sums(call.request.headers, metadata)
    return object_json(call, place_object(call, bucket, name, placed, call.arguments, sums=sums))


@api.route("PUT", "/upload/storage/v1/", reads_body=True)
def refuse_batch(call: Call) -> Json:
    """Refuse uploads of several objects in one request, which only old gems for REST send."""
    header_commands.upload_type(call)
    raise ApiError("NOT_FOUND", "Method not found: PUT /upload/storage/v1/")


@api.route("POST", BUCKET + "/o", query=_USED, reads_body=True)
def refuse_without_content(call: Call) -> Json:
    """Refuse an insert at the path of metadata, as Google does: an object comes with its content, below /upload.

    Source: Cloud Storage's page on JSON error codes (wrongUrlForUpload), and its page on objects.insert ("Metadata-only
    requests are not allowed").
    """
    bucket_of(call)
    path = call.request.url.path
    text = f"storage.objects.insert must be invoked as an upload rather than a metadata: use /upload{path}."
    raise ApiError("INVALID_ARGUMENT", text, reason="wrongUrlForUpload")


async def whole(call: Call, max_bytes: int) -> bytes:
    """Read the whole body into memory.

    Raises:
        ApiError: 413, it is longer than `max_bytes`.
    """
    pieces, size = [], 0
    async for piece in call.request.stream():
        pieces.append(piece)
        size += len(piece)
        if size > max_bytes:
            text = f"Request payload size exceeds the limit: {max_bytes} bytes."
            raise ApiError("INVALID_ARGUMENT", text, status=413)
    return b"".join(pieces)


def _parts(body: bytes, content_type: str) -> tuple[Json, bytes]:
    header = Message()
    header["content-type"] = content_type
    # gcloud and gsutil put the boundary in single quotes, which are no quotes in a header's parameter.
    boundary = re.sub("^'(.*)'$", r"\1", str(header.get_param("boundary")))
    pieces = parts_of(body, boundary, 2)
    if header.get_content_type() != "multipart/related" or len(pieces) != 2:
        raise invalid("A multipart upload has a multipart/related body of two parts: metadata and content.")
    _, first = _split(pieces[0])
    second_head, second = _split(pieces[1])
    metadata = _checked_metadata(json_object(first, null_is_empty=True))
    content_line = re.search(r"(?im)^content-type:(.*)", second_head)
    metadata.setdefault("contentType", content_line.group(1).strip() if content_line else "")
    return metadata, second


def _split(piece: bytes) -> tuple[str, bytes]:
    if piece.startswith((b"\r\n", b"\n")):  # a part without headers
        return "", piece.split(b"\n", 1)[1]
    head, content = head_and_content(piece)
    return head.decode("latin-1"), content


def _checked_metadata(metadata: Json) -> Json:
    """Metadata of an object without nulls, checked for unknown fields."""
    message = checked_message(metadata, "storage.Object", "", keep_null=True)
    return {key: value for key, value in message.items() if value is not None}


async def in_pieces(content: bytes) -> AsyncIterator[bytes]:
    """A content in memory piece by piece, with a turn for other requests between: each is hashed and written."""
    for begin in range(0, len(content), _PIECE):
        yield content[begin : begin + _PIECE]
        await asyncio.sleep(0)
