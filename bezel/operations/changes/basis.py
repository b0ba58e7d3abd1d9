"""Basis of a plan: what it was made from. A plan is carried out only where all of it is as it was.

Owns the digests of a stack's state, its file and its program, and the names of the place: project, backend. Leaves out
what the cloud has: the engine's own plan keeps an `up` to what was shown.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from bezel.engine.outcomes import RefusedError
from bezel.engine.project.folder import PROJECT_FILE
from bezel.engine.project.git import GitError, git
from bezel.engine.project.project import cloud_project_of
from bezel.engine.state.bucket import BACKEND
from bezel.engine.state.exported import State, state_digest
from bezel.operations.changes.plan import Plan
from bezel.operations.context import Context
from bezel_base.errors import Problem, UserError

_WORDS = {
    "folder": "the project's folder",
    "backend": "the backend of the states",
    "cloud_project": "the Google Cloud project",
    "state": "the stack's state",
    "file": "the stack's file",
    "program": "the program",
    "quota_project": "the project of the quota",
    "weights": "the folders that the stack loads",
    "limit": "the limit",
    "secret_project": "the project of the secret",
    "secret": "the secret's versions",
    "request": "an earlier request",
    "service": "the service",
    "traffic": "where the traffic goes",
    "newest": "the newest revision",
    "checks": "the revisions that passed their check",
    "catalogue": "catalog.toml",
    "locks": "the stack's lock",
    "answer": "the plan of the new file",
    "model": "the model's files",
    "door": "the door of the stack",
    "keys": "the keys that it is about",
    "target": "the revision that gets the traffic",
}


class ChangedError(RefusedError):
    """What a plan was made from has changed since."""


def place_of(context: Context) -> dict[str, str]:
    """The names of the place that every plan is for."""
    return {
        "folder": str(context.folder.absolute()),
        "backend": context.environ.get(BACKEND, ""),
        "cloud_project": cloud_project_of(context.environ) or "",
    }


def basis_of(context: Context, stack: str, state: State | None) -> dict[str, str]:
    """The basis of a plan for a stack.

    Args:
        context: The context.
        stack: The stack's name.
        state: Its exported state.

    Raises:
        UserError: The stack has no file.
    """
    file = context.project.stack_file(stack)
    return {
        **place_of(context),
        "state": state_digest(state),
        "file": _digest(file.read_bytes()),
        "program": program_digest(context.folder),
    }


def check(plan: Plan, present: Mapping[str, str]) -> None:
    """Refuse a plan whose basis has changed.

    Raises:
        ChangedError: It says what has changed.
    """
    changed = [_WORDS.get(name, name) for name, value in plan.basis.items() if present.get(name) != value]
    if changed:
        consequence = f"since it was planned, this has changed: {', '.join(changed)}; nothing was changed."
        raise ChangedError(Problem(f"{plan.operation} {plan.target}", None, consequence, "plan again, and look at it."))


def check_place(context: Context, plan: Plan) -> None:
    """Refuse a plan of another place, before anything is looked for in this one.

    Raises:
        ChangedError: It is of another folder, backend or cloud project.
    """
    check(plan, {**plan.basis, **place_of(context)})


def program_digest(folder: Path) -> str:
    """Digest of a project's files, those of its stacks excepted: of what git knows or would add, else of all files."""
    summed = hashlib.sha256()
    for name in sorted(_names(folder)):
        file = folder / name
        if Path(name).match("Pulumi.*.yaml"):
            continue
        content = os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes() if file.is_file() else b""
        summed.update(f"{name}\0{len(content)}\0".encode(errors="surrogateescape"))
        summed.update(content)
    return f"sha256:{summed.hexdigest()}"


def _names(folder: Path) -> set[str]:
    try:
        listed = git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        names = {name for name in listed.split("\0") if name}
        if PROJECT_FILE in names:
            return names
    except (GitError, UserError):
        pass
    # No checkout, or one that ignores the project.
    names = set()
    for above, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if not each.startswith(".") and each != "__pycache__"]
        names |= {str((Path(above) / each).relative_to(folder)) for each in files}
    return names


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
