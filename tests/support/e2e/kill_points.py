"""One kill at one boundary of the wire, and everything that has to hold afterwards.

A starting point (nothing deployed, or the stack deployed) is made once and copied for every point. Leaves out which
points are tried: see `test_kill_points.py` and `tools/measure/kills.py`.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from bezel_base.loopback.listeners import bind, free_port
from bezel_localcloud import control
from bezel_localcloud.core.files.locks import using
from tests.support.e2e.consistency import problems
from tests.support.e2e.rehearsal import SECONDS, Rehearsal

if TYPE_CHECKING:
    import subprocess

HOLD = "/localcloud/hold"
SMALL = {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32}
OPERATIONS = ("up", "update", "refresh", "destroy")
COMMANDS = {"up": "up", "update": "up", "refresh": "refresh", "destroy": "down"}
# victim -> words of its command line; the daemon is no child of the run.
VICTIMS = {
    "engine": "/pulumi ",
    "program": "pulumi-language-python-exec",
    "dynamic provider": "bezel_components.dynamic_plugin",
    "stand-in": "bezel_pulumi_offline.gcp",
    "localcloud": "",
    "engine, SIGINT": "/pulumi ",
    "engine, two SIGINT": "/pulumi ",
}
COMMAND = "command"  # `bezel` itself: its engine goes on, is interrupted, and ends in order
WAIT = 120


@dataclass(frozen=True)
class Boundary:
    """One call on the wire, by its place among those that look like it."""

    method: str
    path: str
    nth: int


@dataclass(frozen=True)
class Point:
    """A victim, and where it is struck."""

    operation: str
    victim: str
    boundary: Boundary
    when: str
    stack: str = "l4-qat"


@dataclass(frozen=True)
class Outcome:
    """What came of a strike; `problems` is empty where everything held."""

    message: str
    problems: tuple[str, ...]


class NotThereError(Exception):
    """The victim does not live at this boundary, or the run never came there."""


class KillHarness:
    """Starting points, each made when it is first wanted, below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports: list[socket.socket] = []

    def copy(self, operation: str, to: Path) -> Rehearsal:
        """A rehearsal on which the operation may begin, with its cloud started."""
        bare = operation == "up"
        rehearsal = self.copy_with_cloud("bare" if bare else "deployed", _preview if bare else _deploy, to)
        if operation == "update":
            rehearsal.set("vllm.max-num-seqs", 4)
        return rehearsal

    def copy_with_cloud(self, name: str, prepare: Callable[[Rehearsal], None], to: Path) -> Rehearsal:
        """A copy of what `prepare` has made of a new rehearsal, with its cloud started."""
        self._make(name, prepare)
        shutil.copytree(self._folder / name, to, symlinks=True, dirs_exist_ok=True)
        self._ports += _give_own_ports(to / "cloud")
        rehearsal = Rehearsal(to / "checkout", to / "cloud")
        rehearsal.start_cloud()
        return rehearsal

    def make(self) -> None:
        """Make those of `copy` where they are missing."""
        self._make("bare", _preview)
        self._make("deployed", _deploy)

    def _make(self, name: str, prepare: Callable[[Rehearsal], None]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        # Other workers want the same: one makes it, the others wait.
        with (self._folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (self._folder / name).exists():
                return
            part = self._folder / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()
            rehearsal = Rehearsal.new(part / "checkout", part / "cloud")
            try:
                prepare(rehearsal)
            finally:
                rehearsal.stop_cloud()
            part.rename(self._folder / name)


def _give_own_ports(cloud: Path) -> list[socket.socket]:
    """Let the services of a copy have addresses that no other copy has, and the state know them.

    While the returned sockets are open, nothing else draws these ports, also before the cloud starts and after a kill.
    """
    ports = []
    with contextlib.closing(sqlite3.connect(cloud / "cloud.db")) as database:
        for key, port in database.execute("SELECT key, value FROM settings WHERE key LIKE 'front %'").fetchall():
            ports.append(bind("127.0.0.1", free_port()))
            own_port = ports[-1].getsockname()[1]
            database.execute("UPDATE settings SET value = ? WHERE key = ?", (str(own_port), key))
            for state in (cloud / "state" / ".pulumi" / "stacks").rglob("*.json"):
                state.write_text(state.read_text().replace(f"//127.0.0.1:{port}", f"//127.0.0.1:{own_port}"))
        database.commit()
    return ports


def _preview(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", SMALL)
    run = rehearsal.local("preview", "l4-qat")
    assert run.code == 0, run.text


def _deploy(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", SMALL)
    run = rehearsal.local("up", "l4-qat")
    assert run.code == 0, run.text


def boundaries(rehearsal: Rehearsal, operation: str) -> list[Boundary]:
    """Run the operation undisturbed and count its calls of Google's APIs in the log of the wire."""
    log = rehearsal.cloud / "logs" / "wire.jsonl"
    before = len(log.read_text().splitlines()) if log.exists() else 0
    run = rehearsal.local(COMMANDS[operation], "l4-qat")
    assert run.code == 0, run.text
    lines = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    seen: Counter[tuple[str, str]] = Counter()
    counted_calls = []
    for line in lines:
        # Getting a token changes nothing, and localcloud's own routes are no API of Google.
        if line["path"] == "/token" or line["path"].startswith("/localcloud/"):
            continue
        call = line["method"], re.sub(r"/operations/.*", "/operations/*", line["path"])
        seen[call] += 1
        counted_calls.append(Boundary(*call, seen[call]))
    return counted_calls


def kill_at_boundary(rehearsal: Rehearsal, point: Point) -> Outcome:
    """Kill the victim at its boundary, recover, and say what does not hold then.

    Raises:
        NotThereError: There was nothing to kill, or no such boundary.
    """
    return _aftermath(rehearsal, killed_run(rehearsal, point))


def killed_run(rehearsal: Rehearsal, point: Point) -> str:
    """Kill the victim at its boundary and let the rest of the run end; what it printed.

    Raises:
        NotThereError: There was nothing to kill, or no such boundary.
    """
    with rehearsal.api() as api:
        process = begin(rehearsal, api, point)
        try:
            kill(rehearsal, process, point)
        except NotThereError:
            api.delete(HOLD)  # the run goes on to its end
            raise
        else:
            if point.victim != "localcloud":
                ends_in_order = "SIGINT" in point.victim or point.victim in {"program", COMMAND}
                dropped = point.when == "before" and not ends_in_order
                api.delete(HOLD, params={"drop": int(dropped)})
        finally:
            printed_text, _ = process.communicate(timeout=SECONDS)
    return printed_text


def begin(rehearsal: Rehearsal, api: httpx.Client, point: Point) -> "subprocess.Popen[str]":
    """Start the point's operation; it stands at the boundary now.

    Raises:
        NotThereError: It ended without coming there.
    """
    place = {"method": point.boundary.method, "path": point.boundary.path, "nth": point.boundary.nth}
    assert api.put(HOLD, json=place | {"when": point.when}).is_success
    process = rehearsal.start(COMMANDS[point.operation], point.stack)
    deadline = time.monotonic() + WAIT
    while not api.get(HOLD, params={"seconds": 1}).json()["reached"]:
        if process.poll() is not None or time.monotonic() > deadline:
            api.delete(HOLD)
            process.communicate(timeout=SECONDS)
            raise NotThereError("the run never came to this boundary")
    return process


def kill(rehearsal: Rehearsal, process: "subprocess.Popen[str]", point: Point) -> None:
    """Strike the point's victim.

    Raises:
        NotThereError: It does not live at this boundary.
    """
    victim = _victim(rehearsal, process, point.victim)
    if "SIGINT" not in point.victim:
        os.kill(victim, signal.SIGKILL)
        _until(lambda: not alive(victim), "the victim is gone")
        return
    os.kill(victim, signal.SIGINT)
    if "two" in point.victim:
        # The engine takes a second one for one only after it has handled the first.
        _until(lambda: _has_no_pending_signal(victim), "the first SIGINT is handled")
        os.kill(victim, signal.SIGINT)


def _victim(rehearsal: Rehearsal, process: "subprocess.Popen[str]", name: str) -> int:
    if name == COMMAND:
        return process.pid
    if name == "localcloud":
        endpoint = control.status(rehearsal.cloud)
        assert endpoint is not None
        return endpoint.pid
    pids = [pid for pid in descendants(process.pid) if VICTIMS[name] in command_line(pid)]
    if not pids:
        raise NotThereError(f"no {name} lives at this boundary")
    return pids[-1]


def _has_no_pending_signal(process: int) -> bool:
    """Whether no signal waits for the process (SigPnd and ShdPnd of proc(5))."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return True
    return not any(int(value, 16) for value in re.findall(r"^(?:SigPnd|ShdPnd):\s*(\w+)", status, re.MULTILINE))


def _aftermath(rehearsal: Rehearsal, printed_text: str) -> Outcome:
    """The next `up` converges, a second one is empty, `down` leaves nothing behind.

    Args:
        rehearsal: That was struck.
        printed_text: What the struck command printed.
    """
    failures: list[str] = []
    first = rehearsal.local("up", "l4-qat")
    if first.code:
        failures.append(f"up after the kill ends with {first.code}:\n{first.text}")
    second = rehearsal.local("up", "l4-qat", "--", "--expect-no-changes", "--skip-preview")
    if second.code:
        failures.append(f"a second up ends with {second.code}:\n{second.text}")
    with using(rehearsal.cloud):  # it goes on, so that what is left can be asked for
        down = rehearsal.local("down", "l4-qat")
    if down.code:
        failures.append(f"down ends with {down.code}:\n{down.text}")
    failures += leftovers(rehearsal)
    healed = message_of(printed_text)
    messages = [f"itself: {healed}"] if healed else []
    return Outcome("; ".join([*messages, message_of(first.text)]).strip("; ") or "nothing", tuple(failures))


def leftovers(rehearsal: Rehearsal) -> list[str]:
    """What is left of a stack after its `down`, in the cloud and on this machine; its cloud is stopped then."""
    rest_texts = []
    rehearsal.start_cloud()
    left = {kind: names for kind, names in rehearsal.exists().items() if kind not in {"enabledApis", "objects"}}
    if left != {"buckets": ["bezel-local-models"]}:
        rest_texts.append(f"down leaves {left}")
    rehearsal.local("stop")
    rest_texts += problems(rehearsal.cloud)
    return rest_texts + [f"still runs: {line}" for line in _processes(rehearsal)]


def message_of(text: str) -> str:
    """What a command told of a kill, in short."""
    messages = []
    if "unlocking the stack" in text:
        messages.append("unlocked")
    for line in text.splitlines():
        if "of an earlier run unknown" in line:
            messages.append(line.partition("outcome of ")[2].partition(" of an earlier")[0] + " open")
        match = re.match(r"  (created, now in the state|was not created): (.*)", line)
        messages += [f"{match[1]}: {match[2].rpartition('/')[2]}"] if match else []
    return "; ".join(messages)


def _processes(rehearsal: Rehearsal) -> list[str]:
    """Command lines of processes that have to do with this rehearsal."""
    mark = str(rehearsal.cloud.parent).encode()
    deadline = time.monotonic() + 60
    while True:
        command_lines = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if (
                    int(entry.name) != os.getpid()
                    and mark in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                ):
                    command_lines.append(command_line(int(entry.name)))
            except OSError:
                continue
        if not command_lines or time.monotonic() > deadline:
            return command_lines
        time.sleep(0.1)


def descendants(process: int) -> list[int]:
    """The process and everything below it."""
    pids, rest = [], [process]
    while rest:
        one = rest.pop()
        pids.append(one)
        for task in Path(f"/proc/{one}/task").glob("*"):
            try:
                rest += [int(child) for child in (task / "children").read_text().split()]
            except OSError:
                continue
    return pids


def command_line(process: int) -> str:
    """The process's arguments, with spaces; "" once it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def alive(process: int) -> bool:
    """Whether it runs; a zombie does not."""
    return bool(command_line(process))


def _until(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.01)
