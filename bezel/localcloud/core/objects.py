"""Contents of buckets as files, so that a container's mount is a folder: moved in whole, repaired after a kill.

A name's slashes are folders. Names that a file system cannot hold (empty, "." or ".." parts, a name that is also the
folder of another) are refused here, although Google accepts them.
"""

import errno
import hashlib
import os
import shutil
import uuid
from collections.abc import AsyncIterable
from dataclasses import dataclass
from pathlib import Path

from bezel.localcloud.core.errors import invalid
from bezel.localcloud.core.json_types import Json, b64, timestamp
from bezel.localcloud.core.paths import Paths
from bezel.localcloud.core.store import Store

# Above this size the CRC32C, slow in pure Python, is left out of an object's metadata.
_CRC_LIMIT = 4 * 1024 * 1024
# Source: Cloud Storage's page on resumable uploads: a session's address is good for a week.
_SESSION_SECONDS = 7 * 86400.0
# Kind of the rows that say which upload belongs to which object until its file is in place.
_PLACING = "placing"


@dataclass(frozen=True)
class Upload:
    """Received bytes that are not yet an object's content."""

    path: Path
    size: int
    md5: str
    crc32c: str


class ObjectFiles:
    """Files below the `objects` folder of `Paths`, and the rows that describe them.

    Attributes:
        full: Whether the disk behaves as if it were full.
    """

    def __init__(self, layout: Paths, store: Store) -> None:
        self._layout = layout
        self._store = store
        self.full = False

    def bucket_folder(self, bucket: str) -> Path:
        """The folder that a mount of the bucket shows."""
        return self._layout.objects / bucket

    def path(self, bucket: str, name: str) -> Path:
        """Return the path of an object's bytes.

        Raises:
            ApiError: INVALID_ARGUMENT for a name that cannot be a file's.
        """
        parts = name.removesuffix("/").split("/")
        if any(part in {"", ".", ".."} or len(part.encode()) > 255 or "\0" in part for part in parts):
            raise invalid(
                f"Object name {name!r} cannot be kept as a file: no empty, '.' or '..' parts, 255 bytes a part."
            )
        return self.bucket_folder(bucket).joinpath(*parts)

    def new_upload(self) -> Path:
        """A new path for an upload in progress."""
        return self._layout.uploads / uuid.uuid4().hex

    async def receive(self, chunks: AsyncIterable[bytes]) -> Upload:
        """Write a stream to a new file."""
        path = self.new_upload()
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        try:
            with path.open("wb") as file:
                async for chunk in chunks:
                    file.write(chunk)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return measured(path)

    def place(self, bucket: str, name: str, upload: Upload, metadata: Json, now: float) -> Json:
        """Record an upload as the content of an object whose file is still to be moved. Return the object's row.

        To be called within a transaction; after its commit, `settle` moves the file. A kill or a full disk before the
        commit leaves the object unchanged; after a kill between commit and move, `recover` moves the file.
        """
        path = self.path(bucket, name)
        refused = invalid(f"Object name {name!r} is a folder of other objects, or has an object for a folder.")
        if path.is_dir() and not name.endswith("/"):
            raise refused
        try:
            (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise refused from None
        self._store.put(_PLACING, f"{bucket}/{name}", {"bucket": bucket, "name": name, "upload": upload.path.name})
        previous = self._store.get("object", f"{bucket}/{name}")
        row = {
            "kind": "storage#object",
            "name": name,
            "bucket": bucket,
            "generation": str(int(now * 1_000_000)),
            "metageneration": "1",
            "contentType": metadata.get("contentType") or "application/octet-stream",
            "storageClass": "STANDARD",
            "size": str(upload.size),
            "md5Hash": upload.md5,
            "etag": b64(upload.md5.encode()[:8] + name.encode()[:4]),
            "timeCreated": timestamp(now),
            "updated": timestamp(now),
        }
        if previous and int(previous["generation"]) >= int(row["generation"]):
            row["generation"] = str(int(previous["generation"]) + 1)
        row |= {"crc32c": upload.crc32c} if upload.crc32c else {}
        row |= {key: metadata[key] for key in ("metadata", "cacheControl", "contentEncoding") if metadata.get(key)}
        self._store.put("object", f"{bucket}/{name}", row)
        return row

    def settle(self, bucket: str, name: str) -> None:
        """Move the file of an object that was placed to its path."""
        placing = self._store.get(_PLACING, f"{bucket}/{name}")
        if placing is not None:
            upload = self._layout.uploads / placing["upload"]
            if name.endswith("/"):
                upload.unlink(missing_ok=True)
            elif upload.exists():  # not after a kill between the two steps
                upload.replace(self.path(bucket, name))
            self._store.delete(_PLACING, f"{bucket}/{name}")

    def remove(self, bucket: str, name: str) -> None:
        """Delete an object, its file, and the folders that become empty."""
        self._store.delete("object", f"{bucket}/{name}")
        path, folder = self.path(bucket, name), self.bucket_folder(bucket)
        if path.is_dir():
            _remove_if_empty(path)
        else:
            path.unlink(missing_ok=True)
        for parent in path.parents:
            if parent == folder or not _remove_if_empty(parent):
                break

    def forget_sessions(self, now: float, bucket: str = "") -> None:
        """Forget the resumable uploads of a bucket, or those left unfinished for a week, as Google does."""
        for name, session in self._store.rows("upload"):
            if session["bucket"] == bucket or session.get("opened", 0.0) < now - _SESSION_SECONDS:
                self._store.delete("upload", name)
                (self._layout.uploads / name).unlink(missing_ok=True)

    def recover(self) -> None:
        """Reconcile files and rows after a kill: delete files without a row, and measure changed files again."""
        self._settle_all()
        sessions = {name for name, _ in self._store.rows("upload")}
        for path in self._layout.uploads.iterdir():
            if path.name not in sessions:
                path.unlink()
        rows = dict(self._store.rows("object"))
        for name, row in rows.items():
            path = self.path(row["bucket"], row["name"])
            if not path.exists():
                self._store.delete("object", name)
            elif path.is_file() and path.stat().st_size != int(row["size"]):
                content = measured(path)
                self._store.put("object", name, row | {"size": str(content.size), "md5Hash": content.md5})
        for path in sorted(self._layout.objects.rglob("*"), reverse=True):
            bucket, _, name = path.relative_to(self._layout.objects).as_posix().partition("/")
            if path.is_file() and f"{bucket}/{name}" not in rows:
                path.unlink()
            elif path.is_dir() and name and f"{bucket}/{name}/" not in rows:
                _remove_if_empty(path)

    def _settle_all(self) -> None:
        """Move the files of all placed uploads, and make the folders of buckets agree with their rows."""
        for _, placing in self._store.rows(_PLACING):
            self.settle(placing["bucket"], placing["name"])
        buckets = {name for name, _ in self._store.rows("bucket")}
        for bucket in buckets:
            self.bucket_folder(bucket).mkdir(exist_ok=True)
        for folder in self._layout.objects.iterdir():
            if folder.name not in buckets:
                shutil.rmtree(folder)


def measured(path: Path) -> Upload:
    """Size and checksums of a file."""
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    size = path.stat().st_size
    crc = b64(crc32c(path.read_bytes()).to_bytes(4, "big")) if size <= _CRC_LIMIT else ""
    return Upload(path, size, b64(digest.digest()), crc)


def _remove_if_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


_POLYNOMIAL = 0x82F63B78


def _table() -> tuple[int, ...]:
    rows = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ _POLYNOMIAL if value & 1 else value >> 1
        rows.append(value)
    return tuple(rows)


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """CRC32C of some bytes; pure Python, about 10 MB a second."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF
