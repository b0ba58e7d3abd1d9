"""Processes of dynamic resources to be killed, that start in a moment: each is forked from one that has loaded all.

`python dynamic_victims.py` is the one that waits: for each line on stdin, an engine's address, it starts what the
engine would (`python -m bezel_components.dynamic_plugin ADDRESS`), whose process id and
port stand on one line on stdout.
"""

import importlib
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

ROOT = Path(__file__).parents[3]
# What the providers come to need; no thread, connection or channel is there before a process is forked.
LOADED = (
    "bezel_components.providers.model_files",
    "bezel_smoke.benchmark",
    "bezel_smoke.health",
    "bezel_bench.cell.cell",
    "google.auth",
    "google.oauth2.service_account",
    "httpx",
)


@dataclass(frozen=True)
class KillableProvider:
    """One such process."""

    pid: int
    stub: provider_pb2_grpc.ResourceProviderStub

    def kill(self) -> None:
        """End it as the kernel does, between two instructions."""
        os.kill(self.pid, signal.SIGKILL)


class Prefork:
    """Starts victims; see `prefork`."""

    def __init__(self, process: "subprocess.Popen[str]", engine: str) -> None:
        self._process, self._engine = process, engine

    @contextmanager
    def victim(self) -> Iterator[KillableProvider]:
        """One that answers; dead afterwards."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{self._engine}\n")
        self._process.stdin.flush()
        pid, port = self._process.stdout.readline().split()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            started = KillableProvider(int(pid), provider_pb2_grpc.ResourceProviderStub(channel))
            try:
                yield started
            finally:
                started.kill()


@contextmanager
def prefork(environment: Mapping[str, str], engine: str) -> Iterator[Prefork]:
    """Starts victims with this environment, for an engine that listens at this address."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("GOOGLE_", "BEZEL_"))}
    process = subprocess.Popen(
        [sys.executable, "-u", __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=inherited | {"PYTHONPATH": str(ROOT)} | environment,
    )
    try:
        yield Prefork(process, engine)
    finally:
        process.kill()
        process.communicate(timeout=60)


def _wait() -> None:
    for name in LOADED:
        importlib.import_module(name)
    unburied: list[int] = []
    for line in iter(sys.stdin.readline, ""):
        pid = os.fork()
        if pid == 0:
            sys.stdout.write(f"{os.getpid()} ")
            sys.stdout.flush()
            sys.argv = ["bezel_components.dynamic_plugin", line.strip()]
            runpy.run_module("bezel_components.dynamic_plugin", run_name="__main__", alter_sys=True)
        # The dead of before. A killed process keeps its number until then, so nobody else can be meant by it.
        unburied = [one for one in [*unburied, pid] if os.waitpid(one, os.WNOHANG) == (0, 0)]


if __name__ == "__main__":
    _wait()
