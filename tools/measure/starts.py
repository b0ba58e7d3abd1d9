"""Count what a command starts: `python -m tools.measure.starts -- .venv/bin/pytest -q -n 2 tests/e2e/test_faults.py`.

Prints a table of the programs: how often each started, and its seconds of CPU, which a busy machine changes little.
Of a run of pytest, prints a table of the dearest tests as well, by what they started (not by what the workers do).
The kernel reports each fork, exec and exit (Linux, as root: netlink's process connector and taskstats); polling
/proc would miss what lives for milliseconds.
"""

import argparse
import os
import re
import select
import socket
import struct
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

CONNECTOR, GENERIC = 11, 16
FORK, EXEC = 1, 2
REST_SECONDS = 1.0
# Offsets in struct taskstats of linux/taskstats.h; the times are microseconds.
THREAD_AT, USER_AT = 128, 152


@dataclass
class Process:
    """What one process ran, under which test, and its seconds of CPU."""

    program: str
    test: str
    cpu: float = 0.0
    executed: bool = False


@dataclass
class Processes:
    """The processes that descend from one."""

    root: int
    living: dict[int, Process] = field(default_factory=dict)
    group_of: dict[int, int] = field(default_factory=dict)
    all: list[Process] = field(default_factory=list)

    def fork(self, parent: int, thread: int, group: int) -> None:
        """Take in a new thread or process of a process that is counted."""
        if parent not in self.living:
            return
        self.group_of[thread] = group
        if thread == group:
            self.add(group, Process(self.living[parent].program + " (fork)", self.living[parent].test))

    def add(self, group: int, process: Process) -> None:
        """Take in a process."""
        self.group_of[group] = group
        self.living[group] = process
        self.all.append(process)

    def execute(self, group: int) -> None:
        """Name the process by the program that it runs now; it may have ended meanwhile."""
        if group not in self.living:
            return
        process = self.living[group]
        try:
            arguments = Path(f"/proc/{group}/cmdline").read_text().split("\0")[:-1]
            environment = Path(f"/proc/{group}/environ").read_text(errors="replace")
        except OSError:
            arguments, environment = [], ""
        process.program = program_name(arguments) if arguments else "(ended at once)"
        test = re.search(r"(?:^|\0)PYTEST_CURRENT_TEST=([^\0]*) \(\w+\)", environment)
        process.test = test[1] if test else process.test
        process.executed = True

    def end(self, thread: int, seconds: float) -> None:
        """Count what a thread used that has ended."""
        group = self.group_of.pop(thread, None)
        if group is not None and group in self.living:
            self.living[group].cpu += seconds


def program_name(arguments: list[str]) -> str:
    """Name a command line by its program, an interpreter by the script or module as well."""
    name = Path(arguments[0]).name
    if not name.startswith(("python", "bash", "sh", "node")):
        return name
    rest = arguments[1:]
    while rest and rest[0].startswith("-"):
        if rest[0] in {"-m", "-c"}:
            return f"{name} {rest[0]} {' '.join(rest[1:2]).split(chr(10))[0][:50]}"
        rest = rest[1:]
    return f"{name} {Path(rest[0]).name}" if rest else name


def message(kind: int, payload: bytes) -> bytes:
    """Frame a netlink request."""
    return struct.pack("=IHHII", 16 + len(payload), kind, 1, 0, 0) + payload


def attribute(kind: int, value: bytes) -> bytes:
    """Frame a netlink attribute."""
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def events_socket() -> socket.socket:
    """Open the process connector.

    Raises:
        PermissionError: Not root.
    """
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, CONNECTOR)
    made.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE: a burst of forks is not lost
    made.bind((0, 1))
    made.send(message(3, struct.pack("=IIIIHHI", 1, 1, 0, 0, 4, 0, 1)))
    return made


def exits_socket() -> socket.socket:
    """Open taskstats for the exits on all CPUs."""
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, GENERIC)
    made.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)
    made.bind((0, 0))
    made.send(message(16, struct.pack("=BBH", 3, 1, 0) + attribute(2, b"TASKSTATS\0")))
    answer = made.recv(1 << 16)
    family = attributes(answer[20:])[1]
    cpus = f"0-{(os.cpu_count() or 1) - 1}\0".encode() if (os.cpu_count() or 1) > 1 else b"0\0"
    made.send(message(struct.unpack("=H", family[:2])[0], struct.pack("=BBH", 1, 1, 0) + attribute(3, cpus)))
    return made


def attributes(data: bytes) -> dict[int, bytes]:
    """Read netlink attributes."""
    read = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        read[kind & 0x3FFF] = data[4:length]
        data = data[length + (-length % 4) :]
    return read


def read_exit(data: bytes) -> tuple[int, float] | None:
    """Return thread and seconds of CPU that a message of taskstats reports, None for another message."""
    of_thread = attributes(data[20:]).get(4)
    if of_thread is None:
        return None
    stats = attributes(of_thread).get(3)
    if stats is None:
        return None
    user, system = struct.unpack_from("=QQ", stats, USER_AT)
    return struct.unpack_from("=I", stats, THREAD_AT)[0], (user + system) / 1e6


def count(command: list[str]) -> tuple[int, Processes]:
    """Run a command to its end and count what it starts."""
    events, exits = events_socket(), exits_socket()
    reader, writer = os.pipe()
    child = subprocess.Popen(["sh", "-c", f'read go <&{reader}; exec "$@"', "sh", *command], pass_fds=[reader])
    processes = Processes(child.pid)
    processes.add(child.pid, Process(command[0], "", executed=True))
    os.write(writer, b"go\n")
    # What is still reported a moment after the command's end belongs to others, or to what it left running.
    until = None
    while until is None or time.monotonic() < until:
        ready, _, _ = select.select([events, exits], [], [], 0.2)
        if events in ready:
            for what, parent, thread, group in read_events(events.recv(1 << 16)):
                if what == FORK:
                    processes.fork(parent, thread, group)
                else:
                    processes.execute(group)
        elif exits in ready:
            exited = read_exit(exits.recv(1 << 16))
            if exited is not None:
                processes.end(*exited)
        if until is None and child.poll() is not None:
            until = time.monotonic() + REST_SECONDS
    return child.returncode, processes


def read_events(data: bytes) -> list[tuple[int, int, int, int]]:
    """Return a fork or an exec that a message reports: its kind, the parent's process, the thread and its process."""
    what = struct.unpack_from("=I", data, 36)[0]
    if what == FORK:
        _, parent, thread, group = struct.unpack_from("=IIII", data, 52)
        return [(what, parent, thread, group)]
    if what == EXEC:
        thread, group = struct.unpack_from("=II", data, 52)
        return [(what, 0, thread, group)]
    return []


def table(processes: Processes, key: str, limit: int) -> str:
    """Render starts and CPU by program or by test, the dearest first."""
    groups: dict[str, list[Process]] = defaultdict(list)
    for process in processes.all:
        groups[getattr(process, key)].append(process)
    rows = sorted(groups.items(), key=lambda row: -sum(process.cpu for process in row[1]))
    lines = [f"{'starts':>7}{'s each':>9}{'s in all':>10}  {key}"]
    for name, group in rows[:limit]:
        total = sum(process.cpu for process in group)
        lines.append(f"{len(group):7}{total / len(group):9.3f}{total:10.2f}  {name or '(none)'}")
    total = sum(process.cpu for process in processes.all)
    return "\n".join([*lines, f"{len(processes.all):7}{'':9}{total:10.2f}  in all"])


def main() -> int:
    """Count, print, and exit as the command does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=20, help="rows of each table (default: 20)")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    try:
        code, processes = count(arguments.command)
    except PermissionError as error:
        print(f"The kernel reports exits to root only ({error}). Run it as root, e.g. in a container.", file=sys.stderr)
        return 2
    print(table(processes, "program", arguments.rows), table(processes, "test", arguments.rows), sep="\n\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
