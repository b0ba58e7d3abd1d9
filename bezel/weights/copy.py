"""Copy of a whole model into a folder of a bucket, a few files at a time; unchanged files are skipped.

Owns the order of the files and the outcome. Leaves the copy of one file to `Transfer` (from the hub) and `BucketSource`
(from another bucket), and the choice of the model to the caller.
"""

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bezel.rest import ApiError, RestError, UnreachableError
from bezel.weights.bucket import Bucket, Stored
from bezel.weights.errors import StoppedError, WeightsError
from bezel.weights.hub import Digest, Expected, HubFile
from bezel.weights.layout import FolderKind, is_wanted, missing_files
from bezel.weights.progress import Progress
from bezel.weights.retry import RetryBudget, Watch
from bezel.weights.transfer import SOURCE, Entry, Journal, Transfer, changed_meanwhile
from bezel_base.errors import Problem, one_line

FILES_AT_A_TIME = 4


@dataclass(frozen=True, slots=True)
class Item:
    """One file to copy: its name in the folder, its size, the comparison with a stored object, and the copy itself.

    `is_cheap`: the comparison reads no object, also one that notes no hash.
    """

    path: str
    size: int
    same: Callable[[Stored], bool]
    copy: Callable[[str, Stored | None], None]
    is_cheap: bool = False


class ModelSource(Protocol):
    """A source of a model."""

    def items(self) -> list[Item]:
        """Return the files of the source, by name."""


@dataclass
class Outcome:
    """The outcome of a copy. `failures` are texts for the user, one per file."""

    copied: int = 0
    copied_bytes: int = 0
    unchanged: int = 0
    left_out: int = 0
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HubSource:
    """A model on the hub at one commit."""

    transfer: Transfer
    files: Sequence[HubFile]

    def items(self) -> list[Item]:
        """Return its files, sorted by name."""
        return [self._item(file) for file in sorted(self.files, key=lambda file: file.path)]

    def _item(self, file: HubFile) -> Item:
        return Item(
            file.path,
            file.expected.size,
            lambda stored: self._same(stored, file.expected),
            lambda name, replaced: self.transfer.copy(file, name, replaced),
        )

    def _same(self, stored: Stored, expected: Expected) -> bool:
        same = _holds(self.transfer, stored, expected)
        if same:
            self.transfer.forget(stored.name)
        return same


def copy_model(
    source: ModelSource, bucket: Bucket, folder: str, *, watch: Watch, progress: Progress, kind: FolderKind = "model"
) -> Outcome:
    """Copies a model.

    Args:
        source: The source of the model.
        bucket: The destination.
        folder: Folder in the bucket, without a slash at its end.
        watch: The deadline.
        progress: The display of the progress.
        kind: What the folder holds: a draft model needs no tokenizer, an adapter two files.

    Raises:
        StoppedError: It was stopped, and none of the failures is the reason.
        WeightsError: The source is not a complete model, or the bucket does not exist: nothing was copied.
        RestError: The bucket could not be listed.
    """
    every = source.items()
    items = [item for item in every if is_wanted(item.path, kind)]
    if problems := missing_files({item.path: item.size for item in items}, kind):
        what = "adapter" if kind == "adapter" else "model"
        text = f"is not a complete {what} ({'; '.join(problems)}), and vLLM could not load it, so nothing was copied."
        repair = (
            "name the repository of a LoRA adapter in safetensors, as PEFT saves it."
            if kind == "adapter"
            else "name the repository of a checkpoint in safetensors, e.g. one of the catalogue's hub ids."
        )
        raise WeightsError(Problem("the source", None, text, repair))
    there = {stored.name: stored for stored in bucket.objects(f"{folder}/")}
    progress.begin(sum(item.size for item in items))
    work = _Work(folder, there, items, watch, progress)
    work.outcome.left_out = len(every) - len(items)
    threads = [threading.Thread(target=work.do, daemon=True) for _ in range(min(FILES_AT_A_TIME, len(items)))]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:
        watch.stop()  # interrupted: each file under way stops at its next piece
        raise
    finally:
        progress.end()
    outcome = work.outcome
    if not outcome.failures and outcome.copied + outcome.unchanged < len(items):
        raise StoppedError("the copy was stopped before all files were copied")
    return outcome


class _Work:
    """The files that are still to be checked or copied, shared by several threads."""

    def __init__(
        self, folder: str, there: Mapping[str, Stored], items: Sequence[Item], watch: Watch, progress: Progress
    ) -> None:
        self.outcome = Outcome()
        self._folder, self._there, self._watch, self._progress = folder, there, watch, progress
        self._lock, self._items = threading.Lock(), queue.SimpleQueue[Item]()
        for item in sorted(items, key=lambda item: -item.size):  # the largest first: they take longest
            self._items.put(item)

    def do(self) -> None:
        """Copies one file after the other until none is left, or one failed."""
        while True:
            try:
                item = self._items.get_nowait()
                self._watch.check()
                self._copy(item)
            except (queue.Empty, StoppedError):
                return
            except (RestError, OSError) as error:  # OSError: the journal cannot be written
                with self._lock:
                    self.outcome.failures.append(
                        text if item.path in (text := one_line(error)) else f"{item.path}: {text}"
                    )
                self._watch.stop()

    def _copy(self, item: Item) -> None:
        name = f"{self._folder}/{item.path}"
        stored = self._there.get(name)
        if stored and stored.size == item.size and item.same(stored):
            self._progress.advance(item.size, moved=False)
            with self._lock:
                self.outcome.unchanged += 1
            return
        item.copy(name, stored)
        self._progress.line(f"  {item.path}: {'replaced' if stored else 'copied'}")
        with self._lock:
            self.outcome.copied += 1
            self.outcome.copied_bytes += item.size


def _holds(transfer: Transfer, stored: Stored, expected: Expected) -> bool:
    """Whether an object has the expected content: by the hash in its metadata, else by reading it once."""
    noted = stored.metadata.get(expected.kind)
    if noted is not None or not expected.size:
        return noted == expected.value or not expected.size
    budget = RetryBudget(transfer.watch)
    while True:
        digest = Digest(expected)
        try:
            with transfer.bucket.open(stored.name) as pieces:
                for piece in pieces:
                    transfer.watch.check()
                    digest.update(piece)
        except UnreachableError as error:
            budget.note_failure(error)
        else:
            return digest.matches


@dataclass(frozen=True, slots=True)
class BucketSource:
    """A folder of another bucket; `label` is noted as the source of each copied object that notes none itself."""

    source: Bucket
    folder: str
    bucket: Bucket
    journal: Journal
    watch: Watch
    progress: Progress
    label: str = ""

    def items(self) -> list[Item]:
        """Return its files.

        Raises:
            WeightsError: The bucket does not exist.
        """
        prefix = f"{self.folder}/" if self.folder else ""
        files = [stored for stored in self.source.objects(prefix) if not stored.name.endswith("/")]
        return [self._item(stored, stored.name.removeprefix(prefix)) for stored in files]

    def _item(self, stored: Stored, path: str) -> Item:
        return Item(
            path,
            stored.size,
            stored.same_content,
            lambda name, replaced: self._rewrite(stored, name, replaced),
            is_cheap=True,
        )

    def _rewrite(self, stored: Stored, name: str, replaced: Stored | None) -> None:
        generation = replaced.generation if replaced else "0"
        place = f"{self.bucket.base} {self.bucket.name} {name}"
        content = f"gs://{self.source.name}/{stored.name}#{stored.generation}"
        token, done = self.journal.find(place, content, generation), 0
        while True:
            self.watch.check()
            try:
                at, token, made = self.bucket.rewrite(self.source.name, stored, name, generation, token)
            except ApiError as error:
                self.journal.drop(place)
                if error.status == 412:
                    raise changed_meanwhile(self.bucket.name, name) from None
                raise
            self.progress.advance(at - done)
            done = at
            if not token:
                break
            self.journal.keep(Entry(place, content, generation, token))
        self.journal.drop(place)
        if not stored.same_content(written := Stored.of(made)):
            self.bucket.delete(written)
            text = f"its hash differs from that of {content}, so it was deleted again."
            problem = Problem(f"gs://{self.bucket.name}/{name}", None, text, "run the same command again.")
            raise WeightsError(problem)
        if self.label and SOURCE not in stored.metadata:
            self.bucket.note(written, {SOURCE: self.label})
