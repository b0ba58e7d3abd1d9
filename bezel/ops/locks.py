"""Locks that a killed engine left on a stack: found by the process id that is written in them.

Leaves out locks of engines that still run, and of other machines: those are somebody's. Removing one is the engine's
own `pulumi cancel`.
"""

import json
import socket
from pathlib import Path

from bezel.localcloud.living import lives


def left_by_the_dead(state: Path, project: str, stack: str) -> list[int]:
    """Process ids of the engines that locked the stack on this machine and are gone.

    Args:
        state: The folder of the file backend; its layout is that of engine 3.259.
        project: The project's name.
        stack: The stack's name.

    Returns:
        The ids; empty where the stack is not locked, or any of its locks may be alive.
    """
    found = []
    for file in sorted((state / ".pulumi" / "locks" / "organization" / project / stack).glob("*.json")):
        try:
            lock = json.loads(file.read_text())
            pid, host = int(lock["pid"]), str(lock["hostname"])
        except (OSError, ValueError, KeyError, TypeError):
            return []
        if host != socket.gethostname() or lives(pid):
            return []
        found.append(pid)
    return found
