"""Uploads of blobs: monolithic, in chunks, or mounted from another image.

An upload is a row and a file until its bytes are verified; a killed one leaves both, for a day. Leaves out the files
themselves (bezel_localcloud.core.files.blobs).
"""

import contextlib
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.responses import Response

from bezel_localcloud.core.files.blobs import BlobTooLargeError, UploadBusyError, is_digest
from bezel_localcloud.services.artifact_registry.errors import VERSION, RegistryError
from bezel_localcloud.services.artifact_registry.exchange import Exchange
from bezel_localcloud.services.artifact_registry.image_store import UPLOAD, Image
from bezel_localcloud.services.artifact_registry.names import DOCKER_HUB, READ, WRITE, RegistryTarget, check_name

MAX_BLOB = 5 << 40  # bytes; the largest object of Cloud Storage, where Artifact Registry keeps its files
_RANGE = re.compile(r"(?:bytes[ =])?([0-9]{1,15})-([0-9]{1,15})(?:/(?:[0-9]{1,15}|\*))?")


@dataclass(frozen=True)
class _Upload:
    """An open upload.

    Attributes:
        id: Name of its row and its file.
        image: The image that the blob is for.
    """

    id: str
    image: Image


async def start(exchange: Exchange) -> Response:
    """Open an upload; with `digest` receive the whole blob at once, with `mount` take it from another image."""
    image = exchange.writing(WRITE)
    digest, mount = exchange.argument("digest"), exchange.argument("mount")
    if mount and _mount(exchange, image, mount):
        return _created_response(exchange, mount)
    if digest:
        _check_digest(digest)
    exchange.images.forget_uploads(exchange.now)
    upload = _Upload(uuid.uuid4().hex, image)
    row = {"repository": image.repository, "path": image.path, "opened": exchange.now}
    exchange.cloud.store.put(UPLOAD, upload.id, row)
    if digest:
        try:
            await _receive(exchange, upload)
        except BaseException:
            _discard(exchange, upload)
            raise
        return await _finish(exchange, upload, digest)
    return _progress(exchange, upload, 202)


async def patch(exchange: Exchange) -> Response:
    """Append a chunk, or a stream of unknown length, to an upload."""
    upload = _open(exchange)
    with _alone(exchange, upload):
        await _receive(exchange, upload)
    return _progress(exchange, upload, 202)


async def put(exchange: Exchange) -> Response:
    """Append the rest, if there is a body, and complete the upload."""
    upload, digest = _open(exchange), exchange.argument("digest")
    _check_digest(digest)
    with _alone(exchange, upload):
        await _receive(exchange, upload)
        return await _finish(exchange, upload, digest)


async def status(exchange: Exchange) -> Response:
    """How much of an upload has arrived."""
    return _progress(exchange, _open(exchange), 204)


async def cancel(exchange: Exchange) -> Response:
    """Forget an upload."""
    upload = _open(exchange)
    with _alone(exchange, upload):
        _discard(exchange, upload)
    return Response(status_code=204, headers=VERSION)


def _open(exchange: Exchange) -> _Upload:
    """The upload that the path names.

    Raises:
        RegistryError: BLOB_UPLOAD_UNKNOWN.
    """
    image, identifier = exchange.writing(WRITE), exchange.request.path_params["upload"]
    row = exchange.cloud.store.get(UPLOAD, identifier)
    if row is None or image != Image(row["repository"], row["path"]):
        raise RegistryError("BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry")
    return _Upload(identifier, image)


@contextlib.contextmanager
def _alone(exchange: Exchange, upload: _Upload) -> Iterator[None]:
    """Use an upload alone.

    Raises:
        RegistryError: BLOB_UPLOAD_INVALID with 409.
    """
    try:
        with exchange.cloud.blobs.exclusive(upload.id):
            yield
    except UploadBusyError:
        text = "another request writes to this upload"
        raise RegistryError("BLOB_UPLOAD_INVALID", text, status=409) from None


async def _receive(exchange: Exchange, upload: _Upload) -> None:
    """Append the body; a chunk must begin where the upload ends, and be as long as its Content-Range says.

    Raises:
        RegistryError: BLOB_UPLOAD_INVALID with 416, or SIZE_INVALID.
    """
    before = exchange.cloud.blobs.uploaded_size(upload.id)
    header, length = exchange.request.headers.get("content-range"), None
    if header is not None:
        match = _RANGE.fullmatch(header.strip())
        if match is None or int(match[1]) != before or int(match[2]) < before:
            headers = _headers(exchange, upload)
            text = f"Content-Range {header[:100]!r} does not begin at byte {before}"
            raise RegistryError("BLOB_UPLOAD_INVALID", text, status=416, headers=headers)
        length = int(match[2]) + 1 - before
    limit = MAX_BLOB if length is None else before + length
    try:
        after = await exchange.cloud.blobs.append(upload.id, exchange.request.stream(), limit)
    except BlobTooLargeError:
        raise RegistryError("SIZE_INVALID", "the body is longer than it may be") from None
    if length is not None and after - before != length:
        exchange.cloud.blobs.cut(upload.id, before)
        raise RegistryError("SIZE_INVALID", f"the body has {after - before} bytes, Content-Range {length}")


async def _finish(exchange: Exchange, upload: _Upload, digest: str) -> Response:
    """Verify the digest and make the bytes a blob of the image.

    Raises:
        RegistryError: DIGEST_INVALID; the upload is forgotten.
    """
    try:
        size = await exchange.cloud.blobs.finish(upload.id, digest)
        if size is None:
            raise RegistryError("DIGEST_INVALID", "provided digest did not match uploaded content")
        exchange.images.link(upload.image, digest, size, exchange.now)
    finally:
        _discard(exchange, upload)
    return _created_response(exchange, digest)


def _discard(exchange: Exchange, upload: _Upload) -> None:
    exchange.cloud.store.delete(UPLOAD, upload.id)
    exchange.cloud.blobs.discard(upload.id)


def _mount(exchange: Exchange, image: Image, digest: str) -> bool:
    """Link a blob of another image that the caller may read; False where there is none, so that it is uploaded."""
    _check_digest(digest)
    if name := exchange.argument("from"):
        source = _source(exchange.target, name)
        has_blob = source is not None and exchange.images.has_blob(source, digest)
        owners = [source.repository] if source is not None and has_blob else []
    else:
        owners = list(exchange.images.owners(digest))
    if not any(exchange.cloud.access.allows(exchange.caller, READ, owner) for owner in owners):
        return False
    exchange.images.link(image, digest, exchange.images.blob_size(digest), exchange.now)
    return True


def _source(target: RegistryTarget, name: str) -> Image | None:
    """The image that `from` names, spelled as the request spells its own."""
    registry = target.registry
    if not target.query:
        first, _, rest = name.partition("/")
        registry, name = (first, rest) if "." in first else (DOCKER_HUB, name)
    check_name(name)
    source = RegistryTarget(registry, name, name)
    return source.image if source.is_google else None


def _check_digest(digest: str) -> None:
    if not is_digest(digest):
        raise RegistryError("DIGEST_INVALID", f"Invalid digest: {digest[:200] or 'none'}")


def _headers(exchange: Exchange, upload: _Upload) -> dict[str, str]:
    size = exchange.cloud.blobs.uploaded_size(upload.id)
    location = exchange.target.link(f"blobs/uploads/{upload.id}")
    return {"Location": location, "Range": f"0-{max(size - 1, 0)}", "Docker-Upload-UUID": upload.id}


def _progress(exchange: Exchange, upload: _Upload, code: int) -> Response:
    return Response(status_code=code, headers=VERSION | _headers(exchange, upload))


def _created_response(exchange: Exchange, digest: str) -> Response:
    headers = {"Location": exchange.target.link(f"blobs/{digest}"), "Docker-Content-Digest": digest}
    return Response(status_code=201, headers=VERSION | headers)
