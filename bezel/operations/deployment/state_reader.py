"""Reader of a stack's state in its backend, without a start of the engine where the backend is a folder or a bucket.

An operation is to answer within a second, and `pulumi stack export` alone takes half of that. Reads only; the layout is
that of engine 3.259 (state version 3). Any other backend is asked through the engine.
"""

import gzip
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bezel.engine.run.command import CommandError, command_output, pulumi_cli
from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel.engine.state.folder import latest_of
from bezel_base.errors import NOT_SET, Problem, UserError, caused_by
from bezel_base.json_documents import read_json

_SECONDS = 120.0
_FOLDER = ".pulumi/stacks"


class StateError(UserError):
    """A state cannot be read."""


def read_state(folder: Path, project: str, stack: str, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """The latest state of a stack: `resources`, `pending_operations`, `manifest`; None where the backend has none.

    Args:
        folder: Folder of the Pulumi project, for the engine.
        project: Name of the project.
        stack: Name of the stack.
        environ: The environment that names the backend.

    Raises:
        UserError: The backend or the state cannot be read.
    """
    backend = environ.get(BACKEND, "")
    try:
        if backend.startswith("file://"):
            text = _from_folder(local_folder(backend), project, stack)
        elif backend.startswith("gs://"):
            with StateBucket.of(backend, environ) as bucket:
                held = (bucket.read(name) for name in _names(project, stack))
                text = next((unpacked(item[0]) for item in held if item is not None), None)
        else:
            return _from_engine(folder, stack, environ)
        return None if text is None else latest_of(text)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        consequence = f"the state of {stack} cannot be read: {error!r}."
        raise StateError(Problem(BACKEND, backend, consequence, "`pulumi stack export` shows what is wrong.")) from None


def stacks_in(folder: Path, project: str, environ: Mapping[str, str]) -> list[str]:
    """Names of a project's stacks in the backend, sorted. Arguments and errors as of `read_state`."""
    backend = environ.get(BACKEND, "")
    if backend.startswith("file://"):
        held = local_folder(backend) / _FOLDER / project
        return _stack_names(file.name for file in held.glob("*.json*"))
    if backend.startswith("gs://"):
        prefix = f"{_FOLDER}/{project}/"
        with StateBucket.of(backend, environ) as bucket:
            return _stack_names(entry.name.removeprefix(prefix) for entry in bucket.list(prefix))
    rows = read_json(printed_by_engine(["stack", "ls", "--json"], folder, environ))
    return sorted(str(row["name"]).rpartition("/")[2] for row in rows)


def local_folder(backend: str) -> Path:
    """The folder of a backend that is one, from its `file://` address."""
    parts = urlsplit(backend)
    path = unquote(f"{parts.netloc}{parts.path}")
    return Path(path).expanduser()


def _names(project: str, stack: str) -> tuple[str, str]:
    return f"{_FOLDER}/{project}/{stack}.json", f"{_FOLDER}/{project}/{stack}.json.gz"


def _stack_names(files: Iterable[str]) -> list[str]:
    """The stacks of state files; backups and attributes stand beside them."""
    return sorted(
        {name.removesuffix(".gz").removesuffix(".json") for name in files if name.endswith((".json", ".json.gz"))}
    )


def _from_folder(state: Path, project: str, stack: str) -> bytes | None:
    files = [state / name for name in _names(project, stack)]
    return next((unpacked(file.read_bytes()) for file in files if file.is_file()), None)


def unpacked(content: bytes) -> bytes:
    """The content of a file that the engine may have compressed."""
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def _from_engine(folder: Path, stack: str, environ: Mapping[str, str]) -> dict[str, Any] | None:
    try:
        text = printed_by_engine(["stack", "export", "--stack", stack], folder, environ)
    except StateError as error:
        if f"no stack named '{stack}' found" in str(error):
            return None
        raise
    deployment: dict[str, Any] = read_json(text).get("deployment") or {}
    return deployment


def printed_by_engine(arguments: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str:
    """What a command of the engine prints.

    Raises:
        StateError: It failed.
    """
    try:
        return command_output([pulumi_cli(), *arguments], folder=folder, seconds=_SECONDS, environment=environ)
    except CommandError as error:
        repair = f'set {BACKEND}, or `pulumi login`; on localcloud `eval "$(bezel local env)"` first.'
        value = environ.get(BACKEND) or NOT_SET
        problem = caused_by(error, BACKEND, "the backend cannot be read", repair)
        raise StateError(Problem(BACKEND, value, problem.consequence, problem.repair)) from None
