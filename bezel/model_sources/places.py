"""Places where the files of a model are: a repository of a hub, a folder of this machine, a folder of a bucket.

Each lists its files and gives parts of them; none gives more bytes than it was asked for. Leaves out what is read.
"""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bezel.rest import ApiError, UnreachableError
from bezel.weights.bucket import Bucket
from bezel.weights.errors import WeightsError
from bezel.weights.hub import BusyError, Hub, Repository
from bezel.weights.retry import RetryBudget
from bezel_base.errors import Problem, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from bezel.weights.retry import Watch

CLOUD_STORAGE = "gs://"
_MOST_FILES = 20_000


class ModelRefusedError(UserError):
    """A place holds no model that can be described; nothing was written."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a place.

    Attributes:
        files: Size in bytes by name, relative to the place.
        version: The commit of a repository; "" elsewhere.
    """

    files: Mapping[str, int]
    version: str = ""


class Place(Protocol):
    """A place that holds a model."""

    @property
    def name(self) -> str:
        """Its name for messages, e.g. `hf:acme/llama@main`."""

    def listing(self) -> Listing:
        """List its files."""

    def part(self, file: str, begin: int, end: int) -> bytes:
        """Return the bytes of a file from `begin` to before `end`, fewer where the file ends."""


class HubPlace:
    """A repository of a hub at a revision.

    Args:
        hub: The client.
        repository: The repository.
        watch: The deadline.
    """

    def __init__(self, hub: Hub, repository: Repository, watch: Watch) -> None:
        self._hub, self._watch = hub, watch
        self.repository = repository
        self.base = hub.base
        self._listing: Listing | None = None

    @property
    def name(self) -> str:
        """Its name, with the revision that was asked for."""
        return str(self.repository)

    def listing(self) -> Listing:
        """Resolve the revision to a commit, and list its files.

        Raises:
            RestError: The hub refuses, or does not respond.
        """
        if self._listing is None:
            commit, files = self._hub.files(self.repository)
            self._listing = Listing({file.path: file.expected.size for file in files[:_MOST_FILES]}, commit)
        return self._listing

    def part(self, file: str, begin: int, end: int) -> bytes:
        """Read a part, with a bounded number of retries.

        Raises:
            RestError: The hub refuses, or does not respond.
        """
        budget, commit = RetryBudget(self._watch), self.listing().version
        while True:
            try:
                with self._hub.open(self.repository, commit, file, begin, end) as pieces:
                    return _first_bytes(pieces, end - begin, self._watch)
            except BusyError as error:
                budget.note_failure(error, error.retry_after)
            except UnreachableError as error:
                if any(isinstance(problem, Problem) for problem in error.problems):
                    raise  # the redirects do not end: another attempt meets them again
                budget.note_failure(error)


class FolderPlace:
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        """Its path."""
        return str(self.folder)

    def listing(self) -> Listing:
        """List its files, those below its own folders too; links to other places are read as files.

        Raises:
            ModelRefusedError: The folder cannot be read.
        """
        files: dict[str, int] = {}
        try:
            for above, _, names in os.walk(self.folder, onerror=_raise):
                for name in names:
                    path = Path(above) / name
                    files[path.relative_to(self.folder).as_posix()] = path.stat().st_size
                if len(files) > _MOST_FILES:
                    break
        except OSError as error:
            raise self._unreadable(error) from None
        return Listing(files)

    def part(self, file: str, begin: int, end: int) -> bytes:
        """Read a part.

        Raises:
            ModelRefusedError: The file cannot be read.
        """
        try:
            with (self.folder / file).open("rb") as opened:
                opened.seek(begin)
                return opened.read(end - begin)
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> ModelRefusedError:
        what = error.filename or self.folder
        consequence = f"it cannot be read ({error.strerror}), so nothing was written."
        return ModelRefusedError(Problem(str(what), None, consequence, "make it readable, or name another folder."))


class BucketPlace:
    """A folder of a bucket.

    Args:
        bucket: The bucket.
        folder: Its folder, without a slash at either end.
        watch: The deadline.
    """

    def __init__(self, bucket: Bucket, folder: str, watch: Watch) -> None:
        self._bucket, self._folder, self._watch = bucket, folder, watch

    @property
    def name(self) -> str:
        """Its address."""
        return f"{CLOUD_STORAGE}{self._bucket.name}/{self._folder}".rstrip("/")

    def listing(self) -> Listing:
        """List its objects.

        Raises:
            RestError: There is no such bucket, or it may not be listed.
        """
        prefix = f"{self._folder}/" if self._folder else ""
        stored = self._bucket.objects(prefix)
        files = {each.name.removeprefix(prefix): each.size for each in stored if not each.name.endswith("/")}
        return Listing(dict(list(files.items())[:_MOST_FILES]))

    def part(self, file: str, begin: int, end: int) -> bytes:
        """Read a part, with a bounded number of retries.

        Raises:
            RestError: The object may not be read, or is gone.
        """
        budget = RetryBudget(self._watch)
        name = f"{self._folder}/{file}".lstrip("/")
        while True:
            try:
                with self._bucket.open(name, begin, end) as pieces:
                    return _first_bytes(pieces, end - begin, self._watch)
            except ApiError as error:
                if error.status != 404:
                    raise
                consequence = "it is listed and does not exist any more, so nothing was written."
                problem = Problem(f"{CLOUD_STORAGE}{self._bucket.name}/{name}", None, consequence, _AGAIN)
                raise WeightsError(problem) from None
            except UnreachableError as error:
                budget.note_failure(error)


_AGAIN = "run the same command again."


@contextmanager
def open_place(
    source: str, revision: str, watch: Watch, token: Callable[[], str], environ: Mapping[str, str]
) -> Iterator[Place]:
    """Open the place that a name means: `gs://BUCKET/FOLDER`, a folder that exists, else `[hf:]OWNER/NAME[@REVISION]`.

    Args:
        source: The name.
        revision: Branch, tag or commit of a repository; "" for that of the name, or `main`.
        watch: The deadline.
        token: Returns the hub's token when it first requires one; "" for none.
        environ: The environment.

    Raises:
        UserError: The name has none of the forms.
    """
    if revision and (source.startswith(CLOUD_STORAGE) or is_folder(source)):
        consequence = f"{source} is a folder, which has no revisions."
        raise ModelRefusedError(Problem("--revision", revision, consequence, "remove it."))
    if source.startswith(CLOUD_STORAGE):
        name, _, folder = source.removeprefix(CLOUD_STORAGE).strip("/").partition("/")
        if not name or {"", ".", ".."} & set(folder.split("/") if folder else ()):
            repair = "write gs://BUCKET/FOLDER."
            raise ModelRefusedError(Problem("MODEL", source, "it is not the address of a folder in a bucket.", repair))
        with closing(Bucket(name, watch)) as bucket:
            yield BucketPlace(bucket, folder, watch)
    elif is_folder(source):
        yield FolderPlace(Path(source).expanduser())
    else:
        repository = repository_of(source, revision)
        with closing(Hub(watch, token, environ, purpose="read")) as hub:
            yield HubPlace(hub, repository, watch)


def is_folder(source: str) -> bool:
    """Whether a name means a folder of this machine: it exists, or can be the name of nothing else."""
    return source.startswith(("/", "./", "../", "~")) or source in {".", ".."} or Path(source).is_dir()


def repository_of(source: str, revision: str = "") -> Repository:
    """The repository that a name means.

    Raises:
        ModelRefusedError: It has not the form `OWNER/NAME[@REVISION]`.
    """
    try:
        named = Repository.of(source.removeprefix("hf:"))
    except WeightsError:
        consequence = "it is neither a folder that exists nor the name of a model, so nothing was read."
        repair = "write OWNER/NAME (of a Hugging Face hub), a folder, or gs://BUCKET/FOLDER."
        raise ModelRefusedError(Problem("MODEL", source, consequence, repair)) from None
    return Repository(named.id, revision) if revision else named


def _first_bytes(pieces: Iterator[bytes], length: int, watch: Watch) -> bytes:
    """The first bytes of a body, however long it is."""
    content = bytearray()
    for piece in pieces:
        watch.check()
        content += piece
        if len(content) >= length:
            break
    return bytes(content[:length])


def _raise(error: OSError) -> None:
    raise error
