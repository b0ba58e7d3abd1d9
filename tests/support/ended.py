"""The end of processes that a test did not start itself."""

from __future__ import annotations

import os
import select
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import HasFileno

SECONDS = 60


def has_ended(pid: int) -> bool:
    """True when the process is gone; waits for its end through a descriptor of it, not in steps."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(descriptor) as opened:
        return is_readable(opened, SECONDS)


def is_readable(file: int | HasFileno, seconds: float) -> bool:
    """True once a file, or the descriptor of a process that has ended, can be read; False after so many seconds."""
    poll = select.poll()  # takes descriptors above 1024, which a worker of thousands of tests may have
    poll.register(file, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


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
