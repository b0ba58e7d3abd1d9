"""Files of Cloud Storage: uploads in progress, contents of objects, and their repair after a kill.

A content is written once and never changed: an object's row names its file, so a content and its description appear in
one step, when the row is committed. A copy is a second name of the same bytes. Leaves out the rows' meaning
(`bezel_localcloud.services.storage`) and the folders that mounts show (mounts.py).
"""

import errno
import os
import secrets
import uuid
from collections.abc import AsyncIterable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from bezel_localcloud.core.files.checksums import Cipher, Hasher, Upload, measure_file
from bezel_localcloud.core.files.mounts import MountFolders, second_name
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import Paths
from bezel_localcloud.core.store import Store

# Source: Cloud Storage's page on resumable uploads: a session's address is good for a week.
_SESSION_SECONDS = 7 * 86400.0
LIVE, NONCURRENT, SOFT_DELETED = "object", "noncurrentObject", "softDeletedObject"
"""Kinds of rows with a content."""
_CONTENT = "_content"
_ZEROS = bytes(1 << 18)
_BLOCK = 4096  # bytes: a shorter run of zeros leaves no hole
_PIECE = 1 << 20


class ObjectFiles:
    """Files below the `contents`, `uploads` and `objects` folders of `Paths`.

    Attributes:
        full: Whether the disk behaves as if it were full.
        mounts: The folders that mounts show.
    """

    def __init__(self, layout: Paths, store: Store) -> None:
        self._layout = layout
        self._store = store
        self.full = False
        self._adopted: list[Path] = []  # contents of the transaction that runs
        self.mounts = MountFolders(layout.objects, layout.uploads, self._live_content)

    def bucket_folder(self, bucket: str) -> Path:
        """The folder that a mount of the bucket shows."""
        return self._layout.objects / bucket

    def content(self, row: Json) -> Path:
        """The file with the bytes of an object."""
        return self._layout.contents / str(row[_CONTENT])

    def new_upload(self) -> Path:
        """A new path for an upload in progress."""
        return self._layout.uploads / secrets.token_hex(16)

    def upload_path(self, name: str) -> Path:
        """The path of an upload by its name, which is one that `new_upload` gave."""
        return self._layout.uploads / name

    async def receive(self, chunks: AsyncIterable[bytes], cipher: Cipher | None = None) -> Upload:
        """Write a stream to a new file, encrypted where a cipher is given; the checksums are those of the stream."""
        path, hasher = self.new_upload(), Hasher()
        try:
            await self.append(path, chunks, hasher, cipher)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return hasher.upload(path)

    async def append(
        self, path: Path, chunks: AsyncIterable[bytes], hasher: Hasher, cipher: Cipher | None = None
    ) -> None:
        """Append a stream to a file, with its checksums; runs of zeros take no room on the disk."""
        change = cipher(hasher.size) if cipher else bytes
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as file:
            file.seek(0, os.SEEK_END)
            hole = False
            try:
                async for chunk in chunks:
                    if chunk:
                        hole = _write(file, change(chunk))
                        hasher.add(chunk)
            finally:
                if hole:
                    file.truncate()

    def copy(self, row: Json) -> Upload:
        """The bytes of an object as those of another one, without copying them."""
        path = self.new_upload()
        second_name(self.content(row), path)
        return Upload(path, int(row["size"]), row.get("md5Hash", ""), row.get("crc32c", ""))

    def concatenate(
        self, files: Iterable[BinaryIO], ciphers: Iterable[Cipher | None] = (), cipher: Cipher | None = None
    ) -> Path:
        """Write the bytes of several files one after the other into a new upload; takes long for large ones.

        Args:
            files: The files.
            ciphers: What each of them is encrypted with; nothing where it is left out.
            cipher: What the upload is to be encrypted with.
        """
        path = self.new_upload()
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        try:
            with path.open("wb") as target:
                for file, old in zip_longest(files, ciphers):
                    if old or cipher:
                        _recode(target, file, old, cipher)
                    else:
                        _append_file(target, file)
                target.truncate()
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path

    def adopt(self, upload: Upload) -> Json:
        """Make an upload a content and return the field that names it; to be called within `transaction`."""
        name = secrets.token_hex(16)
        path = self._layout.contents / name
        os.replace(upload.path, path)  # noqa: PTH105 - `Path.replace` makes another path
        self._adopted.append(path)
        return {_CONTENT: name}

    @contextmanager
    def transaction(self, bucket: str, *names: str) -> Iterator[list[Json]]:
        """A transaction that changes objects of a bucket; yields a list for the rows whose contents are deleted.

        A kill or a full disk before the commit leaves all as it was; after a kill between the commit and the end,
        `recover` does the rest.
        """
        dropped: list[Json] = []
        self._adopted.clear()
        try:
            with self._store.transaction():
                yield dropped
        except BaseException:
            for path in self._adopted:
                path.unlink(missing_ok=True)
            raise
        for name in names:
            self.mounts.show(bucket, name)
        for row in dropped:
            self.content(row).unlink(missing_ok=True)

    def forget_bucket(self, bucket: str, now: float) -> None:
        """Delete the sessions of a deleted bucket, its soft-deleted objects and its folder."""
        self.forget_sessions(now, bucket)
        for name, row in self._store.rows(SOFT_DELETED, f"{bucket}/"):
            self._store.delete(SOFT_DELETED, name)
            self.content(row).unlink(missing_ok=True)
        with suppress(OSError):
            self.bucket_folder(bucket).rmdir()

    def forget_sessions(self, now: float, bucket: str = "") -> None:
        """Forget the resumable uploads of a bucket, or those left unfinished for a week, as Google does."""
        for name, session in self._store.rows("upload"):
            if session["bucket"] == bucket or session.get("opened", 0.0) < now - _SESSION_SECONDS:
                self.forget_session(name)

    def forget_session(self, name: str) -> None:
        """Forget one upload, resumable or of several parts, with its bytes."""
        parts = self._store.rows("uploadPart", f"{name}/")
        with self._store.transaction():
            self._store.delete("upload", name)
            for key, _ in parts:
                self._store.delete("uploadPart", key)
        for file in (name, *(part["file"] for _, part in parts)):
            self.upload_path(file).unlink(missing_ok=True)

    def recover(self) -> None:
        """Reconcile files and rows after a kill: delete files without a row, and measure changed files again."""
        uploads = {name for name, _ in self._store.rows("upload")}
        uploads |= {part["file"] for _, part in self._store.rows("uploadPart")}
        for path in self._layout.uploads.iterdir():
            if path.name not in uploads:
                path.unlink()
        used = set()
        for kind in (LIVE, NONCURRENT, SOFT_DELETED):
            for name, row in self._store.rows(kind):
                if row := self._repair(kind, name, row):
                    used.add(row[_CONTENT])
        for path in self._layout.contents.iterdir():
            if path.name not in used:
                path.unlink()
        names: dict[str, list[str]] = {bucket: [] for bucket, _ in self._store.rows("bucket")}
        for _, row in self._store.rows(LIVE):
            names.setdefault(row["bucket"], []).append(row["name"])
        self.mounts.rebuild(names)

    def _repair(self, kind: str, name: str, row: Json) -> Json:
        """The row of an object that agrees with its bytes; {} where they are gone, and the row with them."""
        if _CONTENT not in row:  # a directory of an earlier version, which kept the bytes in the bucket's folder
            row = self._taken_over(row)
        path = self.content(row)
        if not path.exists():
            self._store.delete(kind, name)
            return {}
        if "customerEncryption" in row:  # only its key tells whether the bytes are right
            return row
        if path.stat().st_size != int(row["size"]) or "crc32c" not in row:
            content = measure_file(path)
            row |= {"size": str(content.size), "md5Hash": content.md5, "crc32c": content.crc32c}
            self._store.put(kind, name, row)
        return row

    def _taken_over(self, row: Json) -> Json:
        path = self.mounts.path(row["bucket"], row["name"])
        row = {key: value for key, value in row.items() if key != "crc32c"} | {_CONTENT: uuid.uuid4().hex}
        if path is not None and path.is_file():
            second_name(path, self.content(row))
        elif row["name"].endswith("/"):
            self.content(row).touch()
        return row

    def _live_content(self, bucket: str, name: str) -> Path | None:
        row = self._store.get(LIVE, f"{bucket}/{name}")
        # As with Cloud Storage FUSE, what is encrypted with a customer's key does not appear.
        return None if row is None or "customerEncryption" in row else self.content(row)


def _write(file: BinaryIO, chunk: bytes) -> bool:
    """Append bytes, or a hole where all are zeros; after a hole, which is returned, the file ends with a truncation."""
    if len(chunk) >= _BLOCK and chunk == _ZEROS[: len(chunk)]:
        file.seek(len(chunk), os.SEEK_CUR)
        return True
    file.write(chunk)
    return False


def _recode(target: BinaryIO, source: BinaryIO, old: Cipher | None, new: Cipher | None) -> None:
    """Append a file, decrypted with one cipher and encrypted with another."""
    decrypt, encrypt = old(0) if old else bytes, new(target.tell()) if new else bytes
    while piece := source.read(_PIECE):
        target.write(encrypt(decrypt(piece)))


def _append_file(target: BinaryIO, source: BinaryIO) -> None:
    """Append a file without its holes; the kernel copies, or shares the blocks where the file system can."""
    start, size = target.tell(), os.fstat(source.fileno()).st_size
    for begin, end in _written_parts(source.fileno(), size):
        position = begin
        while position < end:
            left = end - position
            copied = os.copy_file_range(source.fileno(), target.fileno(), left, position, start + position)
            if not copied:
                raise OSError(errno.EIO, "a content became shorter while it was copied")
            position += copied
    target.seek(start + size)


def _written_parts(file: int, size: int) -> Sequence[tuple[int, int]]:
    """The parts of a file that are no holes, as (first byte, end)."""
    parts, end = [], 0
    while end < size:
        try:
            begin = os.lseek(file, end, os.SEEK_DATA)
        except OSError:  # only a hole is left
            break
        end = os.lseek(file, begin, os.SEEK_HOLE)
        parts.append((begin, end))
    return parts
