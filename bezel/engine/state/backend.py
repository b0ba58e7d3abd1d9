"""Reader of a stack's state where the backend is a folder or a bucket: a read of a file in place of an engine's start.

The layout is that of engine 3.274 (state version 3). Reads only. Leaves out every other backend, a state packed with
zstd, and the errors' texts.
"""

import glob
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel.engine.state.folder import latest_of
from bezel.foundation.state_files import FOLDER, ZSTD, state_file
from bezel_base.json_documents import read_json

_VERSION = 3


class NotReadableHereError(Exception):
    """Only the engine reads this backend, or this state."""


def stored_state(project: str, stack: str, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """The latest state of a stack: `resources`, `pending_operations`, `manifest`; None where the backend has none.

    A stack that was never deployed has an empty state.

    Args:
        project: Name of the project.
        stack: Name of the stack.
        environ: The environment that names the backend.

    Raises:
        NotReadableHereError: The backend is neither an absolute folder nor a bucket, or zstd packed the state.
        UserError: The bucket cannot be read.
        OSError, EOFError, zlib.error, ValueError: The file cannot be read, or is not a state of the engine.
    """
    content = _content(project, stack, environ)
    return None if content is None else latest_of(content)


def stored_export(project: str, stack: str, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """The state of a stack as `pulumi stack export` prints it and `pulumi stack import` takes it: version, deployment.

    Arguments and errors as of `stored_state`; a state of another version than 3, and that of a stack without a
    deployment, is not readable here.
    """
    content = _content(project, stack, environ)
    if content is None:
        return None
    latest, version = latest_of(content), read_json(content).get("version")
    if version != _VERSION or not latest:
        raise NotReadableHereError(stack)
    return {"version": version, "deployment": latest}


def _content(project: str, stack: str, environ: Mapping[str, str]) -> bytes | None:
    """The content of a stack's state file; None where the backend has none."""
    backend = environ.get(BACKEND, "")
    if backend.startswith("file://"):
        folder = local_folder(backend)
        if not folder.is_absolute():  # the engine takes it from the project's folder, whatever this process is in
            raise NotReadableHereError(backend)
        file, content = _from_folder(folder, f"{project}/{stack}")
    elif backend.startswith("gs://"):
        file, content = _from_bucket(backend, environ, f"{project}/{stack}")
    else:
        raise NotReadableHereError(backend)
    if file is None or content is None:
        return None
    if file.endswith(ZSTD):
        raise NotReadableHereError(file)
    return unpack(content)


def local_folder(backend: str) -> Path:
    """The folder of a backend that is one, from its `file://` address."""
    parts = urlsplit(backend)
    path = unquote(f"{parts.netloc}{parts.path}")
    return Path(path).expanduser()


def unpack(content: bytes) -> bytes:
    """The content of a file that the engine may have packed with gzip."""
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def _from_folder(backend: Path, stack: str) -> tuple[str | None, bytes | None]:
    """The name and the content of PROJECT/STACK's state."""
    path = backend / FOLDER / stack
    files = [(file.name, file.stat().st_mtime_ns) for file in path.parent.glob(f"{glob.escape(path.name)}.json*")]
    name = state_file(path.name, files)
    return name, None if name is None else path.with_name(name).read_bytes()


def _from_bucket(backend: str, environ: Mapping[str, str], stack: str) -> tuple[str | None, bytes | None]:
    """The name and the content of PROJECT/STACK's state."""
    path = f"{FOLDER}{stack}"
    with StateBucket.of(backend, environ) as bucket:
        name = state_file(path, [(entry.name, entry.updated) for entry in bucket.list(f"{path}.json")])
        answer = None if name is None else bucket.read(name)
    return name, None if answer is None else answer[0]
