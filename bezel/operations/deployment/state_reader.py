"""Reader of a stack's state in its backend, without a start of the engine where the backend is a folder or a bucket.

An operation is to answer within a second, and `pulumi stack export` alone takes half of that. Reads only; the layout is
that of engine 3.274 (state version 3). Any other backend, and a state packed with zstd, is asked for through the
engine.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bezel.engine.run.command import CommandError, backend_problem, command_output, pulumi_cli
from bezel.engine.state.backend import NotReadableHereError, local_folder, stored_state
from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel.foundation.state_files import FOLDER, stack_of
from bezel_base.errors import Problem, UserError
from bezel_base.json_documents import read_json

_SECONDS = 120.0


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
    try:
        return stored_state(project, stack, environ)
    except NotReadableHereError:
        return _from_engine(folder, stack, environ)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        consequence = f"the state of {stack} cannot be read: {error!r}."
        repair = "`pulumi stack export` shows what is wrong."
        raise StateError(Problem(BACKEND, environ[BACKEND], consequence, repair)) from None


def stacks_in(folder: Path, project: str, environ: Mapping[str, str]) -> list[str]:
    """Names of a project's stacks in the backend, sorted. Arguments and errors as of `read_state`."""
    backend = environ.get(BACKEND, "")
    if backend.startswith("file://"):
        states = local_folder(backend) / FOLDER / project
        return _stack_names(file.name for file in states.glob("*.json*"))
    if backend.startswith("gs://"):
        prefix = f"{FOLDER}{project}/"
        with StateBucket.of(backend, environ) as bucket:
            return _stack_names(entry.name.removeprefix(prefix) for entry in bucket.list(prefix))
    rows = read_json(printed_by_engine(["stack", "ls", "--json"], folder, environ))
    return sorted(str(row["name"]).rpartition("/")[2] for row in rows)


def _stack_names(files: Iterable[str]) -> list[str]:
    return sorted({stack for file in files if (stack := stack_of(file))})


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
        raise StateError(backend_problem(error, environ)) from None
