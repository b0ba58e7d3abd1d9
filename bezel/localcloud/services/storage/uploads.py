"""Uploads of Cloud Storage: media, multipart, and resumable (one PUT, or chunks with Content-Range)."""

import re
import sqlite3
import uuid
from collections.abc import AsyncIterator
from email.message import Message

from starlette.responses import Response

from bezel.localcloud.core.errors import ApiError, invalid
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.core.objects import Upload, measured
from bezel.localcloud.http.messages import checked_message, json_object
from bezel.localcloud.routing.router import Api, Call
from bezel.localcloud.services.storage.api import OF_OBJECTS, POLICY, bucket_of, check_preconditions, object_json

api = Api("storage.googleapis.com", "Cloud Storage API", legacy=True)
_MULTIPART = 64 << 20  # bytes; Google's clients use another kind of upload for objects of more than 16 MiB
_METADATA = 1 << 20
_PATH = "/upload/storage/v1/b/{bucket:id}/o"


@api.route("POST", _PATH, query=f"name contentEncoding {OF_OBJECTS}", reads_body=True)
async def upload(call: Call) -> Json | Response:
    """Upload an object, or with uploadType=resumable open a session for one."""
    bucket_of(call)
    kind = call.query("uploadType")
    content: AsyncIterator[bytes] = call.request.stream()
    if kind == "media":
        metadata: Json = {"name": call.query("name"), "contentType": call.request.headers.get("content-type")}
        if metadata["name"]:
            check_permitted(call, metadata["name"])  # before any byte is written to the disk
    elif kind == "multipart":
        metadata, data = _parts(await _whole(call, _MULTIPART), call.request.headers.get("content-type", ""))
        metadata, content = {"name": call.query("name")} | metadata, _once(data)
    elif kind == "resumable":
        default = {"name": call.query("name"), "contentType": call.request.headers.get("x-upload-content-type", "")}
        return _open_session(call, default | _checked(json_object(await _whole(call, _METADATA))))
    else:
        raise invalid(f"Invalid upload type: {kind!r}; use media, multipart or resumable.")
    received = await call.cloud.objects.receive(content)
    return object_json(call, place_object(call, metadata, call.arguments, received))


@api.route("PUT", _PATH)
async def resume(call: Call) -> Json | Response:
    """Receive the content of a session, whole or the next chunk; permission was checked when it was opened."""
    session = call.stored("upload", call.query("upload_id"), "No such upload session.")
    if session["bucket"] != call.param("bucket"):
        raise ApiError("NOT_FOUND", "No such upload session.")
    path = call.cloud.objects.new_upload().with_name(call.query("upload_id"))
    size = path.stat().st_size if path.exists() else 0
    header = call.request.headers.get("content-range")
    begin, total = _range(header, size)
    if begin is not None and begin != size:
        return _incomplete(size)
    if begin is not None or header is None:
        with path.open("ab") as file:
            async for chunk in call.request.stream():
                file.write(chunk)
        size = path.stat().st_size
    if (total is not None and size < total) or (header or "").endswith("/*"):
        return _incomplete(size)
    row = place_object(call, session["metadata"], session.get("conditions", {}), measured(path))
    call.cloud.store.delete("upload", call.query("upload_id"))
    return object_json(call, row)


def place_object(call: Call, metadata: Json, conditions: dict[str, str], received: Upload) -> Json:
    """Make an upload an object of the path's bucket, under the caller's conditions, and return its row.

    Raises:
        ApiError: The caller may not write it, or a condition does not hold.
    """
    bucket, name = call.param("bucket"), str(metadata.get("name") or "")
    metadata = {"contentEncoding": call.query("contentEncoding")} | metadata
    try:
        with call.cloud.store.transaction():
            if not name:
                raise invalid("Required parameter: name", ("name", "is required"))
            check_permitted(call, name)
            check_preconditions(conditions, call.cloud.store.get("object", f"{bucket}/{name}"))
            row = call.cloud.objects.place(bucket, name, received, metadata, call.cloud.pace.now())
    except (ApiError, sqlite3.Error, OSError):
        received.path.unlink(missing_ok=True)
        raise
    call.cloud.objects.settle(bucket, name)
    return row


def check_permitted(call: Call, name: str) -> None:
    """Check the caller's roles on the object: to overwrite one takes the permission to delete it."""
    resource = f"{call.name(POLICY)}/objects/{name}"
    call.require("storage.objects.create", resource)
    if call.cloud.store.get("object", f"{call.param('bucket')}/{name}") is not None:
        call.require("storage.objects.delete", resource)


async def _whole(call: Call, max_bytes: int) -> bytes:
    """Read the whole body into memory.

    Raises:
        ApiError: 413, it is longer than `max_bytes`.
    """
    body = b""
    async for chunk in call.request.stream():
        body += chunk
        if len(body) > max_bytes:
            text = f"Request payload size exceeds the limit: {max_bytes} bytes."
            raise ApiError("INVALID_ARGUMENT", text, status=413)
    return body


def _open_session(call: Call, metadata: Json) -> Response:
    check_permitted(call, str(metadata.get("name") or ""))
    identifier, now = uuid.uuid4().hex, call.cloud.pace.now()
    conditions = {name: value for name, value in call.arguments.items() if name in OF_OBJECTS.split()}
    session = {"bucket": call.param("bucket"), "metadata": metadata, "conditions": conditions, "opened": now}
    call.cloud.objects.forget_sessions(now)
    call.cloud.store.put("upload", identifier, session)
    location = f"{call.cloud.base}{call.request.url.path}?uploadType=resumable&upload_id={identifier}"
    return Response(status_code=200, headers={"Location": location, "X-GUploader-UploadID": identifier})


def _parts(body: bytes, content_type: str) -> tuple[Json, bytes]:
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_param("boundary")
    pieces = body.split(b"--" + str(boundary).encode())
    if header.get_content_type() != "multipart/related" or len(pieces) != 4:
        raise invalid("A multipart upload has a multipart/related body of two parts: metadata and content.")
    _, first = _split(pieces[1])
    second_head, second = _split(pieces[2])
    metadata = _checked(json_object(first))
    content_line = re.search(r"(?im)^content-type:\s*(.+?)\s*$", second_head)
    metadata.setdefault("contentType", content_line.group(1) if content_line else "")
    return metadata, second


def _split(piece: bytes) -> tuple[str, bytes]:
    head, _, content = piece.partition(b"\r\n\r\n")
    return head.decode("latin-1"), content.removesuffix(b"\r\n")


def _checked(metadata: Json) -> Json:
    """Metadata of an object without nulls, checked for unknown fields."""
    found = checked_message(metadata, "storage.Object", "", keep_null=True)
    return {key: value for key, value in found.items() if value is not None}


def _range(header: str | None, received: int) -> tuple[int | None, int | None]:
    """Return (first byte, total size) of a Content-Range; None for a part that it leaves open.

    Raises:
        ApiError: INVALID_ARGUMENT for a malformed range, or one beyond the total size.
    """
    if header is None:
        return None, None
    match = re.fullmatch(r"bytes (?:([0-9]{1,15})-([0-9]{1,15})|\*)/([0-9]{1,15}|\*)", header)
    if match is None:
        raise invalid(f"Failed to parse Content-Range header {header!r}.", ("Content-Range", header))
    total, needed = None if match[3] == "*" else int(match[3]), max(received, int(match[2] or -1) + 1)
    if total is not None and total < needed:
        text = f"Content-Range {header!r} ends before byte {needed}, which it must hold."
        raise invalid(text, ("Content-Range", header))
    return (int(match[1]) if match[1] else None), total


def _incomplete(size: int) -> Response:
    return Response(status_code=308, headers={"Range": f"bytes=0-{size - 1}"} if size else None)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
