"""Reader of a stack's history in its backend: with which configuration it was deployed last.

The engine writes an object for each of its runs, `.pulumi/history/PROJECT/STACK/STACK-NANOSECONDS.history.json`, with
the whole configuration of the run (engine 3.259, pkg/backend/diy/state.go). Any other backend is asked through the
engine. Reads only; leaves out what the configuration means.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bezel.errors import Problem
from bezel.gitops.state_bucket import BACKEND, StateBucket
from bezel.json_documents import read_json
from bezel.operations.deployment.state_reader import StateError, local_folder, printed_by_engine, unpacked

_FOLDER = ".pulumi/history"
_NAME = re.compile(r"-(\d+)\.history\.json(?:\.gz)?$")
_MOST = 100  # runs, the newest ones; refreshes and previews are among them


@dataclass(frozen=True)
class Deploy:
    """A run of the engine that changed a stack.

    Attributes:
        at: Its end, unix seconds; None where that is not recorded.
        is_done: Whether it succeeded.
        config: Its configuration, with keys of the form `NAMESPACE:NAME`; an encrypted value is `{"secure": ...}`.
    """

    at: float | None
    is_done: bool
    config: Mapping[str, Any] = field(repr=False)


def read_deploys(folder: Path, project: str, stack: str, environ: Mapping[str, str]) -> list[Deploy]:
    """The last deploys of a stack, newest first: those that failed, and the last one that succeeded.

    Arguments as of `bezel.operations.deployment.state_reader.read_state`.

    Raises:
        UserError: The backend or the history cannot be read.
    """
    backend = environ.get(BACKEND, "")
    place = f"{_FOLDER}/{project}/{stack}/"
    try:
        if backend.startswith("file://"):
            held = local_folder(backend) / place
            names = [file.name for file in held.glob("*.history.json*")] if held.is_dir() else []
            return _deploys(names, lambda name: (held / name).read_bytes())
        if backend.startswith("gs://"):
            with StateBucket.of(backend, environ) as bucket:
                names = [entry.name for entry in bucket.list(place)]
                return _deploys(names, lambda name: (bucket.read(name) or (b"{}", 0))[0])
        rows = read_json(
            printed_by_engine(
                ["stack", "history", "--stack", stack, "--json", "--page", "1", "--page-size", str(_MOST)],
                folder,
                environ,
            )
        )
        return _until_done(_deploy(row, _of_engine(row)) for row in rows or ())
    except (OSError, EOFError, ValueError, AttributeError) as error:
        consequence = f"the history of {stack} cannot be read: {error!r}."
        raise StateError(
            Problem(BACKEND, backend, consequence, "`pulumi stack history` shows what is wrong.")
        ) from None


def _deploys(names: Iterable[str], read: Callable[[str], bytes]) -> list[Deploy]:
    times = {name: int(match[1]) for name in names if (match := _NAME.search(name))}
    newest = sorted(times, key=lambda name: times[name], reverse=True)[:_MOST]
    rows = (read_json(unpacked(read(name))) for name in newest)
    return _until_done(_deploy(row, row.get("config") or {}) for row in rows)


def _until_done(deploys: Iterable[Deploy | None]) -> list[Deploy]:
    found: list[Deploy] = []
    for deploy in deploys:
        found += [] if deploy is None else [deploy]
        if deploy is not None and deploy.is_done:
            break
    return found


def _deploy(row: Mapping[str, Any], config: Mapping[str, Any]) -> Deploy | None:
    """A run that deployed; None for a refresh, a preview, a destruction."""
    if row.get("kind") != "update":
        return None
    end = row.get("endTime")
    return Deploy(float(end) if isinstance(end, int) and end > 0 else None, row.get("result") == "succeeded", config)


def _of_engine(row: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration as `pulumi stack history --json` prints it: each value as text, or as an object."""
    found = {}
    for key, value in (row.get("config") or {}).items():
        is_secret = value.get("secret") is True
        found[key] = {"secure": ""} if is_secret else value.get("objectValue", value.get("value"))
    return found
