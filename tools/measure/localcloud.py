"""Capacity and cost of localcloud: many streams on one core, a chunk through the front, idling.

    .venv/bin/python -m tools.measure.localcloud [--streams 2000] [--core 1]

Everything runs on loopback and ends by itself, within three minutes. The server has one core to itself, the client runs
on the others. Figures depend on the machine and its other work: its load is printed beside them.
"""

from __future__ import annotations

import argparse
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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_bench.client.load_engine import run_load
from bezel_bench.load.plan import Body, Constant, Load, PromptPlan, Stop, Target
from bezel_localcloud import control, seed
from bezel_simulated_vllm import synthetic_weights
from bezel_simulated_vllm.scheduling.virtual_load import Rig, settings_of_server
from localcloud_support.client import Client, until
from tools.measure.own_cloud import own_cloud

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel_simulated_vllm.configuration.settings import EngineSettings

ROOT = Path(__file__).parents[2]

MODEL = "gemma-4-12b-it-qat-w4a16"
RTX = {"accelerator": "nvidia-rtx-pro-6000", "accelerators": 1, "cpu": 20, "memory_gib": 80}
ARGUMENTS = ("--max-model-len=1024", "--kv-cache-dtype=fp8", "--max-num-seqs=2048", "--served-model-name=m")
PROMPT, OUTPUT = 48, 64  # tokens
RAMP = 5.0  # seconds until all streams are requested: a burst would measure how fast connections are accepted
MOST_SECONDS = 90.0
IDLE_SECONDS = 20.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2000, help="simultaneous streams, at most 4,000")
    parser.add_argument(
        "--core", type=int, default=(os.cpu_count() or 1) - 1, help="the core that the server has to itself"
    )
    chosen = parser.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(files[1], 16_384), files[1]))
    os.sched_setaffinity(0, set(range(os.cpu_count() or 1)) - {chosen.core} or {chosen.core})
    print(f"{os.cpu_count()} cores, the server on core {chosen.core}; load of the last minute {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        streams(Path(folder), min(chosen.streams, 4000), chosen.core)
    platform(chosen.core)
    print(f"load of the last minute {os.getloadavg()[0]:.2f}")


def streams(folder: Path, count: int, core: int) -> None:
    """Measure many streams at one server, beside the same engine in virtual time."""
    settings = settings_of_server(folder, MODEL, ARGUMENTS, RTX)
    with instance(folder, core) as (port, pid):
        before, waited = cpu_seconds(pid), queued_seconds(pid)
        streams = ask_all(port, count)
        spent, waited = cpu_seconds(pid) - before, queued_seconds(pid) - waited
    whole = [stream for stream in streams if stream.done]
    wall = max(stream.times[-1] for stream in whole) - streams[0].asked
    planned = schedule(settings, [stream.asked - streams[0].asked for stream in streams])
    late = sorted(
        stream.times[-1] - streams[0].asked - end for stream, end in zip(streams, planned, strict=True) if stream.done
    )
    first_all = max(stream.times[0] for stream in whole)
    together = sum(stream.times[-1] > first_all for stream in whole)
    chunks = sum(len(stream.times) for stream in whole)
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


def platform(core: int) -> None:
    """Measure a service behind a front: the daemon's cost of a chunk, and CPU of daemon and instance while idle."""
    with own_cloud() as (_, cloud):
        endpoint = control.start(cloud, speed=10_000)
        client = Client(endpoint)
        client.prepare()
        seed.seed(endpoint, "models", "m", synthetic_weights.model_files(MODEL))
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
        pids = {"the daemon": endpoint.pid, "an idle instance": instance_of(cloud)}
        os.sched_setaffinity(endpoint.pid, {core})
        before = cpu_seconds(endpoint.pid)
        streams = ask_all(port, 200)
        spent, chunks = cpu_seconds(endpoint.pid) - before, sum(len(stream.times) for stream in streams)
        requests = sum(stream.done for stream in streams)
        print(f"front: {requests} of 200 streams whole, {chunks} chunks; {spent / chunks * 1e6:.0f} us of CPU a chunk")
        idle = {name: cpu_seconds(pid) for name, pid in pids.items()}
        time.sleep(IDLE_SECONDS)
        for name, pid in pids.items():
            share = (cpu_seconds(pid) - idle[name]) / IDLE_SECONDS
            print(f"idle: {name} took {share:.2%} of a core in {IDLE_SECONDS:g} s")


@dataclass(frozen=True)
class StreamTimes:
    """One stream: time of its request and of each chunk, whether it was complete. Seconds of this machine."""

    asked: float
    times: tuple[float, ...]
    done: bool


class Prompts:
    """Requests with a prompt of their own each, as token ids, that stream a response of a fixed length."""

    turns = 1

    def body(self, index: int, turn: int = 0) -> Body:
        """See `bezel_bench.load.plan.Bodies`."""
        del turn
        prompt = [1000 + index % 1000, 3000 + index // 1000, *range(5000, 5000 + PROMPT - 2)]
        request = {"model": "m", "prompt": prompt, "max_tokens": OUTPUT, "ignore_eos": True, "temperature": 0}
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        return Body(json.dumps(request | streamed).encode(), OUTPUT)


def ask_all(port: int, count: int) -> list[StreamTimes]:
    """Request `count` streams within the ramp, and wait until all are complete or the time is over."""
    load = Load(
        target=Target(f"http://127.0.0.1:{port}", "m", "completions"),
        pattern=Constant(count / RAMP),
        stop=Stop(requests=count),
        prompts=PromptPlan(output_tokens=OUTPUT),
        deadline_seconds=MOST_SECONDS,
    )
    measured = run_load(load, Prompts(), dict, lambda _: None)
    return [
        StreamTimes(stream.sent / 1e9, tuple(at / 1e9 for at in stream.chunks), not stream.failure)
        for stream in sorted(measured.samples, key=lambda stream: stream.sent)
    ]


def schedule(settings: EngineSettings, arrivals: list[float]) -> list[float]:
    """End times of the same requests in virtual time, in seconds from the first one."""
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
        "bezel_simulated_vllm",
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
    """Whether a process listens at a port."""
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
    """Raise a process's priority over all others of its core, where this user may."""
    try:
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        print("  (no right to give the server its core: others may run on it)")


def queued_seconds(pid: int) -> float:
    """Seconds that a process was runnable while others ran."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
