"""Client of the Hugging Face hub: the files of a model at a commit, and their bytes from any offset.

Uses the hub's own HTTP API: a revision's commit, its tree with sizes and hashes, and downloads by Range. The token is
sent to the hub's own host only, never to the storage that it redirects to. Leaves out the destination of the bytes.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from bezel.rest import UnreachableError, guarded
from bezel.rest.retry import is_retryable, retry_delay
from bezel.rest.transport import new_client
from bezel.weights.errors import WeightsError
from bezel.weights.retry import Patience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import httpx

    from bezel.weights.retry import Watch
import base64
import hashlib

# Keys of an object's custom metadata under which a verified hash is stored.
SHA256 = "bezel-sha256"
GIT_BLOB = "bezel-git-sha1"


@dataclass(frozen=True, slots=True)
class Expected:
    """Size and hash that a file must have.

    Attributes:
        kind: SHA256 of the content (large files), or GIT_BLOB, git's SHA-1 of a blob (all others).
        value: In hexadecimal digits.
        size: Bytes.
    """

    kind: str
    value: str
    size: int


class Digest:
    """Incremental hash of a content, as the hub and as Cloud Storage compute it."""

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self._own = hashlib.sha256() if expected.kind == SHA256 else hashlib.sha1(usedforsecurity=False)
        if expected.kind == GIT_BLOB:
            self._own.update(b"blob %d\0" % expected.size)
        self._md5 = hashlib.md5(usedforsecurity=False)

    def update(self, content: bytes) -> None:
        """Adds the next bytes."""
        self._own.update(content)
        self._md5.update(content)

    @property
    def matches(self) -> bool:
        """Whether the bytes added so far are the whole expected content."""
        return self._own.hexdigest() == self._expected.value

    @property
    def md5(self) -> str:
        """The MD5 as Cloud Storage writes it: Base64."""
        return base64.b64encode(self._md5.digest()).decode()


PUBLIC = "https://huggingface.co"
_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_REDIRECTS = 5
_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Repository:
    """A model on the hub at a revision: a branch, a tag or a commit."""

    id: str
    revision: str = "main"

    @classmethod
    def of(cls, text: str) -> Repository:
        """Reads `OWNER/NAME` or `OWNER/NAME@REVISION`.

        Raises:
            WeightsError: The text has neither form.
        """
        name, _, revision = text.partition("@")
        if not _ID.fullmatch(name) or (not revision and "@" in text):
            raise WeightsError(
                f"hf:{text} names no model.",
                "nothing can be looked up on the hub.",
                "write hf:OWNER/NAME or hf:OWNER/NAME@REVISION, e.g. hf:google/gemma-4-12b-it.",
            )
        return cls(name, revision or "main")

    def __str__(self) -> str:
        return f"hf:{self.id}@{self.revision}"


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a model at a commit."""

    path: str
    expected: Expected


class Hub:
    """Client of the hub; sends a token only where the hub requires one.

    Args:
        watch: The deadline.
        token: Returns the token when the hub first requires one; "" for none.
        environ: The environment; HF_ENDPOINT in it replaces the public hub.
    """

    def __init__(
        self, watch: Watch, token: Callable[[], str] = lambda: "", environ: Mapping[str, str] = os.environ
    ) -> None:
        self.base = guarded(environ.get("HF_ENDPOINT", "").strip() or PUBLIC, "HF_ENDPOINT").rstrip("/")
        self._watch = watch
        self._ask_token = token
        self._token: str | None = None
        self._client = new_client(_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def files(self, repository: Repository) -> tuple[str, list[HubFile]]:
        """Return the commit of a revision, and its files.

        Raises:
            WeightsError: The model or revision does not exist, or may not be read.
            UnreachableError: The hub did not respond.
        """
        try:
            return self._files(repository)
        except (KeyError, TypeError, AttributeError):
            raise WeightsError(
                f"{self.base} describes {repository} in another shape than the hub's API.",
                "nobody knows which files the model has.",
                "check HF_ENDPOINT, and whether a proxy answers in place of the hub.",
            ) from None

    def _files(self, repository: Repository) -> tuple[str, list[HubFile]]:
        revision = quote(repository.revision, safe="")
        commit = str(self._json(f"{self.base}/api/models/{repository.id}/revision/{revision}", repository)[0]["sha"])
        url = f"{self.base}/api/models/{repository.id}/tree/{commit}?recursive=true"
        found: list[HubFile] = []
        while url:
            page, url = self._json(url, repository)
            found += [_file(row, repository) for row in page if row.get("type") == "file"]
        return commit, found

    @contextmanager
    def open(self, repository: Repository, commit: str, path: str, begin: int) -> Iterator[Iterator[bytes]]:
        """Yields the bytes of a file from `begin` on, in a single attempt, which may break off anywhere.

        Raises:
            WeightsError: The file does not exist, or may not be read.
            UnreachableError: A transient failure; `asked_seconds` of a BusyError is the least wait before a retry.
        """
        import httpx

        url = f"{self.base}/{repository.id}/resolve/{commit}/{quote(path)}"
        headers = {"Range": f"bytes={begin}-"} if begin else {}
        try:
            answer = self._follow(url, headers | {"Accept-Encoding": "identity"}, stream=True)
            try:
                _raise_for(answer, repository, path)
                yield _from(answer, begin)
            finally:
                answer.close()
        except httpx.HTTPError as error:
            raise UnreachableError(f"{repository} {path}: the download broke off ({type(error).__name__})") from None

    def _json(self, url: str, repository: Repository) -> tuple[Any, str]:
        """Return the JSON of a response and the URL of the next page, "" at the last."""
        import httpx

        patience = Patience(self._watch)
        while True:
            try:
                answer = self._follow(url, {}, stream=False)
                _raise_for(answer, repository, "")
                following = answer.links.get("next", {}).get("url", "")
                return answer.json(), self._own(urljoin(url, following)) if following else ""
            except httpx.HTTPError as error:
                patience.failed(UnreachableError(f"the hub did not answer ({type(error).__name__})"))
            except BusyError as error:
                patience.failed(error, error.asked_seconds)
            except ValueError:
                raise WeightsError(
                    f"The answer of {self.base} is no JSON.",
                    "nobody knows which files the model has.",
                    "check HF_ENDPOINT, and whether a proxy answers in place of the hub.",
                ) from None

    def _follow(self, url: str, headers: Mapping[str, str], *, stream: bool) -> httpx.Response:
        for _ in range(_REDIRECTS):
            self._watch.check()
            answer = self._send(url, headers, stream=stream)
            if answer.status_code not in {301, 302, 303, 307, 308} or "location" not in answer.headers:
                return answer
            answer.close()
            url = guarded(urljoin(url, answer.headers["location"]), "the address that the hub redirects to")
        raise UnreachableError("the hub redirects in a circle")

    def _send(self, url: str, headers: Mapping[str, str], *, stream: bool) -> httpx.Response:
        """Sends one request; reads the token when the hub's own host first refuses a request without one."""
        ours = _origin(url) == _origin(self.base)
        authorised = {"Authorization": f"Bearer {self._token}"} if ours and self._token else {}
        request = self._client.build_request("GET", url, headers={**headers, **authorised})
        answer = self._client.send(request, stream=stream)
        if answer.status_code in {401, 403} and ours and self._token is None:
            self._token = self._ask_token()
            if self._token:
                answer.close()
                return self._send(url, headers, stream=stream)
        return answer

    def _own(self, url: str) -> str:
        if _origin(url) != _origin(self.base):
            raise WeightsError(
                f"{self.base} says that its list goes on elsewhere.",
                "a token could be sent to a stranger.",
                "check HF_ENDPOINT.",
            )
        return url


class BusyError(UnreachableError):
    """The hub limits the rate of requests, or has a server error."""

    def __init__(self, text: str, asked_seconds: float) -> None:
        super().__init__(text)
        self.asked_seconds = asked_seconds


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _file(row: Mapping[str, Any], repository: Repository) -> HubFile:
    path, stored = str(row["path"]), row.get("lfs")
    if path.startswith("/") or any(part in {"", ".", ".."} for part in path.split("/")):
        raise WeightsError(
            f"{repository} lists a file {path!r}.",
            "it would land outside the model's folder: nothing was copied.",
            "do not use this source.",
        )
    if stored:
        return HubFile(path, Expected(SHA256, str(stored["oid"]), int(stored["size"])))
    return HubFile(path, Expected(GIT_BLOB, str(row["oid"]), int(row["size"])))


def _from(answer: httpx.Response, begin: int) -> Iterator[bytes]:
    """Yield the body from `begin` on, also where the server ignored the Range."""
    started = re.match(r"bytes (\d+)-", answer.headers.get("content-range", ""))
    at = int(started[1]) if answer.status_code == 206 and started else 0
    for piece in answer.iter_raw():
        yield piece[max(0, begin - at) :] if at < begin else piece
        at += len(piece)


def _raise_for(answer: httpx.Response, repository: Repository, path: str) -> None:
    status = answer.status_code
    if answer.is_success:
        return
    code, what = answer.headers.get("x-error-code", ""), f"{repository}{f' {path}' if path else ''}"
    if is_retryable(status, idempotent=True) or status == 408:
        raise BusyError(f"{what}: the hub answers {status}", retry_delay(answer.headers.get("retry-after")))
    page = f"{answer.request.url.scheme}://{answer.request.url.host}/{repository.id}"
    if status == 403 or code == "GatedRepo":
        raise WeightsError(
            f"{what} is gated ({status}): the hub gives it to those who accepted its terms.",
            "nothing of it was copied.",
            f"accept the terms at {page}, and set HF_TOKEN to a token of that account (or name a secret: "
            "bezel:secrets.HF_TOKEN).",
        )
    if status == 401:
        raise WeightsError(
            f"{what} does not exist, or is private ({status}).",
            "nothing was copied.",
            "correct the name; for a private model set HF_TOKEN (or name a secret: bezel:secrets.HF_TOKEN) to a token "
            "that may read it.",
        )
    if status in {404, 410}:
        raise WeightsError(
            f"{what} does not exist ({code or status}).",
            "nothing of it was copied." if path else "nothing was copied.",
            "run the same command again: the model changed meanwhile."
            if path
            else "correct the name or the revision: hf:OWNER/NAME[@REVISION].",
        )
    raise WeightsError(f"{what}: the hub answers {status} {code}".rstrip() + ".", "nothing was copied.", "try later.")
