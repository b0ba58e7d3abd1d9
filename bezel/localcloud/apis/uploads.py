"""Cloud Storage's three ways in: media, multipart, and resumable (one PUT, or chunks with Content-Range)."""

from __future__ import annotations

import json
import re
import uuid
from email.message import Message
from typing import TYPE_CHECKING

from starlette.responses import Response

from bezel.localcloud.api import Api
from bezel.localcloud.apis.storage import POLICY, bucket_of, object_shown
from bezel.localcloud.errors import ApiError, invalid
from bezel.localcloud.objects import Upload, measured

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bezel.localcloud.api import Call
    from bezel.localcloud.shapes import Json

api = Api("storage.googleapis.com", "Cloud Storage API", legacy=True)
_PATH = "/upload/storage/v1/b/{bucket:id}/o"


@api.route("POST", _PATH, needs="storage.objects.create", on=POLICY)
async def upload(call: Call) -> Json | Response:
    """Put an object, or with uploadType=resumable open a session for one."""
    bucket_of(call)
    kind = call.query("uploadType")
    if kind == "media":
        metadata = {"name": call.query("name"), "contentType": call.request.headers.get("content-type")}
        return _place(call, metadata, await call.cloud.objects.receive(call.request.stream()))
    if kind == "multipart":
        metadata, content = _parts(await call.request.body(), call.request.headers.get("content-type", ""))
        metadata.setdefault("name", call.query("name"))
        return _place(call, metadata, await call.cloud.objects.receive(_once(content)))
    if kind == "resumable":
        metadata = await call.json()
        metadata.setdefault("name", call.query("name"))
        metadata.setdefault("contentType", call.request.headers.get("x-upload-content-type", ""))
        return _open_session(call, metadata)
    raise invalid(f"Invalid upload type: {kind!r}; use media, multipart or resumable.")


@api.route("PUT", _PATH, needs="storage.objects.create", on=POLICY)
async def resume(call: Call) -> Json | Response:
    """Take the content of a session, whole or the next chunk of it."""
    session = call.cloud.store.get("upload", call.query("upload_id"))
    if session is None or session["bucket"] != call.param("bucket"):
        raise ApiError("NOT_FOUND", "No such upload session.")
    path = call.cloud.objects.new_upload().with_name(call.query("upload_id"))
    size = path.stat().st_size if path.exists() else 0
    begin, total = _range(call.request.headers.get("content-range"))
    if begin is not None and begin != size:
        return _incomplete(size)
    if begin is not None or call.request.headers.get("content-range") is None:
        with path.open("ab") as file:
            async for chunk in call.request.stream():
                file.write(chunk)
        size = path.stat().st_size
    if total is not None and size < total:
        return _incomplete(size)
    if call.request.headers.get("content-range", "").endswith("/*"):
        return _incomplete(size)
    answer = _place(call, session["metadata"], measured(path))
    call.cloud.store.delete("upload", call.query("upload_id"))
    return answer


def _place(call: Call, metadata: Json, received: Upload) -> Json:
    bucket, name = call.param("bucket"), str(metadata.get("name") or "")
    try:
        with call.cloud.store.transaction():
            _check_target(call, f"{bucket}/{name}", name)
            return object_shown(call, call.cloud.objects.place(bucket, name, received, metadata, call.cloud.pace.now()))
    except ApiError:
        received.path.unlink(missing_ok=True)
        raise


def _check_target(call: Call, key: str, name: str) -> None:
    if not name:
        raise invalid("Required parameter: name")
    condition, current = call.query("ifGenerationMatch"), call.cloud.store.get("object", key) or {}
    if condition and condition != current.get("generation", "0"):
        text = "At least one of the pre-conditions you specified did not hold."
        raise ApiError("FAILED_PRECONDITION", text, status=412)


def _open_session(call: Call, metadata: Json) -> Response:
    identifier = uuid.uuid4().hex
    call.cloud.store.put("upload", identifier, {"bucket": call.param("bucket"), "metadata": metadata})
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
    try:
        metadata = json.loads(first)
    except ValueError:
        metadata = None
    if not isinstance(metadata, dict):
        raise invalid("The first part of a multipart upload is not a JSON object.")
    content_line = re.search(r"(?im)^content-type:\s*(.+?)\s*$", second_head)
    metadata.setdefault("contentType", content_line.group(1) if content_line else "")
    return metadata, second


def _split(piece: bytes) -> tuple[str, bytes]:
    head, _, content = piece.partition(b"\r\n\r\n")
    return head.decode("latin-1"), content.removesuffix(b"\r\n")


def _range(header: str | None) -> tuple[int | None, int | None]:
    match = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", header or "")
    if match is None:
        return None, None
    return (int(match[1]) if match[1] else None), (int(match[2]) if match[2] != "*" else None)


def _incomplete(size: int) -> Response:
    return Response(status_code=308, headers={"Range": f"bytes=0-{size - 1}"} if size else None)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
