"""Transfer of one file from the hub into a bucket: streamed, hashed on the way, resumed after a killed process.

The last piece is held back until the hash of the whole file equals the hub's, so that no wrong or partial file is ever
visible in the bucket. The bytes that a killed process sent are not sent again; they are read again from the hub,
because the hash of the whole file needs them.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from bezel.rest import ApiError, UnreachableError
from bezel.weights.bucket import Bucket, Stored
from bezel.weights.errors import WeightsError, WrongContentError
from bezel.weights.hub import BusyError, Digest, Hub, HubFile, Repository
from bezel.weights.progress import Progress
from bezel.weights.retry import RetryBudget, Watch
from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem


@dataclass(frozen=True, slots=True)
class Entry:
    """One upload or copy under way.

    Attributes:
        place: Endpoint of the bucket, bucket and object.
        content: Hash and size of the content (for a copy: source object and generation); another content is another
            upload.
        replaces: Generation of the object that it replaces.
        handle: The upload's URL, or the token of a copy's next step.
    """

    place: str
    content: str
    replaces: str
    handle: str


class Journal:
    """The entries below a folder, one file each; written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, place: str, content: str, replaces: str) -> str:
        """Return the handle of an open upload; "" where there is none, or it is for another content."""
        try:
            entry = Entry(**json.loads(self._file(place).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return ""
        return entry.handle if (entry.content, entry.replaces) == (content, replaces) else ""

    def keep(self, entry: Entry) -> None:
        """Stores an entry, in place of an older one of the same place."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(self._file(entry.place), json.dumps(asdict(entry)), mode=0o600)

    def drop(self, place: str) -> None:
        """Deletes an entry."""
        self._file(place).unlink(missing_ok=True)

    def _file(self, place: str) -> Path:
        return self._folder / f"{hashlib.sha256(place.encode()).hexdigest()[:32]}.json"


# Size of the buffer of each file under way; Cloud Storage requires multiples of 256 KiB.
PIECE_BYTES = 16 * 1024 * 1024
# Key of the object's metadata that names the source of the file.
SOURCE = "bezel-source"


class LostError(UnreachableError):
    """An upload does not exist: it was completed, or has expired."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Everything that copying one file needs."""

    hub: Hub
    repository: Repository
    commit: str
    bucket: Bucket
    journal: Journal
    watch: Watch
    progress: Progress
    piece_bytes: int = PIECE_BYTES

    def copy(self, file: HubFile, name: str, replaced: Stored | None) -> None:
        """Copies one file.

        Args:
            file: The file on the hub.
            name: Name of the object.
            replaced: The object of that name with another content, if there is one.

        Raises:
            WeightsError: The file differs from the size or hash that the hub reports, or may not be read.
            RestError: Cloud Storage or the hub refused, or repeatedly sent no response.
        """
        expected, generation = file.expected, replaced.generation if replaced else "0"
        if not expected.size:
            self.bucket.put_empty(name, generation)
            return
        place = self._place(name)
        content = f"{expected.kind} {expected.value} {expected.size}"
        budget = RetryBudget(self.watch)
        while True:
            session = self.journal.find(place, content, generation)
            received = self.bucket.upload_progress(session, expected.size) if session else None
            if received is None:
                noted = {expected.kind: expected.value, SOURCE: f"hf:{self.repository.id}@{self.commit}"}
                session, received = self.bucket.begin(name, noted, generation), 0
                self.journal.keep(Entry(place, content, generation, session))
            try:
                self._finish(session, received, file, name)
            except LostError as error:
                self.journal.drop(place)
                stored = self.bucket.find(name)
                if stored is None or stored.metadata.get(expected.kind) != expected.value:
                    budget.note_failure(error)
                    continue
            except (ApiError, WrongContentError):
                self.journal.drop(place)
                raise
            self.journal.drop(place)
            return

    def forget(self, name: str) -> None:
        """Drops the entry of an upload whose object exists: its process was killed just before it could."""
        self.journal.drop(self._place(name))

    def _place(self, name: str) -> str:
        return f"{self.bucket.uploads} {self.bucket.name} {name}"

    def _finish(self, session: str, received: int | Stored, file: HubFile, name: str) -> None:
        """Completes an upload from the bytes that it has received, and verifies the object."""
        if isinstance(received, Stored):  # the earlier process was killed before it dropped the entry
            self.progress.advance(file.expected.size, moved=False)
            return
        digest = Digest(file.expected)
        try:
            stored = self._send(session, received, file, digest)
        except ApiError as error:
            if error.status == 412:
                raise changed_meanwhile(self.bucket.name, name) from None
            raise
        if stored.size != file.expected.size or (stored.md5 and stored.md5 != digest.md5):
            self.bucket.delete(stored)
            raise _wrong(file, "Cloud Storage stored other bytes than were sent")

    def _send(self, session: str, received: int, file: HubFile, digest: Digest) -> Stored:
        """Sends the bytes that the upload lacks; returns the object."""
        size = file.expected.size
        if received:
            self.progress.line(
                f"  {file.path}: resumes at {received} of {size} bytes; these are read again to verify them"
            )
        at, piece = 0, bytearray()
        for content in self._content(file):
            self.watch.check()
            digest.update(content)
            new = content[max(0, received - at) :]
            self.progress.advance(len(content), moved=bool(new))
            at += len(content)
            piece += new
            while len(piece) > self.piece_bytes:  # not the last one, which waits for the hash
                sent = self._put(session, bytes(piece[: self.piece_bytes]), at - len(piece), size)
                if isinstance(sent, Stored):
                    raise _wrong(file, f"Cloud Storage completed an upload of {size} bytes too early")
                del piece[: self.piece_bytes]
        if not digest.matches:
            raise _wrong(file, f"its hash differs from the hub's ({file.expected.value[:12]}…)")
        stored = self._put(session, bytes(piece), at - len(piece), size)
        if not isinstance(stored, Stored):
            raise LostError(f"{file.path}: Cloud Storage has all {stored} bytes but does not complete the upload")
        return stored

    def _content(self, file: HubFile) -> Iterator[bytes]:
        """Yields the whole content; after a failure the download resumes where it broke off."""
        at, size, budget = 0, file.expected.size, RetryBudget(self.watch)
        while at < size:
            try:
                with self.hub.open(self.repository, self.commit, file.path, at) as pieces:
                    for piece in pieces:
                        at += len(piece)
                        if at > size:
                            raise _wrong(file, f"it is longer than the {size} bytes that the hub lists")
                        if piece:
                            budget.note_progress()
                            yield piece
                if at < size:
                    raise UnreachableError(f"{file.path}: the download ended after {at} of {size} bytes")  # noqa: TRY301
            except BusyError as error:
                budget.note_failure(error, error.retry_after)
            except UnreachableError as error:
                budget.note_failure(error)

    def _put(self, session: str, content: bytes, begin: int, size: int) -> int | Stored:
        """Sends one piece, with retries; returns the bytes received so far, or the object after the last piece."""
        budget, end = RetryBudget(self.watch), begin + len(content)
        while True:
            try:
                received = self.bucket.put(session, content, begin, size)
            except UnreachableError as error:
                budget.note_failure(error)
                progress = self.bucket.upload_progress(session, size)
                if progress is None:
                    raise LostError(f"the upload to {self.bucket.name} does not exist any more") from None
                received = progress
            if isinstance(received, Stored) or received >= end:
                return received
            if received > begin:
                budget.note_progress()
                content, begin = content[received - begin :], received
            else:
                budget.note_failure(UnreachableError(f"Cloud Storage accepted none of {len(content)} bytes"))


def changed_meanwhile(bucket: str, name: str) -> WeightsError:
    """The error for an object that another writer changed during its copy."""
    text = "another writer changed it, or its source, during the copy, so it was left unchanged."
    return WeightsError(Problem(f"gs://{bucket}/{name}", None, text, "run the same command again."))


def _wrong(file: HubFile, why: str) -> WrongContentError:
    text = f"{why}, so it was not stored: a server that loads it would fail or return nonsense."
    repair = "run the same command again; if it fails again, the source or the network between is at fault."
    return WrongContentError(Problem(file.path, None, text, repair))
