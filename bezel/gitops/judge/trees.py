"""Judging files of a commit in git, by mode and object id, and their content as it is stored.

Contents are read as objects: a checkout would apply the attributes of the tree that is judged. Leaves out what a path
means (`paths`).
"""

import hashlib
import os
import subprocess
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bezel.gitops.changed.git_trees import below, checked_git
from bezel.gitops.judge.paths import is_judge
from bezel_base.errors import Problem, UserError

_SECONDS = 120.0
FILE_MODES = ("100644", "100755")
LINK = "120000"
# A clone may hold references that replace objects by others.
_AS_COMMITTED = {"GIT_NO_REPLACE_OBJECTS": "1"}


@dataclass(frozen=True, order=True)
class Entry:
    """A file of a tree: git's mode, and the id of its object."""

    mode: str
    id: str


Tree = Mapping[str, Entry]
"""Path, as `paths.is_judge` takes it -> entry."""


def files_of(folder: Path, commit: str) -> dict[str, Entry]:
    """All files of a commit, submodules and links included.

    Raises:
        UserError: git failed.
    """
    prefix = checked_git(folder, "rev-parse", "--show-prefix")
    listed = checked_git(folder, "ls-tree", "-r", "-z", "--full-tree", commit, variables=_AS_COMMITTED)
    files = {}
    for line in filter(None, listed.split("\0")):
        facts, _, path = line.partition("\t")
        mode, _, name = facts.split(" ")
        files[below(prefix, path)] = Entry(mode, name)
    return files


def judging(files: Tree) -> dict[str, Entry]:
    """Those of the files that judge."""
    return {path: entry for path, entry in files.items() if is_judge(path)}


def contents(folder: Path, ids: Collection[str]) -> dict[str, bytes]:
    """Contents of objects by their ids; one that this clone lacks is left out.

    Raises:
        UserError: git failed.
    """
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    try:
        ended = subprocess.run(
            ["git", "-C", str(folder), "cat-file", "--batch"],
            input="".join(f"{name}\n" for name in wanted).encode(),
            capture_output=True,
            check=True,
            timeout=_SECONDS,
            env=os.environ | _AS_COMMITTED,
        )
    except (OSError, subprocess.SubprocessError) as error:
        consequence = f"the content of files cannot be read from git: {error}"
        raise UserError(Problem(str(folder), None, consequence, "run this in a complete checkout.")) from None
    return dict(_objects(ended.stdout))


def _objects(output: bytes) -> Iterable[tuple[str, bytes]]:
    """Id and content of each object in the output of `git cat-file --batch`."""
    place = 0
    while place < len(output):
        end = output.index(b"\n", place)
        name, *facts = output[place:end].decode().split(" ")
        place = end + 1
        if len(facts) == 2:  # else `missing`
            size = int(facts[1])
            yield name, output[place : place + size]
            place += size + 1


def is_same_file(file: Path, entry: Entry | None) -> bool:
    """Whether a file on disk is that of an entry; without one, whether there is none."""
    if entry is None:
        return not file.exists() and not file.is_symlink()
    if entry.mode not in FILE_MODES or file.is_symlink() or not file.is_file():
        return False
    content = file.read_bytes()
    kind = hashlib.sha256 if len(entry.id) == 64 else hashlib.sha1  # of git's two formats of objects
    return kind(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() == entry.id


def write_files(folder: Path, files: Tree, target: Path) -> None:
    """Write the files of the project's folder below `target`, as they are stored; links and submodules are left out.

    Raises:
        UserError: git failed, or the clone lacks one of them.
    """
    wanted = {path: entry for path, entry in files.items() if entry.mode in FILE_MODES and not path.startswith("/")}
    blobs = contents(folder, [entry.id for entry in wanted.values()])
    for path, entry in wanted.items():
        if entry.id not in blobs:
            consequence = "this clone lacks its content, so the base cannot judge."
            raise UserError(Problem(path, entry.id, consequence, "fetch the whole history: `git fetch --unshallow`."))
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(blobs[entry.id])
        file.chmod(0o755 if entry.mode == FILE_MODES[1] else 0o644)
