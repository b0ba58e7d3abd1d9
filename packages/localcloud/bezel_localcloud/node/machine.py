"""Machine: its metadata server, its outgoing connections, and its startup script, which runs as on a real one.

Differences from a real machine: its file system is a folder, its 127.0.0.1 is its own address, its waits are divided by
localcloud's clock speed, and docker, gsutil and the package installers are stand-ins. Where a real machine has docker's
socket, which root opens, it has a key that only its startup script gets.
"""

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import shlex
import shutil
import sys
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bezel_base.json_documents import read_encodable_json
from bezel_base.loopback.listeners import listen
from bezel_base.process_status import DIRECTORY_VARIABLE
from bezel_localcloud.core.clock import InstanceTiming
from bezel_localcloud.core.paths import HUB_PREFIX
from bezel_localcloud.http.serving import HttpServer
from bezel_localcloud.machines.node_spec import NodeSpec
from bezel_localcloud.node import commands
from bezel_localcloud.node.docker import DockerDaemon
from bezel_localcloud.node.metadata import Metadata
from bezel_localcloud.node.process import Process
from bezel_localcloud.node.reachability import NODE_VARIABLE, Ways
from bezel_localcloud.node.relay import Relay
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.cloud_run.runtime.container_command import Command, ContainerLaunch

_CONSOLE_LINES = 5000
_COMMANDS = "/localcloud/commands"
_LARGEST = 1 << 20  # bytes of a request: a command line, or a guest attribute
_PROGRAMS = Path(__file__).with_name("shims")
_SLEEP = """#!/bin/sh
exec {sleep} "$(awk -v given="$1" 'BEGIN {{ printf "%.3f", given / {speed:g} }}')"
"""


def folder_of_all(cloud: Context) -> Path:
    """Folder of the file systems of a cloud's machines."""
    return cloud.layout.nodes


class Machine:
    """A running machine, from its start to its end.

    Attributes:
        console: The last lines of its serial console.
    """

    def __init__(
        self, cloud: Context, spec: NodeSpec, ways: Ways, launcher: Callable[[ContainerLaunch], Command], speed: float
    ) -> None:
        self.console: deque[str] = deque(maxlen=_CONSOLE_LINES)
        self._cloud = cloud
        self._spec = spec
        self._ways = ways
        self._speed = speed
        self._folder = folder_of_all(cloud) / ".".join(spec.name.split("/")[3::2])
        self._metadata = Metadata(spec, cloud.store, cloud.tokens, speed)
        self._engine = DockerDaemon(cloud, spec, ways, launcher, speed, self._folder)
        self._key = secrets.token_urlsafe(32)
        self._server: HttpServer | None = None
        self._relays: list[Relay] = []
        self._script = Process(self._log_line)

    @property
    def guest(self) -> Mapping[str, str]:
        """Its guest attributes by `namespace/key`."""
        return self._metadata.guest

    def set_metadata(self, metadata: Mapping[str, str]) -> None:
        """Replace its attributes; readers that wait for a change of them are answered."""
        self._metadata.replace(metadata)

    async def start(self) -> None:
        """Power on: start everything around the machine, then its startup script, if it has one.

        Raises:
            OSError: Its address is not one of this computer.
        """
        self._server = HttpServer(self._application(), listen(self._spec.address), lambda _: _LARGEST)
        await self._server.start()
        google = await self._way_out(self._ways.google)
        internet = await self._way_out(self._ways.internet)
        self._engine.hub = f"{internet}{HUB_PREFIX}"
        self._furnish()
        script = self._folder / "startup-script"
        if text := self._spec.metadata.get("startup-script"):
            script.write_text(text, encoding="utf-8")
            variables = self._environment(self._server.address, google)
            await self._script.start(["/bin/bash", str(script)], variables)

    async def stop(self) -> None:
        """Power off and remove everything of the machine."""
        await self._script.stop()
        self._metadata.close()
        await self._engine.close()
        for relay in self._relays:
            await relay.close()
        if self._server is not None:
            await self._server.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _application(self) -> Starlette:
        async def command(request: Request) -> JSONResponse:
            given_key = request.headers.get("authorization", "").encode()
            if not hmac.compare_digest(given_key, f"Bearer {self._key}".encode()):
                return JSONResponse({"error": "the commands of a machine need its key"}, 401)
            command_line = read_encodable_json(await request.body())
            config = Path(command_line["config"])
            result = await commands.answer(
                self._engine, command_line["program"], command_line["argv"], command_line["stdin"], config
            )
            return JSONResponse({"code": result.code, "out": result.out, "err": result.err})

        return Starlette(routes=[*self._metadata.routes(), Route(_COMMANDS, command, methods=["POST"])])

    async def _way_out(self, is_open: Callable[[], bool]) -> str:
        """Open localcloud's address for the machine, which works as long as its network allows it, and return it."""

        async def admits(_: tuple[str, int]) -> bool:
            return is_open()

        relay = Relay(int(self._cloud.base.rpartition(":")[2]), admits)
        self._relays.append(relay)
        return f"http://{self._spec.address}:{await relay.listen(self._spec.address)}"

    def _furnish(self) -> None:
        """Create the machine's folder: a file system with its initial files and its commands."""
        shutil.rmtree(self._folder, ignore_errors=True)
        programs = self._folder / "bin"
        for folder in (programs, self._folder / "root" / "tmp"):
            folder.mkdir(parents=True)
        python = f"{shlex.quote(sys.executable)} -I -S"
        texts = {"sleep": _SLEEP.format(sleep=shutil.which("sleep"), speed=self._speed)}
        texts["gsutil"] = f'#!/bin/sh\nexec {python} {shlex.quote(str(_PROGRAMS / "gsutil.py"))} "$@"\n'
        for name in ("docker", "apt-get", "wget", "nvidia-ctk", "systemctl"):
            program = shlex.quote(str(_PROGRAMS / "command.py"))
            texts[name] = f'#!/bin/sh\nexec {python} {program} {name} "$@"\n'
        for name, text in texts.items():
            (programs / name).write_text(text, encoding="utf-8")
            (programs / name).chmod(0o700)
        # Programs on the machine reach their own port by 127.0.0.1.
        (self._folder / ".curlrc").write_text(f'connect-to = "127.0.0.1::{self._spec.address}:"\nnoproxy = "*"\n')

    def _environment(self, metadata: str, google: str) -> dict[str, str]:
        root = self._folder / "root"
        paths = [str(self._folder / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "/usr/bin:/bin")]
        return {
            "PATH": os.pathsep.join(paths),
            "HOME": str(root),
            "TMPDIR": str(root / "tmp"),
            "CURL_HOME": str(self._folder),
            "LANG": "C.UTF-8",
            "BEZEL_ROOT": str(root),
            "GCE_METADATA_HOST": metadata,
            "GOOGLE_LOGGING_CUSTOM_ENDPOINT": f"{google}/logging/v2/",
            "GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT": f"{google}/secretmanager/v1/",
            "GOOGLE_STORAGE_CUSTOM_ENDPOINT": f"{google}/storage/v1/",
            "LOCALCLOUD_MACHINE": f"http://{metadata}{_COMMANDS}",
            "LOCALCLOUD_MACHINE_KEY": self._key,
            NODE_VARIABLE: self._spec.name,
            DIRECTORY_VARIABLE: str(self._cloud.layout.root),
        }

    def _log_line(self, line: str) -> None:
        self.console.append(line)
        self._cloud.logbook.console(self._spec.name, line)


log = logging.getLogger(__name__)


class Nodes:
    """The machines of one cloud; a `NodeHost`."""

    def __init__(
        self,
        cloud: Context,
        launcher: Callable[[ContainerLaunch], Command],
        timing: InstanceTiming,
        subnetwork_of: Callable[[str], str],
    ) -> None:
        self._cloud = cloud
        self._launcher = launcher
        self._speed = timing.startup_speed
        self._subnetwork_of = subnetwork_of
        self._machines: dict[str, Machine] = {}
        # Changes of a machine happen in order: its end waits for its start, its next start for its end.
        self._last: dict[str, asyncio.Task[None]] = {}
        shutil.rmtree(folder_of_all(cloud), ignore_errors=True)  # leftovers of a killed daemon

    def boot(self, spec: NodeSpec) -> None:
        """Start a machine; do nothing if one of that name runs."""
        if spec.name in self._machines:
            return
        ways = Ways(self._cloud.store, spec, self._subnetwork_of)
        machine = Machine(self._cloud, spec, ways, self._launcher, self._speed)
        self._machines[spec.name] = machine
        self._then(spec.name, lambda: self._start(spec, machine))

    def end(self, name: str) -> None:
        """End a machine and all that runs on it; do nothing if there is none."""
        if machine := self._machines.pop(name, None):
            self._then(name, machine.stop)

    def set_metadata(self, name: str, metadata: Mapping[str, str]) -> None:
        """Replace a running machine's attributes; do nothing if there is none of that name."""
        if machine := self._machines.get(name):
            machine.set_metadata(metadata)

    def guest_attributes(self, name: str) -> Mapping[str, str]:
        """Guest attributes that a machine wrote, by `namespace/key`; {} if there is none of that name."""
        machine = self._machines.get(name)
        return dict(machine.guest) if machine else {}

    def serial_output(self, name: str) -> str:
        """Output of its serial console; "" if there is none of that name."""
        machine = self._machines.get(name)
        return "".join(f"{line}\n" for line in machine.console) if machine else ""

    async def close(self) -> None:
        """End all machines; the APIs keep the record of those that should run."""
        for name in list(self._machines):
            self.end(name)
        await asyncio.gather(*self._last.values(), return_exceptions=True)

    async def _start(self, spec: NodeSpec, machine: Machine) -> None:
        try:
            await machine.start()
        except OSError as error:
            machine.console.append(f"localcloud: the machine cannot start at {spec.address}: {error}")
            raise

    def _then(self, name: str, work: Callable[[], object]) -> None:
        before = self._last.get(name)

        async def in_order() -> None:
            if before is not None:
                await asyncio.wait([before])
            with contextlib.suppress(asyncio.CancelledError):
                try:
                    await work()  # type: ignore[misc]
                except Exception:
                    log.exception("machine %s", name)

        task = asyncio.create_task(in_order())
        self._last[name] = task
        task.add_done_callback(lambda done: self._last.pop(name) if self._last.get(name) is done else None)
