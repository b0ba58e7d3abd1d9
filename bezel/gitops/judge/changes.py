"""Changes of what judges: files, values in them, and a stack's own limits and prices, as old and new; their digest.

Pure, but for the contents that are asked for. A link and a submodule judge by what they point to, which no object id
fixes, so they cannot be approved.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bezel.gitops.judge.trees import FILE_MODES, LINK, Entry, Tree
from bezel.gitops.judge.values import NONE, differing, shown_values, values_of

Contents = Callable[[Collection[str]], Mapping[str, bytes]]
"""Contents of objects by their ids; what is not known is left out."""

_SHOWN_VALUES = 30  # of one file
_FIRST = (
    "policies/",
    "Pulumi.",
    "packages/catalog/bezel_catalog/data/",
    ".github/workflows/",
    "bezel/gitops/",
    "bezel/engine/",
)
_STATES = {"": "is changed", "added": "is new", "deleted": "is deleted"}


@dataclass(frozen=True)
class JudgeChange:
    """A change of one file, or of the keys of a stack's file that judge.

    Attributes:
        path: The file.
        old: What it was, for the digest: mode and object id, or the keys' values; "" if it is new.
        new: What it is, likewise; "" if it is deleted.
        values: Key, old and new text of each value that differs, unabridged; None where the file has no values, or a
            side cannot be read.
        state: "added", "deleted", or "" for a file that both have.
        forbidden: Why it cannot be approved, "" if it can.
    """

    path: str
    old: str
    new: str
    values: tuple[tuple[str, str, str], ...] | None = None
    state: str = ""
    forbidden: str = ""

    def lines(self) -> list[str]:
        """The change in words: a line for each value, else one for the file."""
        if self.forbidden:
            return [f"{self.path} {self.forbidden}"]
        if not self.values:
            modes = [text.partition(" ")[0] for text in (self.old, self.new)]
            is_mode = all(modes) and modes[0] != modes[1]
            return [f"{self.path} " + (f"mode {modes[0]} → {modes[1]}" if is_mode else _STATES[self.state])]
        sides = [(key, *shown_values(old, new)) for key, old, new in self.values[:_SHOWN_VALUES]]
        lines = [f"{self.path} {key} {old} → {new}" for key, old, new in sides]
        rest = len(self.values) - len(lines)
        return [*lines, *([f"{self.path}: {rest} more values"] if rest else [])]


def changes_between(old: Tree, new: Tree, contents: Contents) -> list[JudgeChange]:
    """The changed files between two sets of judging files, limits and prices first."""
    paths = [path for path in {*old, *new} if old.get(path) != new.get(path)]
    wanted = {entry.id for path in paths for entry in (old.get(path), new.get(path)) if entry and _is_file(entry)}
    blobs = contents(wanted)
    return in_order([_change(path, old.get(path), new.get(path), blobs) for path in paths])


def keys_changed(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[JudgeChange]:
    """The change of a stack file's judging keys; empty where they are the same."""
    if old == new:
        return []
    texts = [{name: _plain(value) for name, value in keys.items()} for keys in (old, new)]
    return [JudgeChange(path, _canonical(old), _canonical(new), tuple(differing(*texts)))]


def in_order(changes: Collection[JudgeChange]) -> list[JudgeChange]:
    """Changes with limits and prices first."""
    return sorted(changes, key=lambda change: _rank(change.path))


def digest(changes: Collection[JudgeChange]) -> str:
    """The digest of changes: it covers what was and what is, so an approval holds for this step only."""
    rows = sorted([change.path, change.old, change.new] for change in changes)
    return f"sha256:{hashlib.sha256(json.dumps(rows).encode()).hexdigest()}"


def lines_of(changes: Collection[JudgeChange]) -> list[str]:
    """All changes in words."""
    return [line for change in changes for line in change.lines()]


def _change(path: str, old: Entry | None, new: Entry | None, contents: Mapping[str, bytes]) -> JudgeChange:
    state = "added" if old is None else "deleted" if new is None else ""
    before, after = (f"{entry.mode} {entry.id}" if entry else "" for entry in (old, new))
    forbidden = ""
    if new is not None and not _is_file(new):
        kind = "a link" if new.mode == LINK else "a submodule"
        forbidden = f"is {kind}, so it may judge by files that nothing compares: replace it by a file"
    values = None if forbidden else _values(path, old, new, contents)
    return JudgeChange(path, before, after, values, state, forbidden)


def _values(
    path: str, old: Entry | None, new: Entry | None, contents: Mapping[str, bytes]
) -> tuple[tuple[str, str, str], ...] | None:
    """The values that differ; None where a side is missing or unreadable: then the file as a whole has changed."""
    sides = [values_of(path, contents[entry.id]) if entry and entry.id in contents else None for entry in (old, new)]
    return None if sides[0] is None or sides[1] is None else tuple(differing(sides[0], sides[1]))


def _is_file(entry: Entry) -> bool:
    return entry.mode in FILE_MODES


def _rank(path: str) -> tuple[int, str]:
    place = next((number for number, start in enumerate(_FIRST) if path.startswith(start)), len(_FIRST))
    # Values before code: `policies/hardware_cost.prod.json` before `policies/bezel_policies/hardware_cost/rules.py`.
    return 2 * place + path.endswith(".py"), path


def _plain(value: object) -> str:
    return value if isinstance(value, str) else NONE if value is None else json.dumps(value, ensure_ascii=False)


def _canonical(keys: Mapping[str, Any]) -> str:
    return json.dumps(keys, sort_keys=True, default=str)
