"""docker daemon of a machine: pulled images, and containers with the simulated server in them."""

import asyncio
import tomllib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from bezel_base.process_status import DIRECTORY_VARIABLE
from bezel_localcloud.access.credentials.keys import TokenError
from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.machines.node_spec import NodeSpec
from bezel_localcloud.node.collector import NodeCollector
from bezel_localcloud.node.process import Container
from bezel_localcloud.node.reachability import NODE_VARIABLE, Ways, owner
from bezel_localcloud.node.relay import Relay
from bezel_localcloud.processes.variables import passed_on
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.artifact_registry.images import collector_of, parse_reference
from bezel_localcloud.services.artifact_registry.registry import find_image
from bezel_localcloud.services.artifact_registry.releases import release_of
from bezel_localcloud.services.cloud_run.failures import RevisionFailureError
from bezel_localcloud.services.cloud_run.runtime.container_command import Command, ContainerLaunch, serve_arguments
from bezel_localcloud.services.cloud_run.spec import revision_spec


class RefusedError(Exception):
    """A failed command; the text is its output."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class RunOptions:
    """Options of `docker run` beside the image and its command."""

    name: str
    restarts: int
    host_network: bool
    privileged: bool
    gpus: bool
    entrypoint: str
    environment: dict[str, str]
    volumes: dict[str, str]


_HIGHEST_PORT = 65_535
_PORT = 8000  # vLLM's own, where no argument names another


@cache
def machines() -> dict[str, Json]:
    """Hardware of each kind of machine, see machines.toml."""
    return tomllib.loads(Path(__file__).with_name("machines.toml").read_text(encoding="utf-8"))


class DockerDaemon:
    """The images and containers of one machine.

    Attributes:
        installed: Whether the machine has docker at all.
        images: References of the pulled images.
        ways: The network around the machine.
        disk: The folder that is the machine's file system; no path of a command may lead out of it.
    """

    def __init__(
        self,
        cloud: Context,
        spec: NodeSpec,
        ways: Ways,
        launcher: Callable[[ContainerLaunch], Command],
        speed: float,
        disk: Path,
    ) -> None:
        self.installed = "docker" not in spec.metadata.get("bezel-packages", "").split()
        self.images: set[str] = set()
        self.ways = ways
        self.disk = disk.resolve()
        self._cloud = cloud
        self._spec = spec
        self._launcher = launcher
        self._speed = speed
        self._containers: dict[str, tuple[Container | NodeCollector, list[Relay]]] = {}
        self._addresses: dict[str, tuple[int, str]] = {}  # of the containers that have a port of the machine
        self.hub = ""  # address of the model hub for the containers

    def check_login(self, registry: str, token: str) -> None:
        """Check a token for a registry.

        Raises:
            RefusedError: The token is invalid, or the registry is out of reach.
        """
        self._check_reach(registry)
        try:
            self._cloud.tokens.caller(token)
        except TokenError:
            text = f"Error response from daemon: login attempt to https://{registry}/v2/ failed with status: "
            raise RefusedError(text + "401 Unauthorized") from None

    def pull(self, image: str, token: str) -> None:
        """Get an image.

        Raises:
            RefusedError: There is none, the token's account may not read it, or its registry is out of reach.
        """
        reference = parse_reference(image)
        if reference is None:
            raise RefusedError("invalid reference format")
        self._check_reach(reference.registry)
        try:
            find_image(self._cloud, reference, self._cloud.tokens.caller(token) if token else None)
        except TokenError:
            raise RefusedError("Error response from daemon: unauthorized: authentication failed") from None
        except ApiError as error:
            raise RefusedError(f"Error response from daemon: {error.message}") from None
        self.images.add(image)

    async def run(self, options: RunOptions, image: str, command: tuple[str, ...]) -> str:
        """Start a container and return its id.

        Raises:
            RefusedError: The name or the port is taken, or the image was not pulled.
        """
        if options.name in self._containers:
            raise RefusedError(f'docker: Error response from daemon: Conflict. "{options.name}" is in use.', 125)
        if image not in self.images:
            raise RefusedError(f"Unable to find image '{image}' locally", 125)
        if collector_of(image) == "machine":
            await self._run_collector(options, command)
            return uuid.uuid4().hex * 2
        try:
            arguments = serve_arguments((options.entrypoint, *command), ())
            address = self._cloud.sockets.new(_port(arguments))
            launched = self._launcher(self._container_launch(options, image, arguments, address))
        except RevisionFailureError as failure:
            raise RefusedError(f"docker: Error response from daemon: {failure.text}", 127) from None
        container = Container(launched, address, options.restarts, self._speed)
        try:
            relays = await self._expose(_port(arguments), address) if options.host_network else []
            self._containers[options.name] = container, relays
            self._addresses[options.name] = _port(arguments), address
            await container.start()
        except OSError as error:
            raise RefusedError(f"docker: Error response from daemon: {error}", 125) from None
        return uuid.uuid4().hex * 2

    async def _run_collector(self, options: RunOptions, arguments: tuple[str, ...]) -> None:
        def address_of(port: str) -> str | None:
            return next((address for number, address in self._addresses.values() if str(number) == port), None)

        collector = NodeCollector(self._cloud, self._spec, self.ways, arguments, options.volumes, address_of)
        self._containers[options.name] = collector, []
        await collector.start()

    def container(self, name: str) -> Container | NodeCollector:
        """Return an existing container, running or not.

        Raises:
            RefusedError: There is none of that name.
        """
        if name not in self._containers:
            raise RefusedError(f"Error response from daemon: No such container: {name}")
        return self._containers[name][0]

    async def change(self, name: str, verb: str) -> None:
        """Start, stop or restart an existing container; one that is so already stays as it is.

        Raises:
            RefusedError: There is none of that name, or it cannot be started.
        """
        container = self.container(name)
        if verb in {"stop", "restart"}:
            await container.stop()
        if verb in {"start", "restart"} and container.status not in {"running", "restarting"}:
            try:
                await container.start()
            except OSError as error:
                raise RefusedError(f"Error response from daemon: {error}") from None

    async def remove(self, name: str) -> None:
        """End a container and forget it.

        Raises:
            RefusedError: There is none of that name.
        """
        container = self.container(name)
        _, relays = self._containers.pop(name)
        self._addresses.pop(name, None)
        await asyncio.gather(*(relay.close() for relay in relays))
        await container.stop()

    async def close(self) -> None:
        """End all containers."""
        await asyncio.gather(*(self.remove(name) for name in list(self._containers)))

    def _check_reach(self, registry: str) -> None:
        reached = self.ways.google() if registry.endswith((".pkg.dev", "gcr.io")) else self.ways.internet()
        if not reached:
            why = "net/http: request canceled while waiting for connection (Client.Timeout exceeded)"
            raise RefusedError(f'Error response from daemon: Get "https://{registry}/v2/": {why}')

    async def _expose(self, port: int, behind: str) -> list[Relay]:
        """Open a container's port at each of the machine's addresses.

        Raises:
            OSError: Another process of this computer listens there.
        """
        relays: list[Relay] = []
        try:
            for address in filter(None, (self._spec.address, self._spec.external_address)):
                relays.append(Relay(behind, partial(self._admits, address, port)))
                await relays[-1].listen(address, port)
        except OSError:
            await asyncio.gather(*(relay.close() for relay in relays))
            raise
        return relays

    async def _admits(self, address: str, port: int, peer: tuple[str, int]) -> bool:
        return self.ways.admits(await asyncio.to_thread(owner, peer, (address, port)), address, port)

    def _container_launch(
        self, options: RunOptions, image: str, arguments: tuple[str, ...], address: str
    ) -> ContainerLaunch:
        machine = machines()[self._spec.hardware]
        reached = options.privileged if machine["reached_by"] == "privileged" else options.gpus
        limits = {
            "cpu": str(machine["cpu"]),
            "memory": f"{machine['memory_gib']}Gi",
            "nvidia.com/gpu": str(machine["accelerators"] if reached else 0),
        }
        container = {
            "image": image,
            "resources": {"limits": limits},
            "ports": [{"containerPort": _port(arguments)}],
        }
        # The launcher takes the template of an equivalent Cloud Run container.
        template = {"containers": [container], "nodeSelector": {"accelerator": machine["accelerator"]}}
        return ContainerLaunch(
            args=arguments,
            environment=self._environment(options.environment),
            mounts=options.volumes,
            spec=revision_spec(template, {}),
            address=address,
            speed=self._speed,
            faults=self._cloud.faults.container_file,
            release=release_of(self._cloud, image),
        )

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        node_variables = {NODE_VARIABLE: self._spec.name, DIRECTORY_VARIABLE: str(self._cloud.layout.root)}
        return {"HF_ENDPOINT": self.hub} | passed_on(variables) | node_variables


def _port(arguments: tuple[str, ...]) -> int:
    """The port of a server with these arguments."""
    for place, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name == "--port":
            text = value or (arguments[place + 1] if place + 1 < len(arguments) else "")
            return decimal(text, _HIGHEST_PORT) or _PORT
    return _PORT
