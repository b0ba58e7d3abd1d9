"""Liveness of a process of this machine. Leaves out its owner, and what the caller does about it."""

import contextlib
import os
import signal
from contextlib import suppress
from pathlib import Path

# PF_EXITING of the kernel's include/linux/sched.h, in the flags of proc_pid_stat(5).
_EXITING = 0x4
_KILLED = 1 << (signal.SIGKILL - 1)


MOST_PID = 2**31 - 1
"""Highest process id that a system call takes. An id below 1 stands for a group of processes there."""


def is_running(pid: int) -> bool:
    """Whether a process exists and has not been ended.

    A killed process exists for a while with its locks and open ports, the longer the busier the machine is.
    Without /proc it counts as running until it is gone.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    process = Path("/proc", str(pid))
    with suppress(FileNotFoundError, ProcessLookupError):
        state, *fields = process.joinpath("stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        if state in {"Z", "X"} or int(fields[5]) & _EXITING:
            return False
        lines = (line.split() for line in process.joinpath("status").read_text(encoding="utf-8").splitlines())
        return not any(line[0] in {"SigPnd:", "ShdPnd:"} and int(line[1], 16) & _KILLED for line in lines)
    # The process is gone, or there is no /proc.
    return not Path("/proc/self").exists()


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only waits for its parent to read its exit status."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    with suppress(OSError):
        return Path("/proc", str(pid), "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in {"Z", "X"}
    return False


DIRECTORY_VARIABLE = "LOCALCLOUD_DIRECTORY"


def end_leftovers(directory: Path) -> int:
    """End every process of this user that was started as an instance of a directory and return their number."""
    return end_marked(DIRECTORY_VARIABLE, str(directory))


def end_marked(variable: str, value: str) -> int:
    """End every other process of this user that has the variable in its environment and return their number.

    Linux only: elsewhere another process's environment cannot be read, and 0 is returned.
    """
    ended = 0
    for process in processes_with_variable(variable, value):
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
            ended += 1
    return ended


def end_session(leader: int) -> int:
    """End every process of the session that a process began and return their number. Linux only: elsewhere none."""
    ended = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] not in {"Z", "X"}:
                os.kill(int(entry.name), signal.SIGKILL)
                ended += 1
    return ended


def processes_with_variable(variable: str, value: str) -> list[int]:
    """The other processes of this user that have the variable in their environment. Linux only."""
    mark, processes = f"{variable}={value}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid():
                processes.append(int(entry.name))
    return processes
