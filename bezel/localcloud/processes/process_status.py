"""Liveness of a process of this machine. Leaves out its owner, and what the caller does about it."""

import os
import signal
from contextlib import suppress
from pathlib import Path

# PF_EXITING of the kernel's include/linux/sched.h, in the flags of proc_pid_stat(5).
_EXITING = 0x4
_KILLED = 1 << (signal.SIGKILL - 1)


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
        state, *fields = process.joinpath("stat").read_text().rpartition(")")[2].split()
        if state in {"Z", "X"} or int(fields[5]) & _EXITING:
            return False
        lines = (line.split() for line in process.joinpath("status").read_text().splitlines())
        return not any(line[0] in {"SigPnd:", "ShdPnd:"} and int(line[1], 16) & _KILLED for line in lines)
    # The process is gone, or there is no /proc.
    return not Path("/proc/self").exists()
