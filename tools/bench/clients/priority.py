"""Highest ordinary priority for a measurement: of its processes, and of the scheduler's group of their session.

With autogroups (sched(7)) each session is a group, and a nice value counts within it alone: against other sessions the
group's own value counts, in /proc/PID/autogroup. Both need a privilege; without it the machine's other work is
measured, too.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HIGHEST = -20


@contextlib.contextmanager
def highest_priority() -> Iterator[None]:
    """Give this process, and what it starts, the highest priority; it has its own again afterwards."""
    own_nice, nice_of_group = os.getpriority(os.PRIO_PROCESS, 0), group_nice(os.getpid())
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, HIGHEST)
    set_group_nice(os.getpid(), HIGHEST)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, own_nice)
        set_group_nice(os.getpid(), nice_of_group)


def group_nice(pid: int) -> int:
    """The nice value of the scheduler's group of a process; 0 where it is in none.

    The file is empty for a process of the root group: a kernel thread, or one of a session older than the groups.
    """
    try:
        group = Path(f"/proc/{pid}/autogroup").read_text().split()
    except OSError:
        return 0
    return int(group[-1]) if group else 0


def set_group_nice(pid: int, nice: int) -> None:
    """Set the nice value of the scheduler's group of a process, where the system allows it."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(nice))
