"""The Python processes of an engine's run: each forked from one that has loaded the SDKs, which takes nearly a second.

The engine, the language host and what they start are the real ones. In place of the environment's interpreter they find
a launcher (`environment`): it hands folder, arguments, variables and streams of what it was started for to the process
that has loaded the SDKs (`serving`), passes signals on, and ends as the fork ended; a fork whose launcher is gone is
killed. Without `VARIABLE` the launcher is the interpreter itself, as in every run that is killed and in the first half
of the life of a stack.

Leaves out the commands of `bezel`, which are forked by `warm_bezel`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import io
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

VARIABLE = "BEZEL_TEST_WARM_PYTHON"
LOADED = (
    *("pulumi", "pulumi.dynamic", "pulumi.policy", "pulumi_policy", "pulumi_docker", "dill"),
    *("anyio", "certifi", "google.oauth2.reauth", "google.oauth2.service_account", "grpc._server", "h11", "httpcore"),
    *("httptools", "httpx", "numpy", "numpy.ma", "numpy.typing", "orjson", "stringprep"),
    *(
        "bezel.diagnosis.diagnosis",
        "bezel.leases.inventory",
        "bezel.outside_changes.reading",
        "bezel.planner.assemble.build",
        "bezel.planner.assemble.quota_use",
        "bezel.resource_cost.stack_cost",
        "bezel.rest.cloud_quotas",
        "bezel.weights.adapter",
        "bezel.weights.layout",
        "bezel_base.loopback.grpc_guard",
        "bezel_bench.cell.build_cell",
        "bezel_bench.cell.cell",
        "bezel_bench.metrics.figures",
        "bezel_bench.result.document",
        "bezel_bench.validity.checks",
        "bezel_components.base.dynamic",
        "bezel_components.dynamic_plugin.unpickling",
        "bezel_components.providers.model_files",
        "bezel_components.providers.traffic_switch",
        "bezel_policies.adapter",
        "bezel_services.cloud_run",
        "bezel_services.vllm_service",
        "bezel_smoke.checks",
        "bezel_smoke.health",
        "bezel_smoke.hooks",
        "bezel_smoke.outside",
        "bezel_smoke.speculation",
        "bezel_stacks.dispatch",
    ),
)
# Modules of this SDK load at the first use of a name.
NAMES = {
    "artifactregistry": "Repository",
    "cloudrunv2": "Service",
    "projects": "Service",
    "secretmanager": "SecretIamMember",
    "serviceaccount": "Account",
    "storage": "Bucket",
}
LENGTH = 8

LAUNCHER = """#!{system} -IS
import os, sys
place, arguments = os.environ.get("{variable}"), sys.argv[1:]
if not place or arguments[:1] != ["-u"] or "PYTHONPATH" in os.environ:
    os.execv("{python}", ["{python}", *arguments])
import json, signal, socket
order = json.dumps([arguments[1:], os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect(place)
    socket.send_fds(server, [len(order).to_bytes({length}, "big")], [0, 1, 2])
    server.sendall(order)
    fork = int.from_bytes(server.recv({length}, socket.MSG_WAITALL), "big")
    def pass_on(number, _frame):
        try:
            os.killpg(fork, number)
        except ProcessLookupError:
            pass
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    ended = server.recv({length}, socket.MSG_WAITALL)
code = int.from_bytes(ended, "big", signed=True) if ended else -signal.SIGKILL
if code < 0:
    if code != -signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""

# As long as it is here its standard input stays open.
_KEPT: list[subprocess.Popen[bytes]] = []


def environment(venv: Path) -> None:
    """Make a virtual environment that is this one, but for the launcher in place of the interpreter."""
    prefix = Path(sys.prefix)
    (venv / "bin").mkdir(parents=True)
    for entry in prefix.iterdir():
        if entry.name != "bin":
            (venv / entry.name).symlink_to(entry)
    launcher = venv / "bin" / "python"
    python = prefix / "bin" / "python"
    system = python.resolve()
    launcher.write_text(LAUNCHER.format(system=system, python=python, variable=VARIABLE, length=LENGTH))
    launcher.chmod(0o755)


@functools.cache
def serving() -> str:
    """Where the process that has loaded the SDKs takes orders; it is started once, and ends with this one."""
    place = Path(tempfile.mkdtemp(prefix="warm-")) / "socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen(64)
        here = listening.fileno()
        command = [sys.executable, __file__, str(here)]
        # Its standard input is this process's end: nobody writes to it.
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # a fork has only the thread that forked
            pass_fds=[here],
            start_new_session=True,
        )
    _KEPT.append(process)
    return str(place)


def _load() -> None:
    for name in LOADED:
        importlib.import_module(name)
    for module, name in NAMES.items():
        getattr(importlib.import_module(f"pulumi_gcp.{module}"), name)
    gc.collect()
    gc.freeze()


class _Server:
    """Takes orders, forks for each, and tells its launcher how the fork ended."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._ready = selectors.DefaultSelector()
        self._ready.register(listening, selectors.EVENT_READ)
        self._ready.register(0, selectors.EVENT_READ)
        self._forks: dict[int, tuple[int, socket.socket]] = {}  # process and launcher, by the process's descriptor

    def serve(self) -> list[Any] | None:
        """Serve until nobody is there who gives orders. In a fork it comes back at once, with the fork's order."""
        while True:
            for key, _events in self._ready.select():
                if self._ready.get_map().get(key.fd) is not key:
                    continue  # it went with one before it: a fork that had ended, and its launcher with it
                if key.fd == 0:
                    return self._leave()
                if key.fileobj is self._listening:
                    if order := self._take():
                        return order
                elif key.data is not None:
                    self._ready.unregister(key.fileobj)
                    _kill(key.data)
                else:
                    self._tell_end(key.fd)

    def _take(self) -> list[Any] | None:
        launcher, _address = self._listening.accept()
        with contextlib.ExitStack() as closing:
            try:
                head, streams, _flags, _from = socket.recv_fds(launcher, LENGTH, 3)
                for stream in streams:
                    closing.callback(os.close, stream)
                order: list[Any] = json.loads(launcher.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
            except (OSError, ValueError):  # killed before it had said what it wants
                launcher.close()
                return None
            pid = os.fork()
            if not pid:
                os.setpgid(0, 0)
                for number, stream in enumerate(streams):
                    os.dup2(stream, number)
                self._close(launcher)
                return order
        with contextlib.suppress(PermissionError):  # whichever of the two comes first
            os.setpgid(pid, pid)
        with contextlib.suppress(OSError):
            launcher.sendall(pid.to_bytes(LENGTH, "big"))
        process = os.pidfd_open(pid)
        self._forks[process] = (pid, launcher)
        self._ready.register(process, selectors.EVENT_READ)
        self._ready.register(launcher, selectors.EVENT_READ, data=pid)
        return None

    def _tell_end(self, process: int) -> None:
        pid, launcher = self._forks.pop(process)
        self._ready.unregister(process)
        os.close(process)
        with contextlib.suppress(KeyError):
            self._ready.unregister(launcher)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with launcher, contextlib.suppress(OSError):
            launcher.sendall(code.to_bytes(LENGTH, "big", signed=True))

    def _leave(self) -> None:
        for pid, _launcher in self._forks.values():
            _kill(pid)
        place = Path(self._listening.getsockname())
        place.unlink()
        place.parent.rmdir()

    def _close(self, launcher: socket.socket) -> None:
        self._ready.close()
        self._listening.close()
        launcher.close()
        for process, (_pid, other) in self._forks.items():
            os.close(process)
            other.close()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _become(arguments: list[str], folder: str, variables: dict[str, str]) -> None:
    """Go on as `python -u ARGUMENTS` would."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as the engine starts it, whoever runs the tests
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, "w", closefd=False), write_through=True) for number in (1, 2)
    )
    if arguments[0] == "-m":
        sys.path[0], sys.argv = folder, arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0], sys.argv = str(Path(arguments[0]).absolute().parent), arguments
        runpy.run_path(arguments[0], run_name="__main__")


def _main() -> None:
    _load()
    order = _Server(socket.socket(fileno=int(sys.argv[1]))).serve()
    if order:
        _become(*order)


if __name__ == "__main__":
    _main()
