"""Data set of a hub as a file of this machine: found by name, revision and split, read once, then kept.

`HF_ENDPOINT` is the hub (huggingface.co by default), `HF_TOKEN` its token, which is sent to the hub alone, never to
where it redirects. With `HF_HUB_OFFLINE` or `HF_DATASETS_OFFLINE` it is not asked, and only what was kept is read.
Of all files of a split the first rows are read (bezel_bench.prompts.first_rows). Leaves out what a row means
(bezel_bench.prompts.datasets).
"""

import contextlib
import hashlib
import http
import http.client
import io
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlsplit

from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError
from bezel_bench.prompts.first_rows import SUFFIXES, copy_first_rows

_HUB = "https://huggingface.co"
_SECONDS = 60.0
_NAME = re.compile(r"(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?(?::(?P<split>[\w.-][\w./-]*))?")
_OPTION = "--dataset"
_OFFLINE, _TRUE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"), ("1", "ON", "YES", "TRUE")  # as huggingface_hub has them


class _OneHostsToken(urllib.request.HTTPRedirectHandler):
    """Follows redirections, to another host without the token."""

    def redirect_request(self, req: Any, *args: Any) -> Any:
        request = super().redirect_request(req, *args)
        if request is not None and urlsplit(request.full_url).netloc != urlsplit(req.full_url).netloc:
            request.remove_header("Authorization")
        return request


def fetch(dataset: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the file with the first rows of a data set, from the cache or the hub.

    Args:
        dataset: `OWNER/NAME[@REVISION][:SPLIT]`; the split is a part of the files' paths.
        environ: The environment, with the hub, its token and the cache's folder.

    Raises:
        UserError: There is no such data set or split, the hub does not answer or may not be asked, or a file is not of
            its form.
    """
    match = _NAME.fullmatch(dataset)
    if match is None:
        repair = "write OWNER/NAME, OWNER/NAME@REVISION or OWNER/NAME@REVISION:SPLIT."
        raise UserError(Problem(_OPTION, dataset, "expected the name of a data set.", repair))
    hub, name, split = environ.get("HF_ENDPOINT", _HUB).rstrip("/"), match["name"], match["split"] or ""
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bezel" / "datasets"
    place = cache / quote(name, safe="") / f"{quote(dataset, safe='')}.place"
    if variable := next((each for each in _OFFLINE if environ.get(each, "").upper() in _TRUE), None):
        with contextlib.suppress(OSError, ValueError):  # there is none, or a crash of the machine has cut it
            if (copy := cache / place.read_text(encoding="utf-8")).is_file():
                return copy
        consequence = f"{variable} is set, and {cache} has no copy of it."
        repair = f"run the command once without {variable}, or use --file."
        raise UserError(Problem(_OPTION, dataset, consequence, repair))
    listing = f"{hub}/api/datasets/{quote(name)}/revision/{quote(match['revision'] or 'main', safe='')}"
    with _open(dataset, listing, environ) as response:
        try:
            document = json.load(response)
            commit, paths = str(document["sha"]), [str(each["rfilename"]) for each in document["siblings"]]
        except (OSError, http.client.HTTPException) as error:
            raise _no_answer(dataset, listing, error) from None
        except (KeyError, TypeError, ValueError, RecursionError):
            consequence = f"{listing} lists no files of a data set."
            raise UserError(Problem(_OPTION, dataset, consequence, "check HF_ENDPOINT.")) from None
    chosen = _choose(dataset, paths, split)
    # Another choice of files is another file, and a name of the file system has 255 bytes.
    choice = hashlib.sha256("\n".join(chosen).encode()).hexdigest()[:12]
    file = cache / quote(name, safe="") / quote(commit, safe="") / choice / quote(Path(chosen[0]).name)[-100:]
    if not file.exists():
        base = f"{hub}/datasets/{quote(name)}/resolve/{quote(commit, safe='')}"
        part = file.with_name(f".{os.getpid()}.{file.name}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            copy_first_rows([_RemoteFile(dataset, f"{base}/{quote(path)}", environ) for path in chosen], chosen, part)
            part.replace(file)
        except OSError as error:
            consequence = f"it cannot be kept in {cache}: {error}."
            raise UserError(Problem(_OPTION, dataset, consequence, "free it, or set XDG_CACHE_HOME.")) from None
        finally:
            if part.exists():
                part.unlink()
    with contextlib.suppress(OSError):  # a cache that cannot be written may hold the file
        write_whole(place, str(file.relative_to(cache)), durable=False)
    return file


class _RemoteFile(io.RawIOBase):
    """A file of the hub, read in pieces where it is read; nothing is asked before the first of them."""

    def __init__(self, dataset: str, url: str, environ: Mapping[str, str]) -> None:
        super().__init__()
        self._dataset, self._url, self._environ = dataset, url, environ
        self._at = 0
        self._bytes: int | None = None
        self._response: Any = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            offset += self._size()
        place = self._at + offset if whence == io.SEEK_CUR else offset
        if place != self._at:
            self._end_response()
        self._at = place
        return place

    def readinto(self, buffer: Any) -> int:
        if self._bytes is not None and self._at >= self._bytes:
            return 0
        try:
            if self._response is None:
                self._response = self._request(self._at)
            piece: bytes = self._response.read(len(buffer))
        except (OSError, http.client.HTTPException) as error:
            raise _no_answer(self._dataset, self._url, error) from None
        if not piece and self._bytes is not None and self._at < self._bytes:
            broken = http.client.IncompleteRead(b"", self._bytes - self._at)
            raise _no_answer(self._dataset, self._url, broken)
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

    def close(self) -> None:
        self._end_response()
        super().close()

    def _size(self) -> int:
        if self._bytes is None:
            self._response = self._request(self._at)
        if self._bytes is None:
            raise _no_answer(self._dataset, self._url, OSError("the hub does not say how long the file is"))
        return self._bytes

    def _request(self, at: int) -> Any:
        """The answer from a byte on; sets the file's length where the hub says it."""
        response = _open(self._dataset, self._url, self._environ, {"Range": f"bytes={at}-"})
        if at and response.status != http.HTTPStatus.PARTIAL_CONTENT:
            response.close()
            raise _no_answer(self._dataset, self._url, OSError("the hub sends no part of a file"))
        length = response.headers.get("content-length", "")
        self._bytes = at + int(length) if length.isdecimal() else None
        return response

    def _end_response(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None


def _choose(dataset: str, paths: Sequence[str], split: str) -> list[str]:
    """The files of a split, in order.

    Raises:
        UserError: There is none, or there are several splits and none is named.
    """
    readable = [path for path in sorted(paths) if path.lower().endswith(SUFFIXES)]
    # A split is a word of the path: `train` is no part of `constrained.csv`.
    word = re.compile(rf"(?:^|[/_.-]){re.escape(split)}(?:$|[/_.-])")
    chosen = [path for path in readable if not split or word.search(path)]
    # Files of one split differ in numbers and hashes: train-00000-of-00002-0123456789abcdef.csv, train/0000.parquet.
    stems = {(Path(path).parent, re.sub(r"[0-9a-f]{16}|\d+", "", Path(path).name)) for path in chosen}
    if len(stems) == 1:
        return chosen
    files = f"of: {', '.join(readable[:8])}" if readable else f"and none is {', '.join(SUFFIXES)}"
    consequence = f"{'several files' if chosen else 'no file'} of it match, {files}."
    name = dataset.partition(":")[0]
    repair = f"name one: {name}:SPLIT." if readable else f"try {name.partition('@')[0]}@refs/convert/parquet:SPLIT."
    raise UserError(Problem(_OPTION, dataset, consequence, repair))


def _open(dataset: str, url: str, environ: Mapping[str, str], more: Mapping[str, str] = MappingProxyType({})) -> Any:
    token = environ.get("HF_TOKEN", "").strip()
    headers = {"User-Agent": "bezel-bench", **more} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - http for a hub of this machine
        return urllib.request.build_opener(_OneHostsToken).open(request, timeout=_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        explanation = error.headers.get("x-error-message", "")
        consequence = f"the hub answers HTTP {error.code} for {url}. {explanation:.200}".strip()
        repair = "check the name and the revision; a private or gated one needs HF_TOKEN."
        if error.code > http.HTTPStatus.NOT_FOUND:
            repair = "try again later, or use --file."
        raise UserError(Problem(_OPTION, dataset, consequence, repair)) from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _no_answer(dataset, url, error) from None


def _no_answer(dataset: str, url: str, error: Exception) -> UserError:
    reason = getattr(error, "reason", error)
    consequence = f"{url} cannot be read: {reason}."
    return UserError(Problem(_OPTION, dataset, consequence, "check HF_ENDPOINT and the network, or use --file."))
