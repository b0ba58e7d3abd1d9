"""Resumable uploads: a session whose address is the credential, and its content in one request or in chunks.

A chunk comes by PUT, or by POST as Google's Go client sends it. Sessions and their bytes survive a restart of the
daemon. Leaves out which requests open one (single_request.py, xml/), and forms of `Content-Range` (content_range.py).
"""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from weakref import WeakValueDictionary

from starlette.responses import Response

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.files.checksums import Cipher, Hasher, hash_file
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.storage.api import OF_OBJECTS, RESUMABLE, UPLOAD, api, bucket_of
from bezel_localcloud.services.storage.encryption.customer_keys import Lock, lock_of_session, session_fields
from bezel_localcloud.services.storage.objects.generations import Placed
from bezel_localcloud.services.storage.objects.metadata import object_json
from bezel_localcloud.services.storage.uploads.content_range import Part, content_range
from bezel_localcloud.services.storage.uploads.writes import announced_sums, check_permitted, place_object

_KIND = "upload"
_CANCELLED = 499  # Google's status of a session that its client ended
_HASHERS = 64  # sessions whose checksums are kept in memory; those of others are computed from their files

# Two requests to one session would mix their bytes: a client may send a chunk again while the first is on its way.
_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
_hashers: dict[str, Hasher] = {}


@api.route("PUT", UPLOAD)
@api.route("PUT", RESUMABLE)
async def resume(call: Call) -> Json | Response:
    """Receive the content of a session, whole or the next chunk; permission was checked when it was opened."""
    done = await receive_chunk(call)
    return done if isinstance(done, Response) else object_json(call, done)


@api.route("DELETE", UPLOAD)
@api.route("DELETE", RESUMABLE)
def cancel(call: Call) -> Response:
    """End a session."""
    _session(call)
    call.cloud.objects.forget_session(session_id(call))
    return Response(status_code=_CANCELLED)


def session_id(call: Call) -> str:
    """The id of the session that a request's address names, "" for none."""
    return call.request.query_params.get("upload_id", "")


def open_session(
    call: Call, bucket: Json, metadata: Json, lock: Lock | None, path: str = "", status: int = 200
) -> Response:
    """Open a session.

    Args:
        call: The request.
        bucket: Bucket of the object.
        metadata: Fields of the object, its name among them.
        lock: Lock of the object's bytes, None for none.
        path: Path of the session's address, that of the request by default.
        status: Status of the response.
    """
    name = str(metadata.get("name") or "")
    check_permitted(call, bucket, name)
    identifier, now = uuid.uuid4().hex, call.cloud.pace.now()
    session = {
        "bucket": bucket["name"],
        "metadata": metadata,
        "conditions": {key: value for key, value in call.arguments.items() if key in OF_OBJECTS.split()},
        "sums": announced_sums(call.request.headers, metadata),
        "opened": now,
        "caller": call.caller,
    } | session_fields(lock)
    call.cloud.objects.forget_sessions(now)
    call.cloud.store.put(_KIND, identifier, session)
    query = "" if path else "uploadType=resumable&"
    location = f"{call.base}{path or call.request.url.path}?{query}upload_id={identifier}"
    return Response(status_code=status, headers={"Location": location, "X-GUploader-UploadID": identifier})


async def receive_chunk(call: Call, part: Part | None = None) -> Json | Response:
    """Receive the next bytes of the session that the query names.

    Args:
        call: The request.
        part: What it brings; by default what its `Content-Range` says.

    Returns:
        The object's row when its content is whole, also if it is asked for again; else what is still missing.
    """
    identifier = session_id(call)
    async with _locks.setdefault(identifier, asyncio.Lock()):
        session = _session(call)
        if "done" in session:
            return dict(session["done"])
        lock = lock_of_session(session, call.request.headers)
        path, cipher = call.cloud.objects.upload_path(identifier), lock.cipher if lock else None
        size = path.stat().st_size if path.exists() else 0
        part = part or content_range(call.request.headers.get("content-range"), size)
        if part.begin is not None:
            if part.begin > size:
                return _incomplete(call, size)
            hasher = await _hasher(identifier, path, size, cipher)
            await call.cloud.objects.append(path, _after(call, size - part.begin), hasher, cipher)
            size = hasher.size
        if not part.last or size < (part.total or 0):
            return _incomplete(call, size)
        path.touch()
        upload = (await _hasher(identifier, path, size, cipher)).upload(path)
        _hashers.pop(identifier, None)
        placed = Placed(upload, session["metadata"], lock=lock.fields(upload) if lock else None)
        return _finish(call, session, placed)


def _finish(call: Call, session: Json, placed: Placed) -> Json:
    identifier, store, call.caller = session_id(call), call.cloud.store, session.get("caller", "")
    sums = session.get("sums", {}) | announced_sums(call.request.headers, {})

    def close(row: Json) -> None:  # with the object, in one step
        store.put(_KIND, identifier, session | {"done": row})

    try:
        bucket, name = bucket_of(call, session["bucket"]), str(session["metadata"]["name"])
        return place_object(call, bucket, name, placed, session.get("conditions", {}), sums=sums, then=close)
    except ApiError:
        call.cloud.objects.forget_session(identifier)
        raise


def _session(call: Call) -> Json:
    session = call.cloud.store.get(_KIND, session_id(call))
    if session is None or session["bucket"] != call.param("bucket") or "metadata" not in session:
        raise ApiError("NOT_FOUND", "No such upload session.")
    return session


async def _hasher(identifier: str, path: Path, size: int, cipher: Cipher | None) -> Hasher:
    """The checksums of the bytes so far."""
    hasher = _hashers.get(identifier) or Hasher()
    if hasher.size != size:
        hasher = await asyncio.to_thread(hash_file, path, cipher)
    if len(_hashers) >= _HASHERS and identifier not in _hashers:
        del _hashers[next(iter(_hashers))]
    _hashers[identifier] = hasher
    return hasher


async def _after(call: Call, skipped: int) -> AsyncIterator[bytes]:
    """The body of the request without the bytes at its beginning that are there already."""
    async for chunk in call.request.stream():
        if len(chunk) > skipped:
            yield chunk[skipped:]
        skipped = max(0, skipped - len(chunk))


def _incomplete(call: Call, size: int) -> Response:
    """Response to a chunk that is not the last one: 308, which some clients cannot read and ask to get as a 200."""
    headers = {"Range": f"bytes=0-{size - 1}"} if size else {}
    if call.request.headers.get("x-guploader-no-308", "").lower() == "yes":
        return Response(status_code=200, headers=headers | {"X-HTTP-Status-Code-Override": "308"})
    return Response(status_code=308, headers=headers)
