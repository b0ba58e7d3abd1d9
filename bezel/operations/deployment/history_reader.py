"""Reader of a stack's history in its backend: with which configuration it was deployed last.

The engine writes an object for each of its runs, `.pulumi/history/PROJECT/STACK/STACK-NANOSECONDS.history.json`, with
the whole configuration of the run (engine 3.274, pkg/backend/diy/state.go), packed or not as `state_files` says of
states. Any other backend, and a history packed with zstd, is asked for through the engine. Reads only; leaves out what
the configuration means.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bezel.engine.state.backend import local_folder, unpack
from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel.foundation.state_files import ZSTD
from bezel.leases.clock import unix
from bezel.operations.deployment.state_reader import StateError, printed_by_engine
from bezel_base.errors import Problem
from bezel_base.json_documents import read_json

_FOLDER = ".pulumi/history"
_NAME = re.compile(r"-(\d+)\.history\.json(?:\.gz|\.zst)?$")
_MOST = 100  # runs, the newest ones; refreshes and previews are among them


@dataclass(frozen=True)
class Deploy:
    """A run of the engine that changed a stack.

    Attributes:
        at: Its end, unix seconds; None where that is not recorded.
        is_done: Whether it succeeded.
        config: Its configuration, with keys of the form `NAMESPACE:NAME`; an encrypted value is `{"secure": ...}`.
        hidden: Keys whose values the backend does not show, as they hold something encrypted.
    """

    at: float | None
    is_done: bool
    config: Mapping[str, Any] = field(repr=False)
    hidden: frozenset[str] = frozenset()


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
            runs = local_folder(backend) / place
            files = [file.name for file in runs.glob("*.history.json*")] if runs.is_dir() else []
            if (names := _newest(files)) is not None:
                return _deploys(names, lambda name: (runs / name).read_bytes())
        elif backend.startswith("gs://"):
            with StateBucket.of(backend, environ) as bucket:
                names = _newest(entry.name for entry in bucket.list(place))
                if names is not None:
                    return _deploys(names, lambda name: (bucket.read(name) or (b"{}", 0))[0])
        return _engine_deploys(folder, stack, environ)
    except (OSError, EOFError, zlib.error, ValueError, AttributeError) as error:
        consequence = f"the history of {stack} cannot be read: {error!r}."
        raise StateError(
            Problem(BACKEND, backend, consequence, "`pulumi stack history` shows what is wrong.")
        ) from None


def _newest(files: Iterable[str]) -> list[str] | None:
    """Names of the newest runs, newest first; None if one of them is packed with zstd, which only the engine reads."""
    times = {name: int(match[1]) for name in files if (match := _NAME.search(name))}
    newest = sorted(times, key=lambda name: times[name], reverse=True)[:_MOST]
    return None if any(name.endswith(ZSTD) for name in newest) else newest


def _deploys(names: Iterable[str], read: Callable[[str], bytes]) -> list[Deploy]:
    rows = (read_json(unpack(read(name))) for name in names)
    return _until_done(_deploy(row, row.get("config") or {}) for row in rows)


def _engine_deploys(folder: Path, stack: str, environ: Mapping[str, str]) -> list[Deploy]:
    command = ["stack", "history", "--stack", stack, "--json", "--page", "1", "--page-size", str(_MOST)]
    rows = read_json(printed_by_engine(command, folder, environ))
    return _until_done(_of_engine(row) for row in rows or ())


def _until_done(deploys: Iterable[Deploy | None]) -> list[Deploy]:
    newest_deploys: list[Deploy] = []
    for deploy in deploys:
        newest_deploys += [] if deploy is None else [deploy]
        if deploy is not None and deploy.is_done:
            break
    return newest_deploys


def _deploy(row: Mapping[str, Any], config: Any, hidden: frozenset[str] = frozenset()) -> Deploy | None:
    """A run that deployed; None for a refresh, a preview, a destruction."""
    if row.get("kind") != "update":
        return None
    if not isinstance(config, Mapping):
        raise ValueError(f"expected a map of keys and values as configuration, got {type(config).__name__}")  # noqa: TRY004 - of a document
    end = row.get("endTime")
    at = float(end) if isinstance(end, int) and end > 0 else unix(end)
    return Deploy(at, row.get("result") == "succeeded", config, hidden)


def _of_engine(row: Mapping[str, Any]) -> Deploy | None:
    """A run as `pulumi stack history --json` prints it: each value as text, or as an object."""
    entries: Mapping[str, Any] = row.get("config") or {}
    hidden = frozenset(key for key, value in entries.items() if value.get("secret") is True)
    config = {key: value.get("objectValue", value.get("value")) for key, value in entries.items() if key not in hidden}
    return _deploy(row, config, hidden)
