"""Providers to be killed: processes of their own that start in a moment, because they are forked from one that waits.

`python provider_victims.py` is the one that waits: for each line on stdin it starts a provider, whose process id and
port stand on one line on stdout. To a provider the waiting process is the engine: it ends when that does.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from pulumi_offline_support.client import Provider
from pulumi_offline_support.google import FakeGoogle

SUPPORT = Path(__file__).parents[1]


class KillableProvider(Provider):
    """A provider in a process that can be killed."""

    def __init__(self, pid: int, port: int) -> None:
        self.pid = pid
        super().__init__(port, {"pollInterval": "2ms"})

    def kill(self) -> None:
        """End it as the kernel does, between two instructions."""
        os.kill(self.pid, signal.SIGKILL)


class Prefork:
    """Starts victims; a context manager."""

    def __init__(self, google: FakeGoogle) -> None:
        self._google = google

    def __enter__(self) -> Self:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **self._google.environment(),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pulumi_offline_support.killable_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=SUPPORT,
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate(timeout=60)

    def start(self) -> KillableProvider:
        """A provider process that answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("one\n")
        self._process.stdin.flush()
        pid, port = self._process.stdout.readline().split()
        return KillableProvider(int(pid), int(port))


def _wait() -> None:
    from bezel_pulumi_offline.plugin.fast_import import lighten

    lighten()
    from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin
    from bezel_pulumi_offline.plugin.server import serve

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are buried by the kernel
    for _ in iter(sys.stdin.readline, ""):
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sys.stdout.write(f"{os.getpid()} ")
            serve(GooglePlugin())


if __name__ == "__main__":
    _wait()
