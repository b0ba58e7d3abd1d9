"""Cleanup of truncated files in a state folder: the engine was killed, or the disk was full.

The engine replaces a state file in one step, but writes the attributes beside it (`NAME.attrs`: type and checksum) in
place: killed in between, it leaves them empty, and every later command ends in `failed to load checkpoint: EOF`.
Without the file it takes the defaults (gocloud.dev, blob/fileblob, attrs.go). A lock that a full disk truncated names
no process and has no owner: the engine that could not write it has given up. The same is true of a lock that still has
its temporary name (`.tmp`) after 2 s: an engine writes its few bytes in no time. Leaves out complete locks
(`bezel.pulumi_engine.stale_locks`) and the state itself (`bezel.pulumi_engine.state_file`).
"""

import contextlib
import json
import time
from pathlib import Path

_WRITING_SECONDS = 2.0  # an engine may still be about to rename a lock


def sweep(state: Path) -> list[Path]:
    """Remove truncated attributes and locks; nothing is lost, and an engine that is writing them is not disturbed.

    Args:
        state: The folder of the file backend.

    Returns:
        The removed files.
    """
    removed = []
    locks = state / ".pulumi" / "locks"
    written = [*(state / ".pulumi").rglob("*.attrs"), *locks.rglob("*.json"), *locks.rglob("*.tmp")]
    for file in sorted(written):
        with contextlib.suppress(OSError):
            if file.is_file() and _is_cut(file):
                file.unlink()
                removed.append(file)
    return removed


def _is_cut(file: Path) -> bool:
    if file.suffix == ".tmp":
        return time.time() - file.stat().st_mtime > _WRITING_SECONDS
    try:
        json.loads(file.read_bytes())
    except ValueError:
        return True
    return False
