"""Termination of processes that outlived a killed parent, found by a variable in their environment."""

import contextlib
import os
import signal
from pathlib import Path

DIRECTORY_VARIABLE = "LOCALCLOUD_DIRECTORY"


def end_leftovers(directory: Path) -> int:
    """End every process of this user that was started as an instance of a directory and return their number."""
    return end_marked(DIRECTORY_VARIABLE, str(directory))


def end_marked(variable: str, value: str) -> int:
    """End every other process of this user that has the variable in its environment and return their number.

    Linux only: elsewhere another process's environment cannot be read, and 0 is returned.
    """
    ended = 0
    for process in marked(variable, value):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
            ended += 1
    return ended


def marked(variable: str, value: str) -> list[int]:
    """The other processes of this user that have the variable in their environment. Linux only."""
    mark, found = f"{variable}={value}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found
