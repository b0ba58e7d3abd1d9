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

from bezel.rest import UnreachableError, url_for_token
from bezel.rest.client import is_retryable, retry_delay
from bezel.rest.transport import is_final, new_client
from bezel.weights.errors import WeightsError
from bezel.weights.retry import RetryBudget
from bezel_base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import httpx

    from bezel.weights.retry import Watch
import base64
import hashlib
import json

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
_LONGEST_PAGE = 16 * 1024 * 1024  # of the list of files; the hub sends 1000 rows a page
_MOST_PAGES = 1000
_TOKENS_PAGE = "https://huggingface.co/settings/tokens"


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
        # No name and no reference of git has two periods in a row, which a URL takes as the folder above.
        if not _ID.fullmatch(name) or ".." in text or revision == "." or (not revision and "@" in text):
            repair = "write hf:OWNER/NAME or hf:OWNER/NAME@REVISION, e.g. hf:google/gemma-4-12b-it."
            raise WeightsError(Problem(f"hf:{text}", None, "is not the name of a model.", repair))
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
        purpose: What the caller does with a model, for messages: "copied" or "read".
    """

    def __init__(
        self,
        watch: Watch,
        token: Callable[[], str] = lambda: "",
        environ: Mapping[str, str] = os.environ,
        purpose: str = "copied",
    ) -> None:
        self.base = url_for_token(environ.get("HF_ENDPOINT", "").strip() or PUBLIC, "HF_ENDPOINT").rstrip("/")
        self._purpose = purpose
        self._watch = watch
        self._read_token = token
        self._token: str | None = None
        self._has_answer = False
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
            raise self._not_a_hub(f"its description of {repository} is not that of the hub's API") from None

    def _files(self, repository: Repository) -> tuple[str, list[HubFile]]:
        revision = quote(repository.revision, safe="")
        commit = str(self._json(f"{self.base}/api/models/{repository.id}/revision/{revision}", repository)[0]["sha"])
        url = f"{self.base}/api/models/{repository.id}/tree/{commit}?recursive=true"
        files: list[HubFile] = []
        for _ in range(_MOST_PAGES):
            page, url = self._json(url, repository)
            files += [self._file(row, repository) for row in page if row.get("type") == "file"]
            if not url:
                return commit, files
        raise self._not_a_hub(f"its list of the files of {repository} does not end")

    @contextmanager
    def open(
        self, repository: Repository, commit: str, path: str, begin: int, end: int | None = None
    ) -> Iterator[Iterator[bytes]]:
        """Yields the bytes of a file from `begin` on, in a single attempt, which may break off anywhere.

        Only those before `end` are requested, but a server that ignores ranges sends the rest too.

        Raises:
            WeightsError: The file does not exist, or may not be read.
            UnreachableError: A transient failure; `retry_after` of a BusyError is the least wait before a retry.
        """
        import httpx

        url = f"{self.base}/{repository.id}/resolve/{commit}/{quote(path)}"
        last = "" if end is None else end - 1
        headers = {"Range": f"bytes={begin}-{last}"} if begin or end is not None else {}
        try:
            response = self._follow(url, headers | {"Accept-Encoding": "identity"}, stream=True)
            try:
                self._raise_for(response, repository, path)
                yield _from(response, begin)
            finally:
                response.close()
        except httpx.HTTPError as error:
            raise UnreachableError(f"{repository} {path}: the download broke off ({type(error).__name__})") from None

    def _json(self, url: str, repository: Repository) -> tuple[Any, str]:
        """Return the JSON of a response and the URL of the next page, "" at the last."""
        import httpx

        budget = RetryBudget(self._watch)
        while True:
            try:
                response = self._follow(url, {}, stream=True)
                try:
                    self._raise_for(response, repository, "")
                    content = self._whole(response)
                finally:
                    response.close()
                following = response.links.get("next", {}).get("url", "")
                return json.loads(content), self._own(urljoin(url, following)) if following else ""
            except httpx.HTTPError as error:
                if not self._has_answer and is_final(error):
                    raise self._unreachable(error) from None
                budget.note_failure(self._unreachable(error))
            except BusyError as error:
                budget.note_failure(error, error.retry_after)
            except ValueError:
                raise self._not_a_hub("its response is not JSON") from None

    def _whole(self, response: httpx.Response) -> bytes:
        """The body of a response, up to the longest that the hub's API sends."""
        content = bytearray()
        for piece in response.iter_bytes():
            self._watch.check()
            content += piece
            if len(content) > _LONGEST_PAGE:
                raise self._not_a_hub(f"its response is longer than {_LONGEST_PAGE} bytes")
        return bytes(content)

    def _follow(self, url: str, headers: Mapping[str, str], *, stream: bool) -> httpx.Response:
        for _ in range(_REDIRECTS):
            self._watch.check()
            response = self._send(url, headers, stream=stream)
            if response.status_code not in {301, 302, 303, 307, 308} or "location" not in response.headers:
                return response
            response.close()
            url = url_for_token(urljoin(url, response.headers["location"]), "the address that the hub redirects to")
        text = f"the hub redirects more than {_REDIRECTS} times, so the model was not {self._purpose}."
        raise UnreachableError(Problem(self.base, None, text, "check the address, and any proxy in front of it."))

    def _send(self, url: str, headers: Mapping[str, str], *, stream: bool) -> httpx.Response:
        """Sends one request; reads the token when the hub's own host first refuses a request without one."""
        ours = _origin(url) == _origin(self.base)
        authorised = {"Authorization": f"Bearer {self._token}"} if ours and self._token else {}
        request = self._client.build_request("GET", url, headers={**headers, **authorised})
        response = self._client.send(request, stream=stream)
        self._has_answer = True
        if response.status_code in {401, 403} and ours and self._token is None:
            self._token = self._read_token()
            if self._token:
                response.close()
                return self._send(url, headers, stream=stream)
        return response

    def _file(self, row: Mapping[str, Any], repository: Repository) -> HubFile:
        path, stored = str(row["path"]), row.get("lfs")
        if path.startswith("/") or any(part in {"", ".", ".."} for part in path.split("/")):
            text = f"lists a file {path!r}, which would be outside the model's folder, so nothing was {self._purpose}."
            raise WeightsError(Problem(str(repository), None, text, "use another source."))
        if stored:
            return HubFile(path, Expected(SHA256, str(stored["oid"]), int(stored["size"])))
        return HubFile(path, Expected(GIT_BLOB, str(row["oid"]), int(row["size"])))

    def _own(self, url: str) -> str:
        if _origin(url) != _origin(self.base):
            text = (
                "its list of files continues on another host, which could get the token, so nothing was "
                f"{self._purpose}."
            )
            raise WeightsError(Problem("HF_ENDPOINT", self.base, text, "set it to the address of the hub."))
        return url

    def _unreachable(self, error: Exception) -> UnreachableError:
        text = f"the hub does not respond ({type(error).__name__}), so nothing of it was read."
        again = " a repeated copy continues." if self._purpose == "copied" else " then run the same command again."
        repair = f"check this machine's network, and HF_ENDPOINT if it is set;{again}"
        return UnreachableError(Problem(self.base, None, text, repair))

    def _not_a_hub(self, cause: str) -> WeightsError:
        text, repair = f"{cause}, so the model's files are unknown.", "check the address, and any proxy in front of it."
        return WeightsError(Problem("HF_ENDPOINT", self.base, text, repair))

    def _raise_for(self, response: httpx.Response, repository: Repository, path: str) -> None:
        status = response.status_code
        if response.is_success:
            return
        code, name = response.headers.get("x-error-code", ""), f"{repository}{f' {path}' if path else ''}"
        if is_retryable(status, idempotent=True) or status == 408:
            raise BusyError(f"{name}: the hub responds {status}", retry_delay(response.headers.get("retry-after")))
        text, repair = f"the hub responds {status} {code}".rstrip(), "try again later."
        if status == 403 or code == "GatedRepo":
            page = f"{self.base}/{repository.id}"
            text = f"is gated ({status}): only accounts that accepted its terms can read it"
            if response.request.headers.get("Authorization"):
                text += ", and the account of this token is not among them"
            repair = (
                f"accept the terms at {page}, and set HF_TOKEN to a token of that account (or name a secret: "
                "bezel:secrets.HF_TOKEN)."
            )
        elif status == 401 and response.request.headers.get("Authorization"):
            text = f"was refused with this token ({status})"
            repair = f"set HF_TOKEN to a token that is valid: {_TOKENS_PAGE} lists them. Check the model's name too."
        elif status == 401:
            text = f"does not exist, or is private ({status})"
            repair = (
                "correct the name; for a private model set HF_TOKEN (or name a secret: bezel:secrets.HF_TOKEN) to a "
                "token that may read it."
            )
        elif status in {404, 410}:
            text, repair = (
                f"does not exist ({code or status})",
                "correct the name or the revision: hf:OWNER/NAME[@REVISION].",
            )
            if path:
                repair = "run the same command again: the model changed meanwhile."
        raise WeightsError(Problem(name, None, f"{text}, so it was not {self._purpose}.", repair))


class BusyError(UnreachableError):
    """The hub limits the rate of requests, or has a server error."""

    def __init__(self, text: str, retry_after: float) -> None:
        super().__init__(text)
        self.retry_after = retry_after


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _from(response: httpx.Response, begin: int) -> Iterator[bytes]:
    """Yield the body from `begin` on, also where the server ignored the Range."""
    started = re.match(r"bytes (\d+)-", response.headers.get("content-range", ""))
    at = int(started[1]) if response.status_code == 206 and started else 0
    for piece in response.iter_raw():
        yield piece[max(0, begin - at) :] if at < begin else piece
        at += len(piece)
