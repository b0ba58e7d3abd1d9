"""The end of processes that a test did not start itself."""

import os
import select
from pathlib import Path

SECONDS = 20


def has_ended(pid: int) -> bool:
    """True when the process is gone; waits for its end through a descriptor of it, not in steps."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(descriptor) as opened:
        return bool(select.select([opened], [], [], SECONDS)[0])


def processes_with(word: str) -> list[int]:
    """Processes with a word on their command line."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command_line = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if word in command_line:
            pids.append(int(entry.parent.name))
    return pids
