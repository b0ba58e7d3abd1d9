"""Processes that outlived a killed parent, found by the variable that each of them carries, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

DIRECTORY_VARIABLE = "LOCALCLOUD_DIRECTORY"


def end_leftovers(directory: Path) -> int:
    """End every process of this user that was started as an instance for a directory. Returns how many."""
    return end_marked(DIRECTORY_VARIABLE, str(directory))


def end_marked(variable: str, value: str) -> int:
    """End every process of this user, but this one, that has the variable in its environment. Returns how many.

    Linux only: elsewhere there is no way to read another process's environment, and nothing is found.
    """
    ended = 0
    for process in marked(variable, value):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
            ended += 1
    return ended


def marked(variable: str, value: str) -> list[int]:
    """The processes of this user, but this one, that have the variable in their environment. Linux only."""
    mark, found = f"{variable}={value}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found
