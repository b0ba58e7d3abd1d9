"""Start and idling of `bezel local serve`: time until it serves, first and again, and CPU while no request comes.

    .venv/bin/python -m tools.measure.serve [--starts 20] [--seconds 60]

The time is that from the start of the process until its line about the address, and the CPU that it used until then;
each start is one of a new folder, then one of the same folder. The CPU of idling is that of all processes of the cloud,
without a service and with one whose simulated vLLM keeps running. Figures depend on the machine and its other work: its
load is printed beside them.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_base.process_status import DIRECTORY_VARIABLE, processes_with_variable
from bezel_localcloud import seed
from bezel_localcloud.core.paths import Endpoint
from bezel_simulated_vllm import synthetic_weights
from localcloud_support.client import Client
from tests.support.cli.served import Served
from tools.measure.localcloud import MODEL, cpu_seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=20, help="starts of each kind (default: 20)")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of idling, each (default: 60)")
    chosen = parser.parse_args()
    print(f"{os.cpu_count()} cores; load of the last minute {os.getloadavg()[0]:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        starts(Path(folder), chosen.starts)
    with tempfile.TemporaryDirectory() as folder:
        idle(Path(folder), chosen.seconds)
    print(f"load of the last minute {os.getloadavg()[0]:.2f}")


def starts(folder: Path, count: int) -> None:
    """Start in a new folder, and again in the same one, in turn; print the medians."""
    times: dict[str, list[tuple[float, float]]] = {"in a new folder": [], "in its folder again": []}
    for number in range(count):
        for kind, samples in times.items():
            begun = time.monotonic()
            served = Served(folder, "--dir", f"cloud-{number}")
            samples.append((time.monotonic() - begun, cpu_seconds(served.pid)))
            code, errors = served.end()
            if code or not served.report:
                raise SystemExit(f"the start {kind} failed: {errors}")
    for kind, samples in times.items():
        walls, used = (sorted(each) for each in zip(*samples, strict=True))
        print(
            f"start {kind}: median {statistics.median(walls):.2f} s ({statistics.median(used):.2f} s of CPU), "
            f"{walls[0]:.2f} to {walls[-1]:.2f} s of {count}"
        )


def idle(folder: Path, seconds: float) -> None:
    """Leave a cloud alone, without and with a service; print the CPU of its processes."""
    served = Served(folder, "--dir", "cloud", "--speed", "10000")
    try:
        _show_idle(served, "without a service", seconds)
        endpoint = Endpoint.read(folder / "cloud")
        if endpoint is None:
            raise SystemExit("it does not run any more")
        client = Client(endpoint)
        client.prepare()
        seed.seed(endpoint, "models", "m", synthetic_weights.model_files(MODEL))
        template = client.template(
            *("/mnt/models/m", "--max-model-len=1024", "--kv-cache-dtype=fp8", "--served-model-name=m"),
            volumes=[{"name": "w", "gcs": {"bucket": "models", "readOnly": True}}],
            volumeMounts=[{"name": "w", "mountPath": "/mnt/models"}],
        )
        operation = client.create("idle", template, scaling={"minInstanceCount": 1})
        if "error" in operation:
            raise SystemExit(f"the service did not start: {operation['error']['message']}")
        _show_idle(served, "with a service and its instance", seconds)
    finally:
        served.end(signal.SIGTERM)


def _show_idle(served: Served, case: str, seconds: float) -> None:
    time.sleep(3)  # what a start or a deployment leaves to do
    pids = [served.pid, *processes_with_variable(DIRECTORY_VARIABLE, served.report["directory"])]
    before = {pid: cpu_seconds(pid) for pid in pids}
    time.sleep(seconds)
    used = {pid: cpu_seconds(pid) - before[pid] for pid in pids}
    others = sum(used.values()) - used[served.pid]
    print(
        f"idle {case}: {sum(used.values()) / seconds:.2%} of a core in {seconds:g} s "
        f"(localcloud {used[served.pid] / seconds:.2%}, {len(pids) - 1} processes of instances {others / seconds:.2%})"
    )


if __name__ == "__main__":
    main()
