"""Daemons with fake containers, each forked from one process that has loaded localcloud: that takes half a second.

For tests that do not look at the start of a daemon. `bezel_localcloud.control` finds and stops one as any other.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from bezel_localcloud.core.files.locks import is_locked
from bezel_localcloud.core.paths import Endpoint, Paths
from localcloud_support.client import FAKE_DAEMON, is_alive, until
from localcloud_support.made_keys import write_keys

SECONDS = 60.0
_PASSED_ON = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR")


class DaemonForks:
    """The process that forks daemons; those that still run outlive it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(FAKE_DAEMON)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=SECONDS)

    def start(self, directory: Path, speed: float = 10_000, idle: float = 900, queue: float | None = None) -> Endpoint:
        """Start a daemon of a directory; one that was killed just now ends first.

        Args:
            directory: Its directory.
            speed: Its speed.
            idle: Seconds that an idle instance keeps running.
            queue: Seconds that a request waits for a place; None for longer than any test.
        """
        layout = Paths(directory.resolve())
        layout.create()
        write_keys(layout.root)
        until(lambda: not is_locked(layout.daemon_lock), SECONDS)
        order = {"directory": str(layout.root), "log": str(layout.daemon_log)}
        order |= {"speed": speed, "idle": idle} | ({} if queue is None else {"queue": queue})
        order["variables"] = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        pid = int(self._process.stdout.readline())

        def running_endpoint() -> Endpoint | None:
            endpoint = Endpoint.read(layout.root)
            if endpoint and endpoint.pid == pid:
                return endpoint
            assert is_alive(pid), layout.daemon_log.read_text()
            return None

        return until(running_endpoint, SECONDS)
