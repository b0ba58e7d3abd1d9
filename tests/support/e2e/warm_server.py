"""Forks processes from one that has loaded what they need: `warm_server.py KIND PLACE DESCRIPTOR` (`KINDS`).

An order names arguments, folder, variables and the three streams, and a file that `REPORT` names. The fork goes on with
them as a new interpreter would; who ordered learns its process id, then how it ended, and a fork is killed whose order
is taken back (the connection closed). All workers of a run share the servers: each begins with the first order, serves
as long as one of the workers lives (`PLACE/alive` is open for writing), and then kills what is left.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import io
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import NamedTuple

LENGTH = 8
# The variable of a simulated server with the number of an open file, to which it writes how long its start took.
REPORT = b"LOCALCLOUD_START_REPORT"
SDK = (
    *("pulumi", "pulumi.dynamic", "pulumi.policy", "pulumi_policy", "pulumi_docker", "dill"),
    *("anyio", "certifi", "encodings.idna", "google.auth.crypt", "google.oauth2.credentials", "google.oauth2.reauth"),
    *("google.oauth2.service_account", "grpc._channel", "grpc._server", "grpc._simple_stubs", "grpc._utilities"),
    *("h11", "httpcore", "httptools", "httpx", "numpy", "numpy.ma", "numpy.typing", "orjson", "stringprep"),
    *("bezel.diagnosis.diagnosis", "bezel.leases.inventory", "bezel.outside_changes.reading"),
    *("bezel.planner.assemble.build", "bezel.planner.assemble.quota_use", "bezel.resource_cost.stack_cost"),
    *("bezel.rest.cloud_quotas", "bezel.weights.adapter", "bezel.weights.layout", "bezel_base.loopback.grpc_guard"),
    *("bezel_bench.cell.build_cell", "bezel_bench.cell.cell", "bezel_bench.metrics.figures"),
    *("bezel_base.process_end", "bezel_bench.result.document", "bezel_bench.server.manifest"),
    *("bezel_bench.validity.checks", "bezel_bootstrap.deploy"),
    *("bezel_components.base.dynamic", "bezel_components.dynamic_plugin.unpickling"),
    *("bezel_components.providers.model_files", "bezel_components.providers.traffic_switch"),
    *(
        "bezel_policies.adapter",
        "bezel_smoke.checks",
        "bezel_smoke.health",
        "bezel_components.base.failure_explanation",
    ),
    *("bezel_smoke.outside", "bezel_smoke.speculation"),
    *("bezel_services.cloud_run", "bezel_services.vllm_service", "bezel_stacks.dispatch"),
)
# Modules of this SDK load at the first use of a name.
SDK_NAMES = {
    "artifactregistry": "Repository",
    "cloudrunv2": "Service",
    "projects": "Service",
    "secretmanager": "SecretIamMember",
    "serviceaccount": "Account",
    "storage": "Bucket",
}
BEZEL = (
    *("bezel.cli.main", "bezel.cli.in_service", "bezel.cli.local.localcloud", "bezel.cli.local.stacks"),
    *("bezel.planner.assemble.build", "bezel.rest", "bezel_localcloud.access.credentials.keys"),
    *("bezel_localcloud.command.main", "bezel_localcloud.seed", "httpcore", "httpx"),
    "bezel_localcloud.services.cloud_run.runtime.real_vllm",
    "bezel_localcloud.services.cloud_run.runtime.untrained",
    *("bezel.cli.ci.deploy", "bezel.cli.ci.drift", "bezel.cli.ci.expire", "bezel.cli.ci.lock", "bezel.cli.ci.preview"),
    *("bezel.cli.ci.output", "bezel.cli.init", "bezel.engine.recover.recover", "encodings.idna", "getpass"),
    *("bezel_simulated_vllm.synthetic_weights", "google.auth._default", "google.auth.crypt"),
    *("google.oauth2.credentials", "google.oauth2.reauth", "google.oauth2.service_account", "stringprep"),
)
# The SDK's protocol without the SDK (`fast_import`), so they have a server of their own.
PLUGINS = (
    *("bezel_pulumi_offline.plugin.google_plugin", "bezel_pulumi_offline.plugin.docker_plugin"),
    *("bezel_pulumi_offline.plugin.server", "bezel_pulumi_offline.language_host.runtime"),
    *("google.auth.transport.requests", "google.oauth2.service_account"),
)
SIMULATED = (
    *("bezel_simulated_vllm.command", "bezel_simulated_vllm.serving", "bezel_simulated_vllm.startup"),
    *("bezel_simulated_vllm.synthetic_weights", "httptools", "uvicorn.lifespan.on"),
    *("uvicorn.protocols.http.auto", "uvicorn.protocols.websockets.auto"),
)
LOCALCLOUD = (
    *("bezel_base.process_end", "bezel_localcloud.control_api", "bezel_localcloud.daemon", "bezel_localcloud.seed"),
    *("bezel_localcloud.http.multipart", "bezel_localcloud.routing.batch", "bezel_localcloud.routing.idempotency"),
    *("bezel_localcloud.routing.operations_api", "bezel_simulated_vllm.synthetic_weights", "encodings.idna"),
    *("cryptography.hazmat.primitives.ciphers.aead", "uvicorn.lifespan.off", "xml.etree.ElementTree"),
)
KINDS = {
    "sdk": SDK,
    "bezel": (*BEZEL, *LOCALCLOUD),
    "plugins": PLUGINS,
    "simulated": SIMULATED,
    "localcloud": LOCALCLOUD,
}


class Order(NamedTuple):
    """What a fork goes on with, in place of an interpreter that was started for it."""

    executable: str
    prefix: str  # of the environment; "" for that of the server
    arguments: list[str]
    folder: str
    variables: dict[str, str]


def load(kind: str) -> None:
    """Load what processes of this kind need."""
    if kind == "plugins":
        importlib.import_module("bezel_pulumi_offline.plugin.fast_import").lighten()
    for name in KINDS[kind]:
        importlib.import_module(name)
    if kind in ("sdk", "bezel"):
        # Reading the catalogue takes ten times as long as a plan.
        settings = {"accelerator": "nvidia-l4", "model": "gemma-4-12b-it-qat-w4a16", "region": "us-east4"}
        importlib.import_module("bezel.planner").make_plan(settings, project="bezel-local", stack="read")
    if kind in ("bezel", "localcloud"):  # the modules of its services load with the first cloud
        services = importlib.import_module("bezel_localcloud.services")
        for module in pkgutil.walk_packages(services.__path__, f"{services.__name__}."):
            importlib.import_module(module.name)
    if kind == "simulated":
        importlib.import_module("bezel_simulated_vllm.configuration.options").parse(["model"])  # makes its parser
    if kind == "sdk":
        for module, name in SDK_NAMES.items():
            getattr(importlib.import_module(f"pulumi_gcp.{module}"), name)
    gc.collect()
    gc.freeze()


def write_order(order: Order) -> bytes:
    """Write an order for the wire: the launcher writes the same form."""
    variables = (f"{name}={value}" for name, value in order.variables.items())
    texts = [order.executable, order.prefix, str(len(order.arguments)), *order.arguments, order.folder, *variables]
    return b"\0".join(os.fsencode(text) for text in texts)


def read_order(data: bytes) -> Order:
    """Read an order from the wire."""
    executable, prefix, number, *texts = [os.fsdecode(each) for each in data.split(b"\0")]
    count = int(number)
    variables = dict(each.split("=", 1) for each in texts[count + 1 :])
    return Order(executable, prefix, texts[:count], texts[count], variables)


class Server:
    """Takes orders, forks for each, and tells who ordered how the fork ended."""

    def __init__(self, place: Path, kind: str, listening: socket.socket) -> None:
        self._place = place
        self._kind = kind
        self._listening = listening
        self._alive = os.open(place / "alive", os.O_RDONLY | os.O_NONBLOCK)
        self._ready = selectors.DefaultSelector()
        self._ready.register(listening, selectors.EVENT_READ)
        self._ready.register(self._alive, selectors.EVENT_READ)
        self._forks: dict[int, tuple[int, socket.socket]] = {}  # process and connection, by the process's descriptor

    def serve(self) -> Order | None:
        """Serve until nobody is there who gives orders. In a fork it comes back at once, with the fork's order."""
        while True:
            for key, _events in self._ready.select():
                if self._ready.get_map().get(key.fd) is not key:
                    continue  # it went with one before it: a fork that had ended, and its connection with it
                if key.fd == self._alive:
                    if self._leave():
                        return None
                elif key.fileobj is self._listening:
                    if order := self._take():
                        return order
                elif key.data is not None:
                    self._ready.unregister(key.fileobj)
                    _kill(key.data)
                else:
                    self._tell_end(key.fd)

    def _take(self) -> Order | None:
        client, _address = self._listening.accept()
        with contextlib.ExitStack() as closing:
            try:
                head, streams, _flags, _from = socket.recv_fds(client, LENGTH, 4)
                for stream in streams:
                    closing.callback(os.close, stream)
                order = read_order(client.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
            except (OSError, ValueError):  # killed before it had said what it wants
                client.close()
                return None
            pid = os.fork()
            if not pid:
                os.setpgid(0, 0)
                for number, stream in enumerate(streams[:3]):
                    os.dup2(stream, number)
                for report in streams[3:]:
                    order.variables[os.fsdecode(REPORT)] = str(os.dup(report))
                self._close(client)
                return order
        with contextlib.suppress(PermissionError):  # whichever of the two comes first
            os.setpgid(pid, pid)
        with contextlib.suppress(OSError):
            client.sendall(pid.to_bytes(LENGTH, "big"))
        process = os.pidfd_open(pid)
        self._forks[process] = (pid, client)
        self._ready.register(process, selectors.EVENT_READ)
        self._ready.register(client, selectors.EVENT_READ, data=pid)
        return None

    def _tell_end(self, process: int) -> None:
        pid, client = self._forks.pop(process)
        self._ready.unregister(process)
        os.close(process)
        with contextlib.suppress(KeyError):
            self._ready.unregister(client)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with client, contextlib.suppress(OSError):
            client.sendall(code.to_bytes(LENGTH, "big", signed=True))

    def _leave(self) -> bool:
        """Kill what is left and remove the socket, unless another worker came just now."""
        with (self._place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(BlockingIOError):
                os.read(self._alive, 1)  # nothing and no error: nobody has it open
                for pid, _client in self._forks.values():
                    _kill(pid)
                (self._place / self._kind).unlink()
                if not any((self._place / kind).exists() for kind in KINDS):
                    shutil.rmtree(self._place)
                return True
        return False

    def _close(self, client: socket.socket) -> None:
        self._ready.close()
        self._listening.close()
        os.close(self._alive)
        client.close()
        for process, (_pid, other) in self._forks.items():
            os.close(process)
            other.close()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _become(kind: str, order: Order) -> None:
    """Go on as `python -u ARGUMENTS` would; as `bezel ARGUMENTS` would, unless these begin with a script of Python."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # even where the shell of the tests ignores interrupts
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.variables)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.FileIO(number, "w", closefd=False), write_through=True) for number in (1, 2)
    )
    sys.executable, sys.prefix, arguments = order.executable, order.prefix or sys.prefix, order.arguments
    if kind == "bezel" and not "".join(arguments[:1]).endswith(".py"):
        sys.path[0], sys.argv = str(Path(sys.executable).parent), ["bezel", *arguments]
        sys.exit(importlib.import_module("bezel.cli.main").main())
    if arguments[0] == "-m":
        sys.path[0], sys.argv = order.folder, arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        path = Path(arguments[0]).absolute()
        sys.path[0], sys.argv = str(path if path.is_dir() else path.parent), arguments
        runpy.run_path(arguments[0], run_name="__main__")


class _End:
    """The end of this process, without taking apart what was loaded: that takes a tenth of a second in each fork."""

    def __init__(self) -> None:
        self._code = 0
        atexit.register(self._leave)  # as the first, so it is called after all that a fork or a library registers

    def note(self, error: BaseException) -> None:
        """Note how the interpreter is going to end."""
        code = error.code if isinstance(error, SystemExit) else 1
        self._code = code if isinstance(code, int) else int(code is not None)
        if isinstance(error, KeyboardInterrupt):
            self._code = -signal.SIGINT

    def _leave(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        if self._code < 0:
            signal.signal(-self._code, signal.SIG_DFL)
            os.kill(os.getpid(), -self._code)
        os._exit(self._code & 0xFF)


def _main() -> None:
    end = _End()
    kind, place, descriptor = sys.argv[1:]
    # Before it loads: that all workers are gone it hears only if one was there when it began.
    server = Server(Path(place), kind, socket.socket(fileno=int(descriptor)))
    load(kind)
    order = server.serve()
    if order:
        try:
            _become(kind, order)
        except BaseException as error:
            end.note(error)
            raise


if __name__ == "__main__":
    _main()
