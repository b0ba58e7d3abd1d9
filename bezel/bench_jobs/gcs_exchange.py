"""Exchange of documents between a load job's tasks and the command that started it, below a prefix of a bucket.

Owns reading, writing and clearing it. Leaves out what the documents mean: see `bezel_bench.distributed.protocol`.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote

from bezel.bench_jobs.cloud_run_jobs import unless_missing
from bezel.rest import ApiError, GoogleClient, RestError, UnreachableError
from bezel.weights.bucket import Bucket, Stored
from bezel.weights.retry import RetryBudget, Watch
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

_PIECE_BYTES = 8 * 1024 * 1024


class BucketExchange:
    """The objects below a prefix; an `Exchange` of `distributed.protocol`, and a context manager.

    Args:
        address: `gs://BUCKET/PREFIX`.
        seconds: Time limit for all operations together.

    Raises:
        UserError: The address has another form.
    """

    def __init__(self, address: str, seconds: float) -> None:
        bucket, _, prefix = address.removeprefix("gs://").partition("/")
        if not address.startswith("gs://") or not bucket or not prefix.strip("/"):
            consequence = "the address is not a prefix in a bucket, so no plan can be read."
            raise UserError(Problem("gs://BUCKET/PREFIX", address, consequence, "write gs://BUCKET/PREFIX."))
        self.address = address.rstrip("/")
        self._prefix = prefix.strip("/")
        self._watch = Watch(seconds)
        self._bucket = Bucket(bucket, self._watch)
        self._objects = f"b/{quote(bucket, safe='')}/o"
        self._google = GoogleClient()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bucket.close()
        self._google.close()

    def read(self, name: str) -> dict[str, Any] | None:
        """The document of that name, None if there is none.

        Raises:
            RestError: The bucket cannot be read.
        """
        url = f"{self._bucket.base}{self._objects}/{quote(self._name(name), safe='')}"
        try:
            return unless_missing(lambda: self._google.get(url, params={"alt": "media"}))
        except ApiError as error:
            raise self._refusal(error) from None

    def write(self, name: str, document: dict[str, Any]) -> int:
        """Write a document; return Cloud Storage's time of its creation in ns since the epoch.

        Raises:
            RestError: The bucket cannot be written.
        """
        url = f"{self._bucket.uploads}{self._objects}"
        query = {"uploadType": "media", "name": self._name(name)}
        try:
            row = self._google.post(url, json=document, params=query, idempotent=True)
        except ApiError as error:
            raise self._refusal(error) from None
        return round(datetime.fromisoformat(row["timeCreated"]).timestamp() * 1e9)

    def get(self, name: str) -> bytes:
        """The bytes of an object.

        Raises:
            RestError: The object cannot be read.
        """
        budget = RetryBudget(self._watch)
        while True:
            try:
                with self._bucket.open(self._name(name)) as chunks:
                    return b"".join(chunks)
            except UnreachableError as error:
                budget.note_failure(error)

    def put(self, name: str, content: bytes) -> None:
        """Write bytes as an object, in place of the one of that name.

        Raises:
            RestError: The object cannot be written.
        """
        old = self._bucket.find(self._name(name))
        session = self._bucket.begin(self._name(name), {}, old.generation if old else "0")
        budget = RetryBudget(self._watch)
        at: int | Stored | None = 0
        while isinstance(at, int):
            try:
                at = self._bucket.put(session, content[at : at + _PIECE_BYTES], at, len(content))
                budget.note_progress()
            except UnreachableError as error:
                budget.note_failure(error)
                at = self._bucket.upload_progress(session, len(content))
        if at is None:
            raise RestError(f"{self.address}/{name}: Cloud Storage has discarded the upload. Run the command again.")

    def names(self) -> Iterator[str]:
        """Names of the objects below the prefix.

        Raises:
            RestError: The bucket cannot be listed.
        """
        yield from (str(row["name"]).removeprefix(f"{self._prefix}/") for row in self._rows())

    def clear(self) -> int:
        """Delete every object below the prefix; return how many there were.

        Raises:
            RestError: A request failed, so objects may be left.
        """
        try:
            rows = list(self._rows())
        except ApiError as error:
            if error.status == 404:  # no such bucket (any more), so no objects
                return 0
            raise self._refusal(error) from None
        for row in rows:
            try:
                self._bucket.delete(Stored.of(row))
            except ApiError as error:
                # Another process deleted it, or replaced it and owns the new one.
                if error.status not in {404, 412}:
                    raise
        return len(rows)

    def _rows(self) -> Iterator[dict[str, Any]]:
        query = {"prefix": f"{self._prefix}/", "fields": "items(name,size,generation),nextPageToken"}
        return self._google.pages(f"{self._bucket.base}{self._objects}", "items", params=query)

    def _refusal(self, error: ApiError) -> RestError:
        """The refusal, with the command that repairs it where there is one."""
        bucket = f"gs://{self._bucket.name}"
        repair = {
            403: f"gcloud storage buckets add-iam-policy-binding {shell_word(bucket)} --member=... "
            "--role=roles/storage.objectUser",
            404: f"gcloud storage buckets create {shell_word(bucket)} --uniform-bucket-level-access --location=REGION",
        }.get(error.status)
        if repair is None or error.is_disabled:
            return error
        consequence = f"{error.message} The tasks cannot exchange documents with the command that started them."
        return RestError(Problem(self.address, None, consequence, f"run `{repair}`."))

    def _name(self, name: str) -> str:
        return f"{self._prefix}/{name}"
