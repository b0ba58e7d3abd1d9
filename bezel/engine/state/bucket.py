"""Objects of the bucket that holds a pipeline's states, each read and written with its generation.

Owns the backend's URL, preconditions with lost answers, and the errors of Cloud Storage with their repairs. Leaves out
what the objects mean: `.pulumi/` is the engine's, `plans/` that of reviewed changes, `locks/` that of the runs.

The bucket is where the engine finds it: at `STORAGE_EMULATOR_HOST` if that is set, else at Google's address.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, quote, unquote, urlsplit

from bezel.rest import ApiError, Credentials, CredentialsError, GoogleClient, RestError, UnreachableError, endpoint
from bezel.rest.client import is_retryable
from bezel.rest.endpoints import url_for_token
from bezel_base.errors import NOT_SET, Problem
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    import httpx

BACKEND = "PULUMI_BACKEND_URL"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_SECONDS = 60.0
_FORM = "write gs://BUCKET, or gs://BUCKET/PREFIX."
# Parameters of the engine's URL that change no object's place: they are for signed links, which it never makes.
_HARMLESS = frozenset({"access_id", "private_key_path"})


class BackendError(RestError):
    """The backend's URL names no bucket of Cloud Storage."""


class PreconditionError(RestError):
    """The object does not have the generation that the caller expects: another writer came first."""


@dataclass(frozen=True)
class Entry:
    """An object of a list: its name, its generation, and when it was written (RFC 3339)."""

    name: str
    generation: int
    updated: str


@dataclass(frozen=True)
class StateBucket:
    """A bucket of states, or a prefix in it; every name is relative to the prefix. A context manager.

    Attributes:
        name: The bucket's name.
        prefix: "" or a prefix that ends in a slash.
        client: The client that sends the requests; its deadline holds for each operation.
        base: Address of the storage API.
    """

    name: str
    prefix: str
    client: GoogleClient
    base: str

    @classmethod
    def of(cls, backend_url: str | None, environ: Mapping[str, str] | None = None) -> Self:
        """The bucket of a backend's URL.

        Args:
            backend_url: The engine's backend, `gs://BUCKET` or `gs://BUCKET/PREFIX`.
            environ: Variables that say where Cloud Storage is; the process's by default.

        Raises:
            BackendError: The URL has another form.
        """
        name, prefix = parse(backend_url)
        base, has_identity = _address(os.environ if environ is None else environ)
        credentials = Credentials(environ=environ) if has_identity else _NoCredentials()
        return cls(name, prefix, GoogleClient(credentials, deadline_seconds=_SECONDS), base)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    @property
    def url(self) -> str:
        """The bucket and prefix as the engine's URL, without a slash at the end."""
        return f"gs://{self.name}/{self.prefix}".rstrip("/")

    def read(self, name: str) -> tuple[bytes, int] | None:
        """The content and the generation of an object; None if there is none of that name.

        Raises:
            RestError: It cannot be read, or there is no such bucket.
        """
        try:
            response = self.client.send("GET", self._object(name), params={"alt": "media"})
        except ApiError as error:
            if _is_no_object(error):
                return None
            raise self._explain(error, "read", name) from None
        return response.content, int(response.headers["x-goog-generation"])

    def create(self, name: str, data: bytes) -> int:
        """Write an object that must not exist yet, and return its generation.

        If an answer is lost, the object is read back: the same bytes are taken for this write's. Writers that must be
        distinguished write something of their own.

        Raises:
            PreconditionError: An object of that name exists.
            UnreachableError: No answer came within the deadline: the object may exist or not.
            RestError: Cloud Storage refused.
        """
        return self._write(name, data, 0)

    def replace(self, name: str, data: bytes, generation: int) -> int:
        """Write an object in place of one generation of it, and return the new generation.

        Raises:
            PreconditionError: The object has another generation, or is gone.
            UnreachableError: No answer came within the deadline: it may be replaced or not.
            RestError: Cloud Storage refused.
        """
        return self._write(name, data, generation)

    def delete(self, name: str, generation: int) -> None:
        """Delete one generation of an object; one that is gone already is no error.

        Raises:
            PreconditionError: The object has another generation.
            UnreachableError: No answer came within the deadline.
            RestError: Cloud Storage refused.
        """
        answer, is_repeated = self._definite("DELETE", self._object(name), {"ifGenerationMatch": generation})
        if not isinstance(answer, ApiError) or _is_no_object(answer):
            return
        if answer.status != 412:
            raise self._explain(answer, "delete", name)
        # After a lost answer that generation is gone either way.
        if not is_repeated:
            raise self._conflict(name, f"it does not have the generation {generation} any more.")

    def list(self, prefix: str = "") -> tuple[Entry, ...]:
        """The objects whose names begin with `prefix`, by name. Names are compared as text: end folders with a slash.

        Raises:
            RestError: The bucket cannot be listed, or there is none.
        """
        query = {"prefix": self.prefix + prefix, "fields": "items(name,generation,updated),nextPageToken"}
        try:
            rows = [*self.client.pages(self._objects(), "items", params=query)]
        except ApiError as error:
            raise self._explain(error, "list", prefix) from None
        start = len(self.prefix)
        return tuple(
            Entry(str(row["name"])[start:], int(row["generation"]), str(row.get("updated", ""))) for row in rows
        )

    def _write(self, name: str, data: bytes, generation: int) -> int:
        parts = urlsplit(self._objects())
        url = f"{parts.scheme}://{parts.netloc}/upload{parts.path}"
        query: dict[str, str | int] = {"uploadType": "media", "name": self.prefix + name}
        query["ifGenerationMatch"] = generation
        answer, is_repeated = self._definite("POST", url, query, data)
        if not isinstance(answer, ApiError):
            return int(answer.json()["generation"])
        verb = "replace" if generation else "create"
        # An account that may only create gets a 403 where the object exists, for it may not delete it.
        if answer.status not in {403, 412}:
            raise self._explain(answer, verb, name)
        try:
            current = self.read(name)
        except RestError:
            raise self._explain(answer, verb, name) from None
        if current is None and answer.status == 403:
            raise self._explain(answer, verb, name)
        if current is not None and is_repeated and current[0] == data and current[1] > generation:
            return current[1]
        if current is not None and answer.status == 403 and generation == current[1]:
            raise self._explain(answer, verb, name)
        if not generation:
            raise self._conflict(name, "it exists already.")
        present = f"it has the generation {current[1]}" if current else "it is gone"
        raise self._conflict(name, f"{present}; it was to be replaced at the generation {generation}.")

    def _definite(
        self, method: str, url: str, query: Mapping[str, str | int], data: bytes | None = None
    ) -> "tuple[httpx.Response | ApiError, bool]":
        """Send a change until its answer says what became of it.

        Returns:
            The answer, and whether an earlier attempt, whose answer was lost, may have made the change.
        """
        client, is_repeated = self.client, False
        end = client.clock() + client.deadline_seconds
        for delay in client.backoff.delays(client.dice):
            try:
                sent = client.send(method, url, content=data, params=query, idempotent=False)
            except UnreachableError:
                if client.clock() + delay >= end:
                    raise
            except ApiError as error:
                # Not one of 429: the client has repeated that until its deadline.
                if not is_retryable(error.status, idempotent=True) or client.clock() + delay >= end:
                    return error, is_repeated
            else:
                return sent, is_repeated
            is_repeated = True
            client.sleep(delay)
        raise AssertionError("the waits never end")

    def _objects(self) -> str:
        return f"{self.base}b/{quote(self.name, safe='')}/o"

    def _object(self, name: str) -> str:
        return f"{self._objects()}/{quote(self.prefix + name, safe='')}"

    def _conflict(self, name: str, consequence: str) -> PreconditionError:
        repair = "run the same command again: it starts from what is there now."
        return PreconditionError(Problem(f"{self.url}/{name}", None, consequence, repair))

    def _repair_of_no_bucket(self) -> str:
        """What to do where there is no such bucket."""
        command = (
            f"gcloud storage buckets create gs://{shell_word(self.name)} --uniform-bucket-level-access "
            "--location=REGION"
        )
        return f"correct {BACKEND}, or create the bucket: `{command}`."

    def _explain(self, error: ApiError, verb: str, name: str) -> RestError:
        """The error with its repair: the role that is missing, or the bucket."""
        where = f"{self.url}/{name}".rstrip("/")
        if error.is_disabled:
            return error
        if error.status == 403:
            consequence = f"these credentials may not {verb} it: {error.message}"
            command = (
                f"gcloud storage buckets add-iam-policy-binding gs://{shell_word(self.name)} "
                "--member=serviceAccount:ACCOUNT"
            )
            repair = f"grant the account {_ROLES[verb]}: `{command} --role={_ROLES[verb]}`."
        elif error.status == 404:
            consequence = f"it cannot be used to {verb} objects: {error.message}"
            repair, where = self._repair_of_no_bucket(), f"gs://{self.name}"
        else:
            return error
        return RestError(Problem(where, None, consequence, repair))


_ROLES = {
    "read": "roles/storage.objectViewer",
    "list": "roles/storage.objectViewer",
    "create": "roles/storage.objectCreator",
    "replace": "roles/storage.objectUser",
    "delete": "roles/storage.objectUser",
}


class _NoCredentials(Credentials):
    """No credentials, as Google's own clients have none where STORAGE_EMULATOR_HOST is set."""

    def access_token(self) -> str:
        raise CredentialsError("an emulator of Cloud Storage gets no token")

    def headers(self) -> dict[str, str]:
        return {}


def parse(backend_url: str | None) -> tuple[str, str]:
    """The bucket and the prefix, as the engine reads them from its backend's URL.

    Raises:
        BackendError: It is no URL of a bucket of Cloud Storage, or the engine would use it with another identity.
    """
    if not backend_url:
        consequence = "the states of a pipeline are in a bucket: plans and locks are kept beside them."
        raise BackendError(Problem(BACKEND, NOT_SET, consequence, f"set it: {_FORM}"))
    parts = urlsplit(backend_url)
    query = parse_qs(parts.query, keep_blank_values=True)
    if parts.scheme != "gs":
        consequence = "the states of a pipeline are in a bucket of Cloud Storage; other backends have no preconditions."
        raise BackendError(Problem(BACKEND, _without_password(parts), consequence, _FORM))
    if not _NAME.fullmatch(parts.netloc) or parts.fragment:
        raise BackendError(Problem(BACKEND, _without_password(parts), "it names no bucket.", _FORM))
    if others := sorted(query.keys() - _HARMLESS - {"prefix"}):
        consequence = f"the engine would reach the bucket in another way than the commands here: {', '.join(others)}."
        raise BackendError(Problem(BACKEND, backend_url, consequence, _FORM))
    path = unquote(parts.path).lstrip("/")
    return parts.netloc, query.get("prefix", [""])[0] + (path if not path or path.endswith("/") else f"{path}/")


def _without_password(parts: Any) -> str:
    return str(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl())


def _address(environ: Mapping[str, str]) -> tuple[str, bool]:
    """The address of the storage API, and whether requests to it carry an identity."""
    emulator = environ.get("STORAGE_EMULATOR_HOST", "")
    if not emulator or environ.get("GOOGLE_STORAGE_CUSTOM_ENDPOINT"):
        return endpoint("STORAGE", environ), True
    url = emulator if "://" in emulator else f"http://{emulator}"
    return url_for_token(url, "STORAGE_EMULATOR_HOST").rstrip("/") + "/storage/v1/", False


def _is_no_object(error: ApiError) -> bool:
    """Whether the object is missing, and not the bucket."""
    return error.status == 404 and "no such object" in error.message.lower()
