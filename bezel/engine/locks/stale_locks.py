"""Locks of engines on a stack, stale or live by the process id that they hold.

The engine's own `pulumi cancel` removes a stale lock. Leaves out locks of other machines, whose processes cannot be
checked from here: the engine refuses them itself.
"""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bezel_base.json_documents import read_json, whole_number
from bezel_base.process_status import MOST_PID, is_running


@dataclass(frozen=True)
class EngineLockFile:
    """An engine's lock: its process and machine, and the time it was taken (RFC 3339; "" if the file has none)."""

    pid: int
    host: str
    since: str = ""

    @property
    def here(self) -> bool:
        """Whether it was taken on this machine."""
        return self.host == socket.gethostname()


def stale_lock_pids(state: Path, project: str, stack: str) -> list[int]:
    """Process ids of the engines that locked the stack on this machine and are gone.

    Args:
        state: The folder of the file backend; its layout is that of engine 3.274.
        project: The project's name.
        stack: The stack's name.

    Returns:
        The ids; empty where the stack is not locked, or any of its locks may be alive.
    """
    locks = list(_locks(state, project, stack))
    if any(lock is None or not lock.here or is_running(lock.pid) for lock in locks):
        return []
    return [lock.pid for lock in locks if lock]


def live_lock(state: Path, project: str, stack: str) -> EngineLockFile | None:
    """The lock of an engine that still runs on this machine; arguments as of `stale_lock_pids`."""
    locks = _locks(state, project, stack)
    return next((lock for lock in locks if lock and lock.here and is_running(lock.pid)), None)


def present_lock(state: Path, project: str, stack: str) -> str | None:
    """Whose engine may still hold the stack, as text; None where none does. Arguments as of `stale_lock_pids`.

    A lock of this machine whose process is gone holds nothing; one of another machine, or one that names no process,
    may.
    """
    for lock in _locks(state, project, stack):
        if lock is None:
            return "an unknown process"
        if not lock.here or is_running(lock.pid):
            return f"process {lock.pid} on {lock.host}" + (f", since {lock.since}" if lock.since else "")
    return None


def _locks(state: Path, project: str, stack: str) -> Iterator[EngineLockFile | None]:
    """The locks of a stack; None for a file that names no process."""
    for file in sorted((state / ".pulumi" / "locks" / "organization" / project / stack).glob("*.json")):
        try:
            lock = read_json(file.read_text(encoding="utf-8"))
            yield EngineLockFile(
                whole_number(lock["pid"], 1, MOST_PID), str(lock["hostname"]), str(lock.get("timestamp", ""))
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            yield None
