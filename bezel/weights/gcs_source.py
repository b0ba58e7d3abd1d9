"""Source of a model in another bucket: Cloud Storage copies its objects itself, in as many steps as it needs."""

from dataclasses import dataclass

from bezel.rest import ApiError
from bezel.weights.bucket import Bucket, Stored
from bezel.weights.copy import Item
from bezel.weights.errors import WeightsError
from bezel.weights.progress import Progress
from bezel.weights.retry import Watch
from bezel.weights.upload_sessions import Entry, Journal


@dataclass(frozen=True, slots=True)
class BucketSource:
    """A folder of another bucket."""

    source: Bucket
    folder: str
    bucket: Bucket
    journal: Journal
    watch: Watch
    progress: Progress

    def items(self) -> list[Item]:
        """Return its files.

        Raises:
            WeightsError: The bucket does not exist.
        """
        prefix = f"{self.folder}/" if self.folder else ""
        found = [stored for stored in self.source.objects(prefix) if not stored.name.endswith("/")]
        return [self._item(stored, stored.name.removeprefix(prefix)) for stored in found]

    def _item(self, stored: Stored, path: str) -> Item:
        return Item(
            path, stored.size, stored.same_content, lambda name, replaced: self._rewrite(stored, name, replaced)
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
                    raise WeightsError(
                        f"gs://{self.bucket.name}/{name}, or what it is copied from, was written meanwhile.",
                        "it was left as it is.",
                        "run the same command again, which looks at both.",
                    ) from None
                raise
            self.progress.advance(at - done)
            done = at
            if not token:
                break
            self.journal.keep(Entry(place, content, generation, token))
        self.journal.drop(place)
        if not stored.same_content(written := Stored.of(made)):
            self.bucket.delete(written)
            raise WeightsError(
                f"gs://{self.bucket.name}/{name} has another hash than {content}.",
                "it was taken away again.",
                "run the same command again.",
            )
