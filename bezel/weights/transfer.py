"""Transfer of one file from the hub into a bucket: streamed, hashed on the way, resumed after a killed process.

The last piece is held back until the hash of the whole file equals the hub's, so that no wrong or partial file is ever
visible in the bucket. The bytes that a killed process sent are not sent again; they are read again from the hub,
because the hash of the whole file needs them.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from bezel.rest import ApiError, UnreachableError
from bezel.weights.bucket import Bucket, Stored
from bezel.weights.errors import WeightsError, WrongContentError
from bezel.weights.hub import BusyError, Digest, Hub, HubFile, Repository
from bezel.weights.progress import Progress
from bezel.weights.retry import Patience, Watch


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


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder in which this user's programs store what they need to resume: XDG_STATE_HOME/bezel/uploads."""
    home = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "bezel" / "uploads"


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
        file = self._file(entry.place)
        part = file.with_name(f".{file.name}.{os.getpid()}")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
            json.dump(asdict(entry), opened)
        part.replace(file)

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
        patience = Patience(self.watch)
        while True:
            session = self.journal.find(place, content, generation)
            held = self.bucket.received(session, expected.size) if session else None
            if held is None:
                noted = {expected.kind: expected.value, SOURCE: f"hf:{self.repository.id}@{self.commit}"}
                session, held = self.bucket.begin(name, noted, generation), 0
                self.journal.keep(Entry(place, content, generation, session))
            try:
                self._finish(session, held, file, name)
            except LostError as error:
                self.journal.drop(place)
                found = self.bucket.find(name)
                if found is None or found.metadata.get(expected.kind) != expected.value:
                    patience.failed(error)
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

    def _finish(self, session: str, held: int | Stored, file: HubFile, name: str) -> None:
        """Completes an upload from the bytes that it has received, and verifies the object."""
        if isinstance(held, Stored):  # the earlier process was killed before it dropped the entry
            self.progress.advance(file.expected.size, moved=False)
            return
        digest = Digest(file.expected)
        try:
            stored = self._send(session, held, file, digest)
        except ApiError as error:
            if error.status == 412:
                raise WeightsError(
                    f"gs://{self.bucket.name}/{name} was written by somebody else meanwhile.",
                    "it was left as it is.",
                    "run the same command again, which looks at it.",
                ) from None
            raise
        if stored.size != file.expected.size or (stored.md5 and stored.md5 != digest.md5):
            self.bucket.delete(stored)
            raise _wrong(file, "Cloud Storage has other bytes than were sent")

    def _send(self, session: str, held: int, file: HubFile, digest: Digest) -> Stored:
        """Sends the bytes that the upload lacks; returns the object."""
        size = file.expected.size
        if held:
            self.progress.line(f"  {file.path}: goes on at {held} of {size} bytes, which are read again to be verified")
        at, piece = 0, bytearray()
        for content in self._content(file):
            self.watch.check()
            digest.update(content)
            new = content[max(0, held - at) :]
            self.progress.advance(len(content), moved=bool(new))
            at += len(content)
            piece += new
            while len(piece) > self.piece_bytes:  # not the last one, which waits for the hash
                sent = self._put(session, bytes(piece[: self.piece_bytes]), at - len(piece), size)
                if isinstance(sent, Stored):
                    raise _wrong(file, f"an upload of {size} bytes was whole too early")
                del piece[: self.piece_bytes]
        if not digest.matches:
            raise _wrong(file, f"its content has another hash than the hub gives ({file.expected.value[:12]}…)")
        stored = self._put(session, bytes(piece), at - len(piece), size)
        if not isinstance(stored, Stored):
            raise LostError(f"{file.path}: Cloud Storage has all {stored} bytes and does not end the upload")
        return stored

    def _content(self, file: HubFile) -> Iterator[bytes]:
        """Yields the whole content; after a failure the download resumes where it broke off."""
        at, size, patience = 0, file.expected.size, Patience(self.watch)
        while at < size:
            try:
                with self.hub.open(self.repository, self.commit, file.path, at) as pieces:
                    for piece in pieces:
                        at += len(piece)
                        if at > size:
                            raise _wrong(file, f"it is longer than the {size} bytes that the hub names")
                        if piece:
                            patience.progressed()
                            yield piece
                if at < size:
                    raise UnreachableError(f"{file.path}: the download ended after {at} of {size} bytes")  # noqa: TRY301
            except BusyError as error:
                patience.failed(error, error.asked_seconds)
            except UnreachableError as error:
                patience.failed(error)

    def _put(self, session: str, content: bytes, begin: int, size: int) -> int | Stored:
        """Sends one piece, with retries; returns the bytes received so far, or the object after the last piece."""
        patience, end = Patience(self.watch), begin + len(content)
        while True:
            try:
                held = self.bucket.put(session, content, begin, size)
            except UnreachableError as error:
                patience.failed(error)
                found = self.bucket.received(session, size)
                if found is None:
                    raise LostError(f"the upload of {self.bucket.name} is gone") from None
                held = found
            if isinstance(held, Stored) or held >= end:
                return held
            if held > begin:
                patience.progressed()
                content, begin = content[held - begin :], held
            else:
                patience.failed(UnreachableError(f"Cloud Storage took nothing of {len(content)} bytes"))


def _wrong(file: HubFile, why: str) -> WrongContentError:
    return WrongContentError(
        f"{file.path}: {why}.",
        "a server that loads it would fail or answer nonsense, so it was not put into the bucket.",
        "run the same command again; if it happens again, the source or something on the way is at fault.",
    )
