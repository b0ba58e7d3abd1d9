"""How much localcloud bears and how little it takes: many streams on one core, a chunk through the front, idling.

    .venv/bin/python tools/measure_localcloud.py [--streams 2000] [--core 1]

Everything runs on loopback and ends by itself, within three minutes. The server has one core to itself, the client runs
on the others. Figures depend on the machine and on what else runs there: its load is printed beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support"), str(ROOT / "tests" / "localcloud")]

from cloud_client import Client, until  # noqa: E402 - the path first

from bezel.localcloud import control, made_up, seed  # noqa: E402
from bezel.localcloud.vllm.virtual_load import served  # noqa: E402
from bezel.localcloud.vllm.virtual_time import Rig  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.localcloud.vllm.settings import Settings

MODEL = "gemma-4-12b-it-qat-w4a16"
RTX = {"accelerator": "nvidia-rtx-pro-6000", "accelerators": 1, "cpu": 20, "memory_gib": 80}
ARGUMENTS = ("--max-model-len=1024", "--kv-cache-dtype=fp8", "--max-num-seqs=2048", "--served-model-name=m")
PROMPT, OUTPUT = 48, 64  # tokens
RAMP = 5.0  # seconds until all streams are asked for: a burst would measure how fast connections are accepted
MOST_SECONDS = 90.0
IDLE_SECONDS = 20.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2000, help="simultaneous streams, at most 4,000")
    parser.add_argument("--core", type=int, default=os.cpu_count() - 1, help="the core that the server has to itself")
    chosen = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files[1], 16_384), files[1]))
    os.sched_setaffinity(0, set(range(os.cpu_count())) - {chosen.core} or {chosen.core})
    print(f"{os.cpu_count()} cores, the server on core {chosen.core}; load of the last minute {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        streams(Path(folder), min(chosen.streams, 4000), chosen.core)
    with tempfile.TemporaryDirectory() as folder:
        platform(Path(folder), chosen.core)
    print(f"load of the last minute {os.getloadavg()[0]:.2f}")


def streams(folder: Path, count: int, core: int) -> None:
    """Many streams at one server, beside what the same engine does with them in virtual time."""
    settings = served(folder, MODEL, ARGUMENTS, RTX)
    with instance(folder, core) as (port, pid):
        before, waited = cpu_seconds(pid), queued_seconds(pid)
        seen = asyncio.run(ask_all(port, [body(number) for number in range(count)], RAMP))
        spent, waited = cpu_seconds(pid) - before, queued_seconds(pid) - waited
    whole = [one for one in seen if one.done]
    wall = max(one.times[-1] for one in whole) - seen[0].asked
    planned = schedule(settings, [one.asked - seen[0].asked for one in seen])
    late = sorted(one.times[-1] - seen[0].asked - end for one, end in zip(seen, planned, strict=True) if one.done)
    first_all = max(one.times[0] for one in whole)
    together = sum(one.times[-1] > first_all for one in whole)
    chunks = sum(len(one.times) for one in whole)
    print(f"streams: {len(whole)} of {count} whole, {together} of them open at once, {chunks} chunks in {wall:.1f} s")
    print(
        f"  server: {spent:.1f} s of CPU, {spent / wall:.0%} of its core, {spent / chunks * 1e6:.0f} us a chunk; ",
        end="",
    )
    print(f"{waited:.1f} s it waited for its core, which others used")
    print(
        f"  its own schedule: {max(planned):.1f} s; ends behind it by {statistics.median(late):+.2f} s (median), ",
        end="",
    )
    print(f"{late[int(len(late) * 0.99)]:+.2f} s (99th of 100), {late[-1]:+.2f} s (the last)")


def platform(folder: Path, core: int) -> None:
    """A service behind a front: what a chunk costs the daemon, and what daemon and instance take while idle."""
    endpoint = control.start(folder / "cloud", speed=10_000)
    try:
        client = Client(endpoint)
        client.prepare()
        seed.seed(endpoint, "models", "m", made_up.model_files(MODEL))
        template = client.template(
            *("/mnt/models/m", "--max-model-len=1024", "--kv-cache-dtype=fp8", "--served-model-name=m"),
            env=[{"name": "LOCALCLOUD_SERVING_SPEED", "value": "5"}],
            volumes=[{"name": "w", "gcs": {"bucket": "models", "readOnly": True}}],
            volumeMounts=[{"name": "w", "mountPath": "/mnt/models"}],
            maxInstanceRequestConcurrency=200,
        )
        operation = client.create("measured", template, invokerIamDisabled=True)
        if "error" in operation:
            sys.exit(f"the service did not start: {operation['error']['message']}")
        port = int(client.service("measured")["uri"].rpartition(":")[2])
        pids = {"the daemon": endpoint.pid, "an idle instance": instance_of(folder / "cloud")}
        os.sched_setaffinity(endpoint.pid, {core})
        before = cpu_seconds(endpoint.pid)
        seen = asyncio.run(ask_all(port, [body(number) for number in range(200)], RAMP))
        spent, chunks = cpu_seconds(endpoint.pid) - before, sum(len(one.times) for one in seen)
        requests = sum(one.done for one in seen)
        print(f"front: {requests} of 200 streams whole, {chunks} chunks; {spent / chunks * 1e6:.0f} us of CPU a chunk")
        idle = {name: cpu_seconds(pid) for name, pid in pids.items()}
        time.sleep(IDLE_SECONDS)
        for name, pid in pids.items():
            share = (cpu_seconds(pid) - idle[name]) / IDLE_SECONDS
            print(f"idle: {name} took {share:.2%} of a core in {IDLE_SECONDS:g} s")
    finally:
        control.stop(folder / "cloud")


@dataclass
class Seen:
    """One stream: when it was asked for, when each chunk came, whether it came to its end. Seconds of this machine."""

    asked: float = 0.0
    times: list[float] = field(default_factory=list)
    done: bool = False


class Reader(asyncio.Protocol):
    """Sends one request and notes when each event comes; nothing is parsed beyond the count of events."""

    def __init__(self, request: bytes, seen: Seen, ended: asyncio.Future[None]) -> None:
        self._request, self._seen, self._ended = request, seen, ended

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        self._seen.asked = time.monotonic()
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        """Count the events of what came."""
        now = time.monotonic()
        self._seen.times += [now] * data.count(b"data: {")
        self._seen.done |= b"data: [DONE]" in data

    def connection_lost(self, exc: Exception | None) -> None:
        """The server closes after one answer."""
        del exc
        if not self._ended.done():
            self._ended.set_result(None)


def body(number: int) -> bytes:
    """A request of its own prompt that streams an answer of a fixed length."""
    prompt = [1000 + number % 1000, 3000 + number // 1000, *range(5000, 5000 + PROMPT - 2)]
    asked = {"model": "m", "prompt": prompt, "max_tokens": OUTPUT, "ignore_eos": True, "stream": True, "temperature": 0}
    content = json.dumps(asked).encode()
    head = "POST /v1/completions HTTP/1.1\r\nHost: m\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return head.encode() + f"Content-Length: {len(content)}\r\n\r\n".encode() + content


async def ask_all(port: int, bodies: list[bytes], ramp: float) -> list[Seen]:
    """Ask for all of them within the ramp, and wait until all are answered or the time is over."""
    loop = asyncio.get_running_loop()
    seen, ends = [Seen() for _ in bodies], []
    for one, request in zip(seen, bodies, strict=True):
        ends.append(loop.create_future())
        await loop.create_connection(lambda a=request, b=one, c=ends[-1]: Reader(a, b, c), "127.0.0.1", port)
        await asyncio.sleep(ramp / len(bodies))
    await asyncio.wait(ends, timeout=MOST_SECONDS)
    return seen


def schedule(settings: Settings, arrivals: list[float]) -> list[float]:
    """When the same requests end in virtual time, in seconds from the first one."""
    rig = Rig(settings)
    for arrival in arrivals:
        while rig.clock.time < arrival and rig.step():
            pass
        rig.clock.time = max(rig.clock.time, arrival)
        rig.ask([len(rig.outcomes), *range(5000, 5000 + PROMPT - 1)], OUTPUT)
    rig.run(1_000_000)
    return [outcome.times[-1] for outcome in rig.outcomes]


@contextmanager
def instance(folder: Path, core: int) -> Iterator[tuple[int, int]]:
    """(port, pid) of a simulated server that runs as in a container, on one core."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    environment = os.environ | {
        "LOCALCLOUD_HARDWARE": json.dumps(RTX),
        "LOCALCLOUD_MOUNTS": json.dumps({"/mnt/models": str(folder)}),
        "LOCALCLOUD_LISTEN": f"127.0.0.1:{port}",
        "LOCALCLOUD_SPEED": "100000",
    }
    command = [
        "taskset",
        "-c",
        str(core),
        sys.executable,
        "-m",
        "bezel.localcloud.vllm",
        "/mnt/models/model",
        *ARGUMENTS,
    ]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*command, "--disable-uvicorn-access-log"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    try:
        until(lambda: listens(port) or process.poll() is not None, 60)
        if process.poll() is not None:
            sys.exit(f"the server did not start:\n{(folder / 'log').read_text()[-2000:]}")
        prefer(process.pid)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(20)


def listens(port: int) -> bool:
    """Whether somebody listens at a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def instance_of(directory: Path) -> int:
    """The process of the one instance of a localcloud."""
    mark = f"LOCALCLOUD_DIRECTORY={directory}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                return int(entry.name)
        except OSError:
            continue
    sys.exit("no instance runs")


def prefer(pid: int) -> None:
    """Let a process run before all others of its core, where this user may order that."""
    try:
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        print("  (no right to give the server its core: others may run on it)")


def queued_seconds(pid: int) -> float:
    """Seconds that a process wanted to run and others did."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
