"""Blobs of container images as files: named by their digest, uploaded in sessions, moved into place when verified.

Owns the files below the `blobs` and `blob_uploads` folders of `Paths`. Leaves out which repository a blob belongs to
(bezel_localcloud.services.artifact_registry): a file that no row refers to is removed by `sweep`.
"""

import asyncio
import contextlib
import errno
import hashlib
import os
import re
from collections.abc import AsyncIterable, Iterator
from pathlib import Path

from bezel_base.atomic_write import write_whole
from bezel_localcloud.core.paths import Paths

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_PIECE = 1 << 20


class UploadBusyError(Exception):
    """Another request writes to the same upload."""


class BlobTooLargeError(Exception):
    """An upload would exceed its limit."""


def is_digest(text: str) -> bool:
    """Whether a text is a digest of a supported algorithm."""
    return _DIGEST.fullmatch(text) is not None


def digest_of(content: bytes, algorithm: str = "sha256") -> str:
    """The digest of some bytes."""
    return f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"


class BlobFiles:
    """The blobs of one localcloud.

    Attributes:
        full: Whether the disk behaves as if it were full.
    """

    def __init__(self, layout: Paths) -> None:
        self._blobs, self._uploads = layout.blobs, layout.blob_uploads
        self._busy: set[str] = set()
        self.full = False

    def path(self, digest: str) -> Path:
        """The file of a blob, whether it exists or not."""
        algorithm, _, value = digest.partition(":")
        return self._blobs / algorithm / value[:2] / value

    def keep(self, content: bytes, digest: str) -> None:
        """Write a small blob whose digest is known to be right."""
        path = self.path(digest)
        if path.exists():
            return
        self._check_room()
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content, mode=0o600)

    def uploaded_size(self, upload: str) -> int:
        """Bytes that an upload has so far."""
        path = self._uploads / upload
        return path.stat().st_size if path.exists() else 0

    @contextlib.contextmanager
    def exclusive(self, upload: str) -> Iterator[None]:
        """Use an upload alone.

        Raises:
            UploadBusyError: Another request uses it.
        """
        if upload in self._busy:
            raise UploadBusyError(upload)
        self._busy.add(upload)
        try:
            yield
        finally:
            self._busy.discard(upload)

    async def append(self, upload: str, content: AsyncIterable[bytes], limit: int) -> int:
        """Append a stream to an upload and return its new size; what came before a broken connection stays.

        Args:
            upload: Id of the upload, used by this request alone.
            content: The stream, written piece by piece.
            limit: Bytes that the upload may have.

        Raises:
            BlobTooLargeError: It exceeds the limit; the upload is as before.
        """
        path, before = self._uploads / upload, self.uploaded_size(upload)
        self._check_room()
        size = before
        with path.open("ab") as file:
            async for piece in content:
                size += len(piece)
                if size > limit:
                    break
                try:
                    file.write(piece)
                except OSError:
                    file.truncate(before)
                    raise
            if size > limit:
                file.truncate(before)
                raise BlobTooLargeError(upload)
        return size

    def cut(self, upload: str, size: int) -> None:
        """Discard what an upload has beyond a size."""
        os.truncate(self._uploads / upload, size)

    async def finish(self, upload: str, digest: str) -> int | None:
        """Move a complete upload to its digest's path and return its size; None if the bytes have another digest."""
        path = self._uploads / upload
        path.touch()
        size = await asyncio.to_thread(_verified_size, path, digest)
        if size is not None:
            target = self.path(digest)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)  # over the file of a concurrent push of the same blob, which has the same bytes
        return size

    def discard(self, upload: str) -> None:
        """Remove the bytes of an upload."""
        (self._uploads / upload).unlink(missing_ok=True)

    def recover(self, uploads: set[str], used: set[str]) -> None:
        """After a kill: remove the files of uploads without a row, and blobs that nothing uses."""
        for path in self._uploads.iterdir():
            if path.name not in uploads:
                path.unlink()
        self.sweep(used)

    def sweep(self, used: set[str]) -> None:
        """Remove every blob that is not used."""
        for path in self._blobs.glob("*/*/*"):
            if f"{path.parent.parent.name}:{path.name}" not in used:
                path.unlink()

    def _check_room(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _verified_size(path: Path, digest: str) -> int | None:
    """Size of a file that has the digest and is on the disk for good; None for other bytes."""
    computed = hashlib.new(digest.partition(":")[0])
    with path.open("rb+") as file:
        while piece := file.read(_PIECE):
            computed.update(piece)
        if computed.hexdigest() != digest.partition(":")[2]:
            return None
        os.fsync(file.fileno())
        return file.tell()
