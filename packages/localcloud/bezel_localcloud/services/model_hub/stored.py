"""Repositories that were put on the hub of a project: one file each, written whole, so that no reader meets a part.

The hub's stand-in makes up the models of the catalogue by itself; here are those that a project's own files describe,
and adapters. Their files are small: weights are made up too.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bezel_base.atomic_write import write_whole
from bezel_localcloud.core.paths import Paths

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class StoredRepository:
    """A repository.

    Attributes:
        commit: Its only commit.
        revisions: Branches and tags of this commit.
        files: Content by path.
    """

    commit: str
    revisions: tuple[str, ...]
    files: Mapping[str, bytes]


def put_repository(paths: Paths, name: str, files: Mapping[str, bytes], *, revisions: Iterable[str] = ()) -> bool:
    """Put a repository on the hub, in place of an earlier one of its name; return whether anything changed.

    Args:
        paths: Layout of localcloud's directory.
        name: `OWNER/NAME`.
        files: Content by path.
        revisions: Branches, tags or commits that callers name beside `main`; the first commit among them is its own.

    Raises:
        ValueError: No repository has such a name.
    """
    named = [each for each in revisions if each]
    commit = next((each for each in named if _COMMIT.fullmatch(each)), commit_of(name))
    content = {
        "commit": commit,
        "revisions": sorted({"main", *named} - {commit}),
        "files": {path: base64.b64encode(body).decode() for path, body in sorted(files.items())},
    }
    text = json.dumps(content)
    file = _file(paths, name)
    if file.exists() and file.read_text(encoding="utf-8") == text:
        return False
    file.parent.mkdir(exist_ok=True, mode=0o700)
    write_whole(file, text, mode=0o600)
    return True


def find_repository(paths: Paths, name: str) -> StoredRepository | None:
    """The repository of a name, None where none was put there."""
    try:
        content = json.loads(_file(paths, name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    files = {path: base64.b64decode(body) for path, body in content["files"].items()}
    return StoredRepository(content["commit"], tuple(content["revisions"]), files)


def commit_of(name: str) -> str:
    """The commit of a repository that no caller names a commit of."""
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()


def _file(paths: Paths, name: str) -> Path:
    if not _ID.fullmatch(name) or ".." in name:
        raise ValueError(f"no repository has the name {name!r}")
    return paths.hub / f"{hashlib.sha256(name.encode()).hexdigest()[:40]}.json"
