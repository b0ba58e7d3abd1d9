"""Client of one Cloud Storage bucket: its objects, resumable uploads, and copies from another bucket.

Uses the JSON API (objects.list, get, delete, rewrite; resumable uploads). An object is visible only once it is
complete. Leaves out the choice of files to copy.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from bezel.rest import ApiError, Credentials, GoogleClient, RestError, UnreachableError, endpoint, url_for_token
from bezel.rest.client import is_retryable
from bezel.rest.transport import new_client
from bezel.weights.errors import WeightsError
from bezel.weights.retry import RetryBudget
from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import httpx

    from bezel.weights.retry import Watch

_TIMEOUT_SECONDS = 60.0
_SLICE_BYTES = 64 * 1024
_FIELDS = "name,size,md5Hash,crc32c,generation,metadata"


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as the bucket describes it; `metadata` is the custom metadata that its writer set."""

    name: str
    size: int
    generation: str
    md5: str = ""
    crc32c: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Stored:
        """Reads the API's description."""
        return cls(
            name=str(row["name"]),
            size=int(row["size"]),
            generation=str(row["generation"]),
            md5=str(row.get("md5Hash") or ""),
            crc32c=str(row.get("crc32c") or ""),
            metadata=dict(row.get("metadata") or {}),
        )

    def same_content(self, other: Stored) -> bool:
        """Whether both have the same size and the same MD5 or CRC32C; composed objects have no MD5."""
        if self.size != other.size:
            return False
        if self.md5 and other.md5:
            return self.md5 == other.md5
        return bool(self.crc32c) and self.crc32c == other.crc32c


class Bucket:
    """One bucket, as the environment's credentials see it; safe to share between threads.

    Args:
        name: Without `gs://`.
        watch: The deadline.
    """

    def __init__(self, name: str, watch: Watch) -> None:
        self.name = name
        self.base = endpoint("STORAGE")
        parts = urlsplit(self.base)
        self.uploads = f"{parts.scheme}://{parts.netloc}/upload{parts.path}"
        self._upload_url = f"{self.uploads}b/{quote(name, safe='')}/o"
        self._watch = watch
        self._credentials = Credentials()
        self._google = GoogleClient(self._credentials, timeout_seconds=_TIMEOUT_SECONDS, backoff=watch.backoff)
        self._raw = new_client(_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Closes the connections."""
        self._google.close()
        self._raw.close()

    def objects(self, prefix: str = "") -> list[Stored]:
        """Return the objects under a prefix, by name.

        Raises:
            WeightsError: There is no such bucket, or it may not be listed.
        """
        query = {"prefix": prefix, "fields": f"items({_FIELDS}),nextPageToken"}
        try:
            return [Stored.of(row) for row in self._google.pages(self._url(), "items", params=query)]
        except ApiError as error:
            if error.status == 404:
                repair = (
                    "correct bezel:weights.bucket, or create the bucket: "
                    f"`gcloud storage buckets create gs://{shell_word(self.name)} --uniform-bucket-level-access "
                    "--location=REGION` "
                    "(a stack with weights.create creates it in its first deployment)."
                )
                raise WeightsError(Problem(f"bucket {self.name}", None, "does not exist.", repair)) from None
            raise self._explain(error) from None

    def find(self, name: str) -> Stored | None:
        """One object, None where there is none."""
        try:
            return Stored.of(self._google.get(self._url(name), params={"fields": _FIELDS}))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    @contextmanager
    def open(self, name: str, begin: int = 0, end: int | None = None) -> Iterator[Iterator[bytes]]:
        """Yields the bytes of an object from `begin` to before `end`, in a single attempt.

        Raises:
            UnreachableError: The download broke off.
            ApiError: It may not be read.
        """
        import httpx

        part = {} if end is None else {"Range": f"bytes={begin}-{end - 1}"}
        headers = {**self._credentials.headers(), **part}
        request = self._raw.build_request("GET", self._url(name), params={"alt": "media"}, headers=headers)
        try:
            response = self._raw.send(request, stream=True)
            try:
                if not response.is_success:
                    raise ApiError.of(response.status_code, response.read(), method="GET", url=self._url(name))
                yield response.iter_bytes()
            finally:
                response.close()
        except httpx.HTTPError as error:
            raise UnreachableError(f"gs://{self.name}/{name}: the download broke ({type(error).__name__})") from None

    def begin(self, name: str, metadata: Mapping[str, str], generation: str) -> str:
        """Starts a resumable upload; returns its URL, which lets anyone who has it write the object.

        Args:
            name: Name of the object.
            metadata: Custom metadata to set on it.
            generation: Generation of the object to replace, "0" for none: an object written meanwhile is not
                overwritten.
        """
        query = {"uploadType": "resumable", "name": name, "ifGenerationMatch": generation}
        body = {"metadata": dict(metadata), "contentType": "application/octet-stream"}
        response = self._repeat("POST", self._upload_url, params=query, json=body)
        return url_for_token(response.headers["location"], "the upload's address")

    def upload_progress(self, session: str, size: int) -> int | Stored | None:
        """Return the bytes that an upload has received; the object if it is complete; None if it does not exist.

        Raises:
            ApiError: The upload was refused.
            UnreachableError: There was no response that can be read too often.
        """
        budget = RetryBudget(self._watch)
        while True:
            response = self._repeat("PUT", session, headers={"Content-Range": f"bytes */{size}"}, content=b"")
            try:
                return None if response.status_code in {404, 410} else _progress(response)
            except UnreachableError as error:
                budget.note_failure(error)

    def put(self, session: str, content: bytes, begin: int, size: int) -> int | Stored:
        """Sends the next bytes of an upload, once; all but the last piece are multiples of 256 KiB.

        Returns:
            The number of bytes that the bucket has received, or the object if the upload is complete.

        Raises:
            UnreachableError: It is unknown how many bytes arrived: call `upload_progress`.
            ApiError: They were refused.
        """
        import httpx

        headers = {
            **self._credentials.headers(),
            "Content-Range": f"bytes {begin}-{begin + len(content) - 1}/{size}",
            "Content-Length": str(len(content)),
        }
        # In slices: the transport copies the rest of a block after each write to the socket.
        slices = (content[at : at + _SLICE_BYTES] for at in range(0, len(content), _SLICE_BYTES))
        try:
            response = self._raw.put(session, content=slices, headers=headers)
        except httpx.HTTPError as error:
            raise UnreachableError(f"gs://{self.name}: an upload broke off ({type(error).__name__})") from None
        if (progress := _progress(response)) is not None:
            return progress
        failure = ApiError.of(response.status_code, response.content, method="PUT", url=session)
        if self._may_pass(response.status_code):
            raise UnreachableError(str(failure)) from None
        raise self._explain(failure)

    def put_empty(self, name: str, generation: str) -> None:
        """Writes an object without content, which needs no resumable upload."""
        query = {"uploadType": "media", "name": name, "ifGenerationMatch": generation}
        headers = {"Content-Type": "application/octet-stream"}
        self._repeat("POST", self._upload_url, params=query, headers=headers, content=b"")

    def delete(self, stored: Stored) -> None:
        """Deletes an object if it still has this generation."""
        url = self._url(stored.name)
        self._google.request("DELETE", url, params={"ifGenerationMatch": stored.generation})

    def note(self, stored: Stored, metadata: Mapping[str, str]) -> None:
        """Adds custom metadata to an object if it still has this generation.

        Identities that may create objects and not change them leave it without.
        """
        query, body = {"ifGenerationMatch": stored.generation}, {"metadata": dict(metadata)}
        try:
            self._google.request("PATCH", self._url(stored.name), params=query, json=body, idempotent=True)
        except ApiError as error:
            if error.status not in {403, 412}:
                raise

    def rewrite(self, source: str, what: Stored, name: str, generation: str, token: str) -> tuple[int, str, Any]:
        """Performs one step of a copy inside Cloud Storage, which moves no byte through this machine.

        Args:
            source: Name of the source bucket.
            what: The source object.
            name: Name of the object in this bucket.
            generation: Generation of the object to replace in this bucket, "0" for none.
            token: Token that the previous step returned; "" for the first step.

        Returns:
            The bytes copied so far; the token of the next step, "" after the last; the description of the object, {}
            before the last step.
        """
        url = (
            f"{self.base}b/{quote(source, safe='')}/o/{quote(what.name, safe='')}"
            f"/rewriteTo/b/{quote(self.name, safe='')}/o/{quote(name, safe='')}"
        )
        query = {"ifGenerationMatch": generation, "ifSourceGenerationMatch": what.generation}
        if token:
            query["rewriteToken"] = token
        try:
            response = self._google.post(
                url, params=query | ({"rewriteToken": token} if token else {}), idempotent=True
            )
        except ApiError as error:
            raise self._explain(error) from None
        if response.get("done"):
            return what.size, "", response.get("resource") or {}
        return int(response.get("totalBytesRewritten") or 0), str(response["rewriteToken"]), {}

    def _repeat(
        self, method: str, url: str, *, headers: Mapping[str, str] | None = None, **options: Any
    ) -> httpx.Response:
        """Sends a request until it succeeds or reports the state of an upload, with waits in between.

        Raises:
            ApiError: The same request cannot succeed later.
            UnreachableError: There was no response too often.
        """
        import httpx

        budget = RetryBudget(self._watch)
        while True:
            failure: RestError
            try:
                response = self._raw.request(
                    method, url, headers={**self._credentials.headers(), **(headers or {})}, **options
                )
            except httpx.HTTPError as error:
                failure = UnreachableError(f"{method} {url.split('?', 1)[0]}: no response ({type(error).__name__})")
            else:
                if response.is_success or (method == "PUT" and response.status_code in {308, 404, 410}):
                    return response
                failure = ApiError.of(response.status_code, response.content, method=method, url=url)
                if not self._may_pass(response.status_code):
                    raise self._explain(failure)
            budget.note_failure(failure)

    def _explain(self, error: ApiError) -> RestError:
        """Return the error for the user: a refusal (403) with its repair, any other error unchanged."""
        if error.status != 403 or error.is_disabled:
            return error
        text = f"these credentials cannot list, read or write it: {error.message}"
        repair = (
            f"run `gcloud storage buckets add-iam-policy-binding gs://{shell_word(self.name)} --member=user:YOU "
            "--role=roles/storage.objectAdmin` (to read or list only: roles/storage.objectViewer)."
        )
        return WeightsError(Problem(f"gs://{self.name}", None, text, repair))

    def _may_pass(self, status: int) -> bool:
        """Whether the same request may succeed later; drops the token where it was refused (401)."""
        if status == 401:
            self._credentials.forget()
        return status == 401 or is_retryable(status, idempotent=True)

    def _url(self, name: str | None = None) -> str:
        url = f"{self.base}b/{quote(self.name, safe='')}/o"
        return url if name is None else f"{url}/{quote(name, safe='')}"


def _progress(response: httpx.Response) -> int | Stored | None:
    """Return the progress that a response to an upload reports; None for a failure.

    Raises:
        UnreachableError: The response cannot be parsed.
    """
    if response.status_code == 308:
        byte_range = response.headers.get("range", "")
        return int(byte_range.rpartition("-")[2]) + 1 if byte_range else 0
    if not response.is_success:
        return None
    try:
        return Stored.of(response.json())
    except (ValueError, KeyError):
        raise UnreachableError("Cloud Storage ended an upload without describing the object") from None
