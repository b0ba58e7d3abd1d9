"""Startup script of a machine: the text of `node/startup.sh` for its kind, and whether two texts do the same.

A lease is replaced for another script, as Google updates none. So a machine gets only what it executes: no comment, no
indentation, and nothing that is there for another kind of machine. What an edit of the rest changes is nothing of it.
Leaves out the attributes that the script reads (`node_metadata`).
"""

import copy
import functools
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from bezel_components.config.shell_text import without_comments

SCRIPT = Path(__file__).parents[1] / "node" / "startup.sh"
KEY = "startup-script"
"""The metadata attribute that holds it."""

_MARK = re.compile(r"[ \t]*# (only|end) (\w+)")
_DEVICES = ("tpu", "gpu")
FIRST_KINDS = (*_DEVICES, "packages", "notice")
"""Kinds of the time when every machine got the whole file."""
KINDS = (*FIRST_KINDS, "collector")
"""Kinds that parts of the script are there for."""


def kinds_of(*, device: str, packages: str, notice: bool, collector: bool = False) -> frozenset[str]:
    """The kinds of a machine.

    Args:
        device: "tpu" or "gpu"; of another one the script itself says what is wrong.
        packages: Packages that it installs at boot, "" for none.
        notice: Whether it tells of the end of its lease.
        collector: Whether it writes the server's series to Cloud Monitoring.
    """
    devices = {device} if device in _DEVICES else set(_DEVICES)
    others = {"packages": packages, "notice": notice, "collector": collector}
    return frozenset(devices | {kind for kind, is_on in others.items() if is_on})


@functools.cache
def startup_script(kinds: frozenset[str]) -> str:
    """The script of a machine of some kinds.

    Raises:
        ValueError: The marks in the file do not form pairs.
    """
    return script_for(_whole(), kinds)


def script_for(text: str, kinds: Collection[str]) -> str:
    """What machines of some kinds execute of a whole script.

    Raises:
        ValueError: The marks in the text do not form pairs.
    """
    return without_comments("".join(_lines_for(text, kinds)))


def with_same_script(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The body of an earlier request, with the script of the present one where both scripts do the same.

    Args:
        old: A body of `bezel.leases.requests`, of any earlier release: until November 2026 every machine got the whole
            file.
        new: The present body.
    """
    changed = copy.deepcopy(dict(old))
    before, after = _metadata(changed), _metadata(new)
    if before is not None and after is not None and _do_the_same(before[KEY], after):
        before[KEY] = after[KEY]
        _set_metadata(changed, before)
    return changed


def _do_the_same(before: str, after: Mapping[str, Any]) -> bool:
    """Whether an earlier script does what that of some attributes does."""
    plain = without_comments(before)
    if plain == without_comments(after[KEY]):
        return True
    kinds = kinds_of(
        device=after.get("bezel-device", ""),
        packages=after.get("bezel-packages", ""),
        notice="bezel-end-notice" in after,
        collector="bezel-collector-image" in after,
    )
    is_first = "collector" not in kinds and plain == script_for(_whole(), FIRST_KINDS)
    return after[KEY] == startup_script(kinds) and is_first


def _whole() -> str:
    return SCRIPT.read_text(encoding="utf-8")


def _lines_for(text: str, kinds: Collection[str]) -> Iterator[str]:
    """The lines of a text for some kinds; a part of another kind becomes `:`, as bash has no empty blocks.

    A collector's parts stand beside other commands and become nothing: a machine without one has the script of before.
    """
    opened: list[str] = []
    for line in text.splitlines(keepends=True):
        mark = _MARK.fullmatch(line.rstrip("\n"))
        is_left_out = any(kind not in kinds for kind in opened)
        if mark is None:
            if not is_left_out:
                yield line
        elif mark[1] == "only" and mark[2] in KINDS:
            opened.append(mark[2])
            if mark[2] in FIRST_KINDS and mark[2] not in kinds and not is_left_out:
                yield ":\n"
        elif not opened or mark[2] != opened.pop():
            raise ValueError(f"{SCRIPT.name}: a mark without its other half: {line.strip()}")
    if opened:
        raise ValueError(f"{SCRIPT.name}: nothing ends `# only {opened[-1]}`")


def _metadata(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The attributes of a body, of either control plane; None where it has no script."""
    try:
        if "tpu" in body:
            metadata = body["tpu"]["nodeSpec"][0]["node"]["metadata"]
        else:
            metadata = {item["key"]: item["value"] for item in body["metadata"]["items"]}
    except (KeyError, IndexError, TypeError):
        return None
    return dict(metadata) if isinstance(metadata, dict) and isinstance(metadata.get(KEY), str) else None


def _set_metadata(body: dict[str, Any], attributes: Mapping[str, str]) -> None:
    if "tpu" in body:
        body["tpu"]["nodeSpec"][0]["node"]["metadata"] = dict(attributes)
    else:
        body["metadata"]["items"] = [{"key": key, "value": attributes[key]} for key in attributes]
