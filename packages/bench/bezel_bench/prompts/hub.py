"""Data set of a hub as a file of this machine: found by name, revision and split, downloaded once, then read from disk.

`HF_ENDPOINT` is the hub (huggingface.co by default), `HF_TOKEN` its token, which is sent to the hub alone, never to
where it redirects. Only the first file of a split is downloaded. Leaves out what the file means
(bezel_bench.prompts.datasets).
"""

import http.client
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from bezel_base.errors import Problem, UserError

_HUB = "https://huggingface.co"
_SECONDS = 60.0
_PIECE = 1024 * 1024
_READABLE = (".parquet", ".jsonl", ".json", ".csv", ".tsv")
_NAME = re.compile(r"(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?(?::(?P<split>[\w./-]+))?")
_OPTION = "--dataset"


class _OneHostsToken(urllib.request.HTTPRedirectHandler):
    """Follows redirections, to another host without the token."""

    def redirect_request(self, req: Any, *args: Any) -> Any:
        request = super().redirect_request(req, *args)
        if request is not None and urlsplit(request.full_url).netloc != urlsplit(req.full_url).netloc:
            request.remove_header("Authorization")
        return request


def fetch(dataset: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the file of a data set, from the cache or the hub.

    Args:
        dataset: `OWNER/NAME[@REVISION][:SPLIT]`; the split is a part of a file's path.
        environ: The environment, with the hub, its token and the cache's folder.

    Raises:
        UserError: There is no such data set or split, or the hub does not answer.
    """
    match = _NAME.fullmatch(dataset)
    if match is None:
        repair = "write OWNER/NAME, OWNER/NAME@REVISION or OWNER/NAME@REVISION:SPLIT."
        raise UserError(Problem(_OPTION, dataset, "expected the name of a data set.", repair))
    hub, name, split = environ.get("HF_ENDPOINT", _HUB).rstrip("/"), match["name"], match["split"] or ""
    listing = f"{hub}/api/datasets/{quote(name)}/revision/{quote(match['revision'] or 'main', safe='')}"
    with _open(dataset, listing, environ) as response:
        try:
            document = json.load(response)
            commit, paths = str(document["sha"]), [str(each["rfilename"]) for each in document["siblings"]]
        except (KeyError, TypeError, ValueError):
            consequence = f"{listing} lists no files of a data set."
            raise UserError(Problem(_OPTION, dataset, consequence, "check HF_ENDPOINT.")) from None
    path = _choose(dataset, paths, split)
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bezel" / "datasets"
    file = cache / quote(name, safe="") / quote(commit, safe="") / quote(path, safe="")
    if not file.exists():
        address = f"{hub}/datasets/{quote(name)}/resolve/{quote(commit, safe='')}/{quote(path)}"
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f".{file.name[-200:]}.{os.getpid()}")
        try:
            with _open(dataset, address, environ) as response, part.open("wb") as opened:
                while piece := response.read(_PIECE):
                    opened.write(piece)
            part.replace(file)
        except http.client.IncompleteRead as error:
            raise _no_answer(dataset, address, error) from None
        finally:
            part.unlink(missing_ok=True)
    return file


def _choose(dataset: str, paths: Sequence[str], split: str) -> str:
    """The first file of a split, of the form that is read first.

    Raises:
        UserError: There is none, or there are several splits and none is named.
    """
    readable = [path for path in sorted(paths) if path.lower().endswith(_READABLE)]
    # A split is a word of the path: `train` is no part of `constrained.csv`.
    word = re.compile(rf"(?:^|[/_.-]){re.escape(split)}(?:$|[/_.-])")
    chosen = [path for path in readable if not split or word.search(path)]
    stems = {re.sub(r"-\d+-of-\d+", "", path) for path in chosen}
    if len(stems) == 1:
        return chosen[0]
    files = ", ".join(readable[:8]) or "none that is read"
    consequence = f"{'several files' if chosen else 'no file'} of it match, of: {files}."
    raise UserError(Problem(_OPTION, dataset, consequence, f"name one: {dataset.partition(':')[0]}:SPLIT."))


def _open(dataset: str, url: str, environ: Mapping[str, str]) -> Any:
    token = environ.get("HF_TOKEN", "").strip()
    headers = {"User-Agent": "bezel-bench"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - http for a hub of this machine
        return urllib.request.build_opener(_OneHostsToken).open(request, timeout=_SECONDS)
    except urllib.error.HTTPError as error:
        error.close()
        consequence = f"the hub answers HTTP {error.code} for {url}."
        repair = "check the name and the revision; a private or gated one needs HF_TOKEN."
        raise UserError(Problem(_OPTION, dataset, consequence, repair)) from None
    except (OSError, ValueError) as error:
        raise _no_answer(dataset, url, error) from None


def _no_answer(dataset: str, url: str, error: Exception) -> UserError:
    reason = getattr(error, "reason", error)
    consequence = f"{url} cannot be read: {reason}."
    return UserError(Problem(_OPTION, dataset, consequence, "check HF_ENDPOINT and the network, or use --file."))
