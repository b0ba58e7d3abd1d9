"""Workers of pytest-xdist as forks of one process that has imported and collected: each would need 12 s of CPU for it.

Of xdist all stays: how it deals tests out, how it replaces a worker that crashes, what it reports. It only gets its
gateways from here. Where no fork can be had, a worker is a new interpreter that collects by itself, as without this
module: on a system other than Linux; where the collection is refused (an option or a path is wrong, so each worker
says so); where the imports left a thread, whose locks a fork would never see released, or an open connection.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import execnet
import pytest
from execnet.gateway_base import ExecModel, Popen2IO
from xdist.plugin import _sys_path

ROOT = Path(__file__).parents[3]
PROGRAM = f"""
import json, sys
sys.path.insert(0, {str(ROOT)!r})
from tests.support.worker_forks.collector import collect
collect(json.load(sys.stdin))
"""


class ForkIO(Popen2IO):
    """The pipes to a fork: what execnet asks of a process that it started itself."""

    def __init__(self, to_worker: int, from_worker: int, pid: int, execmodel: ExecModel) -> None:
        super().__init__(os.fdopen(to_worker, "wb"), os.fdopen(from_worker, "rb"), execmodel)
        self._pid = pid

    def wait(self) -> None:
        """Return at once: the collector, the parent, waits for all at the end (`ForkGroup.terminate`)."""

    def kill(self) -> None:
        """End the worker; until the end of the run the collector keeps its process ID from being given again."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)


class Collector:
    """The process that has collected, from which workers are forked."""

    def __init__(self, config: pytest.Config, workers: int, run_id: str) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-c", PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                # The library of numpy would start threads when it is imported.
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
                pass_fds=[theirs.fileno()],
                text=True,
            )
            order = {
                "control": theirs.fileno(),
                "path": _sys_path,
                "arguments": [str(argument) for argument in config.invocation_params.args],
                "input": {"workercount": workers, "testrunuid": run_id, "mainargv": sys.argv},
            }
            assert self._process.stdin is not None
            with self._process.stdin as pipe:
                json.dump(order, pipe)
        self._ready: bool | None = None

    def fork(self, execmodel: ExecModel) -> ForkIO | None:
        """Fork a worker, after a wait for the collection where it is the first; None where there is no collector."""
        if self._ready is None:
            self._ready = self._control.recv(20) != b""
        if not self._ready:
            return None
        to_worker, from_worker = os.pipe(), os.pipe()
        try:
            socket.send_fds(self._control, [b"fork"], [to_worker[0], from_worker[1]])
            pid = int(self._control.recv(20) or 0)
        except OSError:  # it was killed
            pid = 0
        os.close(to_worker[0])
        os.close(from_worker[1])
        io = ForkIO(to_worker[1], from_worker[0], pid, execmodel)
        if pid:
            return io
        io.close_write()
        io.close_read()
        return None

    def close(self) -> None:
        """Wait for the end of the workers, which the collector kills after a while, and of the collector."""
        self._control.close()
        if self._ready is None:  # nobody waits for the collection any more
            self._process.kill()
        self._process.wait()


class ForkGroup(execnet.Group):
    """Gateways to forks of the collector."""

    def __init__(self, collector: Collector) -> None:
        super().__init__(execmodel="main_thread_only")
        self._collector = collector

    def makegateway(self, spec: execnet.XSpec | str | None = None) -> execnet.Gateway:
        """Fork a worker, or start one where none can be forked."""
        io = self._collector.fork(self.execmodel) if isinstance(spec, execnet.XSpec) else None
        if io is None:
            return super().makegateway(spec)
        gateway = execnet.Gateway(io, spec)
        self._register(gateway)
        return gateway

    def terminate(self, timeout: float | None = None) -> None:
        """End all workers, then the collector."""
        super().terminate(timeout)
        self._collector.close()


def use_forks(config: pytest.Config, specs: Sequence[execnet.XSpec]) -> None:
    """Let xdist fork its workers where they are several plain processes of this machine."""
    if (
        sys.platform != "linux"
        or len(specs) < 2
        or any(str(spec) != "execmodel=main_thread_only//popen" for spec in specs)
    ):
        return
    manager = config.pluginmanager.getplugin("dsession").nodemanager
    manager.group = ForkGroup(Collector(config, len(specs), manager.testrunuid))
    for spec in specs:
        # The group counts on from here for a worker that replaces another.
        spec.id = None
        manager.group.allocate_id(spec)
