"""Instances that outlived a killed daemon, found by the variable that each of them carries, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

DIRECTORY_VARIABLE = "LOCALCLOUD_DIRECTORY"


def end_leftovers(directory: Path) -> int:
    """End every process of this user that was started as an instance for a directory. Returns how many.

    Linux only: elsewhere there is no way to read another process's environment, and nothing is found.
    """
    mark = f"{DIRECTORY_VARIABLE}={directory}".encode()
    ended = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid():
                os.kill(int(entry.name), signal.SIGKILL)
                ended += 1
    return ended
