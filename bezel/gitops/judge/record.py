"""Record of what judged a stack's last allowed deploy, in the state bucket.

`judges/PROJECT/STACK.json`, written under the stack's lock by the account that deploys; the preview's account cannot
write here. The newest record of a project holds for all of its stacks: they share packs, limits and code. It carries
the judging keys of stacks without a record of their own, so that a deploy of one does not allow those of another.
A record that cannot be read allows nothing.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from bezel.engine.state.bucket import Entry as Listed
from bezel.engine.state.bucket import StateBucket
from bezel.gitops.judge.trees import Entry, Tree
from bezel.gitops.review import deploy_record
from bezel.rest import RestError

FOLDER = "judges"
VERSION = 1
_LONGEST = 16 * 1024 * 1024


@dataclass(frozen=True)
class Record:
    """What judged an allowed deploy.

    Attributes:
        commit: The commit that was deployed.
        files: The judging files of its tree.
        keys: The keys of the stack's file that judge.
        stacks: Stack -> those keys of it when they were allowed, or counted for the first time; None in a record of an
            earlier version of bezel.
    """

    commit: str
    files: Tree
    keys: Mapping[str, str] = field(default_factory=dict)
    stacks: Mapping[str, Mapping[str, str]] | None = None

    def content(self) -> bytes:
        """The record as it is stored."""
        files = {path: f"{entry.mode} {entry.id}" for path, entry in sorted(self.files.items())}
        parts = {"version": VERSION, "commit": self.commit, "files": files, "keys": dict(self.keys)}
        if self.stacks is not None:
            parts["stacks"] = {stack: dict(keys) for stack, keys in sorted(self.stacks.items())}
        return json.dumps(parts, indent=0).encode()


@dataclass(frozen=True)
class DeployHistory:
    """What a bucket knows of allowed deploys.

    Attributes:
        newest: The newest record of the project; None where there is none.
        of_stack: The record of the stack, likewise.
        unreadable: Name of a record that counts and cannot be read, "" if none.
        is_first: Whether the bucket holds no trace of any deploy.
    """

    newest: Record | None = None
    of_stack: Record | None = None
    unreadable: str = ""
    is_first: bool = False


def read_deploy_history(bucket: StateBucket, project: str, stack: str) -> DeployHistory:
    """What the bucket knows of allowed deploys of a project and of one of its stacks.

    Raises:
        RestError: The bucket cannot be read.
    """
    listed = sorted(bucket.list(_folder(project)), key=_age)
    if not listed:
        is_first = not bucket.list(f"{FOLDER}/") and not bucket.list(f"{deploy_record.FOLDER}/")
        return DeployHistory(is_first=is_first)
    records: dict[str, Record | None] = {}
    for name in dict.fromkeys([listed[-1].name, *(item.name for item in listed if item.name == _name(project, stack))]):
        stored = bucket.read(name)
        records[name] = read(stored[0]) if stored else None
        if records[name] is None:
            return DeployHistory(unreadable=name)
    return DeployHistory(records[listed[-1].name], records.get(_name(project, stack)))


def is_first_deploy(backend_url: str, environ: Mapping[str, str], project: str, stack: str) -> bool:
    """Whether a backend is a bucket without any trace of a deploy; not where it cannot be read.

    Args:
        backend_url: Of the engine.
        environ: Variables that say where Cloud Storage is.
        project: Name of the project.
        stack: Name of the stack.
    """
    try:
        with StateBucket.of(backend_url, environ) as bucket:
            return read_deploy_history(bucket, project, stack).is_first
    except RestError:
        return False


def write(bucket: StateBucket, project: str, stack: str, record: Record) -> None:
    """Write the record of a stack. To be called under the stack's lock.

    Raises:
        RestError: The bucket cannot be written, or the lock was lost.
    """
    name, data = _name(project, stack), record.content()
    stored = bucket.read(name)
    if stored is None:
        bucket.create(name, data)
    else:
        bucket.replace(name, data, stored[1])


def read(content: bytes) -> Record | None:
    """A record from its stored form; None where it is damaged or of another version."""
    if len(content) > _LONGEST:
        return None
    try:
        parts = json.loads(content)
        if parts["version"] != VERSION:
            return None
        files = {path: Entry(*text.split(" ")) for path, text in parts["files"].items()}
        listed = parts.get("stacks")
        stacks = None if listed is None else {str(stack): _texts(keys) for stack, keys in listed.items()}
        return Record(str(parts["commit"]), files, _texts(parts["keys"]), stacks)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _texts(keys: Mapping[str, object]) -> dict[str, str]:
    return {str(key): str(value) for key, value in keys.items()}


def _age(entry: Listed) -> tuple[str, int]:
    return entry.updated, entry.generation


def _folder(project: str) -> str:
    return f"{FOLDER}/{quote(project, safe='')}/"


def _name(project: str, stack: str) -> str:
    return f"{_folder(project)}{quote(stack, safe='')}.json"
