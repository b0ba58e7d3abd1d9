"""One run of a client on one core, watched from outside: wall and CPU time, first request, memory, other work.

CPU time is that of the process and of all its descendants: the kernel's own sum where it ends, and the clocks of the
processes of its session at the instant at which the server announces the first request. Memory is the largest sum of
the resident sets of these processes, read every 10 ms: pages that two of them share count twice.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools.bench.clients.priority import group_nice, set_group_nice
from tools.docs.generated_sections import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

_SAMPLE_SECONDS, _SCAN_SECONDS = 0.01, 0.25
_PAGE_MIB = resource.getpagesize() / 2**20
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Watched:
    """What was seen of a run.

    Attributes:
        seconds: Its duration.
        cpu_seconds: CPU time of the process tree.
        first_cpu_seconds: CPU time until the server announced the first request; None where it announced none.
        memory_mib: Largest sum of the resident sets.
        exit_code: Of the process; None where it was ended after its time limit.
        output: The end of what it printed.
    """

    seconds: float
    cpu_seconds: float
    first_cpu_seconds: float | None
    memory_mib: float
    exit_code: int | None
    output: str


def watch(
    command: Sequence[str],
    variables: dict[str, str],
    core: int | None,
    folder: Path,
    limit: float,
    announced: IO[bytes] | None,
) -> Watched:
    """Run a command to its end, or to its time limit.

    Args:
        command: The client's command line.
        variables: Its environment.
        core: The core of its whole process tree; None: any.
        folder: For its output.
        limit: Seconds after which it is killed.
        announced: The server's output: one line when the first request arrives.
    """
    pinned = [] if core is None else ["taskset", "-c", str(core)]
    with (folder / "output").open("wb") as output:
        before, began = _children_cpu(), time.monotonic()
        process = subprocess.Popen(
            [*pinned, *command],
            env=variables,
            cwd=ROOT,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        # A new session is a new group of the scheduler.
        set_group_nice(process.pid, group_nice(os.getpid()))
        tree = [process.pid]
        memory, first_cpu, scanned = 0.0, None, began
        waited = [announced] if announced else []
        try:
            while process.poll() is None:
                memory = max(memory, sum(map(_resident_mib, tree)))
                if time.monotonic() - began >= limit:
                    break
                if select.select(waited, [], [], _SAMPLE_SECONDS)[0]:
                    first_cpu, waited = sum(map(_cpu, session(process.pid))), []
                if time.monotonic() - scanned > _SCAN_SECONDS:
                    tree, scanned = session(process.pid), time.monotonic()
        finally:
            seconds, exit_code = time.monotonic() - began, process.poll()
            for pid in session(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()
    text = (folder / "output").read_text(errors="replace")[-2000:]
    return Watched(seconds, _children_cpu() - before, first_cpu, memory, exit_code, text)


def session(leader: int) -> list[int]:
    """The processes of a session."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and int(entry.name) >= leader]
    return [pid for pid in pids if (fields := _fields(pid)) and int(fields[3]) == leader]


def machine_cpu() -> float:
    """CPU seconds of all that this machine has run, and of what its host withheld from it."""
    user, nice, system, _, _, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS


def process_cpu(pid: int) -> float:
    """CPU seconds of a living process, by its own clock (clock_getcpuclockid(3)); 0 where it has ended."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def _cpu(pid: int) -> float:
    fields = _fields(pid)
    return process_cpu(pid) + (sum(map(int, fields[13:15])) / _TICKS if fields else 0.0)


def _fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on: [3] is the session, [13] and [14] the CPU time of ended children."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _resident_mib(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_MIB
    except OSError:
        return 0.0


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
