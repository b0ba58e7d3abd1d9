"""Identity of a process, so that another process of the same machine can see whether it has ended.

Owns what makes a process id unique: the kernel's boot, the namespace of process ids (a container has its own), and the
process's start. Leaves out processes of other machines: nothing is known of them.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from bezel_base.process_status import is_running

_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process: the machine's boot and namespace ("" where they cannot be read), its id, its start in clock ticks."""

    machine: str
    pid: int
    started: int


def this_process() -> Process:
    """The identity of this process."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        machine = f"{boot}/{(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        machine = ""
    return Process(machine, os.getpid(), _start_of(os.getpid()) or 0)


def is_alive(process: Process) -> bool | None:
    """Whether a process lives; None where that cannot be seen, because it is another machine's."""
    if not process.machine or process.machine != this_process().machine:
        return None
    # The id may be another process's by now.
    return is_running(process.pid) and _start_of(process.pid) == process.started


def started_at(pid: int) -> float | None:
    """The start of a process of this machine in unix seconds; None if there is no such process."""
    ticks = _start_of(pid)
    if ticks is None:
        return None
    try:
        uptime = float((_PROC / "uptime").read_text(encoding="utf-8").split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return time.time() - uptime + ticks / os.sysconf("SC_CLK_TCK")


def _start_of(pid: int) -> int | None:
    try:
        return int((_PROC / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
