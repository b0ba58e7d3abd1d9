"""Command line and environment of a container: the process that localcloud starts in place of the image.

The same for an instance of a service and a task of a job: secrets read, buckets mounted, the image mapped to a program.
Leaves out the process itself (instance.py).
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bezel_base.process_status import DIRECTORY_VARIABLE
from bezel_localcloud.core.paths import HUB_PREFIX, Paths, python_path
from bezel_localcloud.processes.sockets import LISTEN_VARIABLE, PREFIX
from bezel_localcloud.processes.variables import notes_of_withheld, passed_on
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.artifact_registry.images import program_of, programs
from bezel_localcloud.services.artifact_registry.registry import pushed_entrypoint
from bezel_localcloud.services.artifact_registry.releases import release_of
from bezel_localcloud.services.cloud_run.failures import ContainerFailureError
from bezel_localcloud.services.cloud_run.references import resolve_environment, resolve_mounts, resolve_secret_mounts
from bezel_localcloud.services.cloud_run.runtime.domain_place import UPSTREAM, variables_of_domain
from bezel_localcloud.services.cloud_run.spec import GIB, ContainerSpec
from bezel_localcloud.services.compute.vpc import with_loopback

# Commands that serve in a vLLM image; its own entrypoint is the first.
_ENTRYPOINTS = (("vllm", "serve"), ("python3", "-m", "vllm.entrypoints.openai.api_server"))
# Names that start this interpreter, alone: a stock image of Python has the standard library.
_PYTHON = ("python", "python3")
# Variables of the machine that an interpreter and a real engine need; no others of the daemon's environment are passed.
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV")


@dataclass(frozen=True)
class ContainerLaunch:
    """One container to start.

    Attributes:
        args: The arguments after `vllm serve`.
        environment: The container's own variables, secrets resolved.
        mounts: Mount path -> folder of this machine.
        address: Path of the socket that stands for the container's port, see sockets.py.
        faults: File with the faults of a simulated server.
        release: The vLLM release of its image, "" where that is unknown.
    """

    args: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    mounts: Mapping[str, str]
    spec: ContainerSpec
    address: str
    speed: float
    faults: Path
    release: str = ""


@dataclass(frozen=True)
class Command:
    """Command to execute.

    Attributes:
        notes: Messages about it for the platform's log.
        folders: Folders made for it, which are removed when it has ended.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    notes: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()


def serve_arguments(command: tuple[str, ...], args: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments of `vllm serve`, whether the image's entrypoint is used or spelled out.

    Raises:
        RevisionFailureError: If the image does not have the command.
    """
    if not command:
        return args
    for entrypoint in _ENTRYPOINTS:
        if command[: len(entrypoint)] == entrypoint:
            return command[len(entrypoint) :] + args
    why = f"{command[0]!r} is not a command that serves in this image."
    raise ContainerFailureError(f"Application exec likely failed: {why}")


def environment_of(container: ContainerLaunch) -> dict[str, str]:
    """All variables of the process: the machine's, the container's own, and those about port, hardware and mounts."""
    spec = container.spec
    hardware = {
        "accelerator": spec.accelerator,
        "accelerators": spec.accelerators,
        "cpu": int(spec.cpu) if spec.cpu == int(spec.cpu) else spec.cpu,
        "memory_gib": spec.memory / GIB,
    }
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {
        **inherited,
        "PYTHONPATH": python_path(inherited.get("PYTHONPATH")),
        "PYTHONUNBUFFERED": "1",
        **container.environment,
        "PORT": str(spec.port),
        LISTEN_VARIABLE: f"{PREFIX}{container.address}",
        "LOCALCLOUD_HARDWARE": json.dumps(hardware),
        "LOCALCLOUD_MOUNTS": json.dumps(dict(container.mounts)),
        "LOCALCLOUD_SPEED": f"{container.speed:g}",
        "LOCALCLOUD_FAULTS": str(container.faults),
        **({"LOCALCLOUD_RELEASE": container.release} if container.release else {}),
    }


def program(container: ContainerLaunch, name: str) -> Command:
    """A program of this machine, with the container's own command and environment.

    It listens at `GATEWAY_ADDRESS` or `DOOR_ADDRESS`, `unix@PATH`, and `PORT`: HAProxy joins them with a colon to the
    path of a socket. A word of the command that is a path in a mounted volume is the path of the file on this machine.

    Args:
        container: The container to start; its `args` are ignored.
        name: Name of the program, which is beside this interpreter (`make setup` installs it there) or on PATH.

    Raises:
        RevisionFailureError: If there is no such program, or no command.
    """
    if not container.spec.command:
        raise ContainerFailureError(f"localcloud starts {name} by a command only: set the container's command.")
    argv = tuple(_on_this_machine(word, container.mounts) for word in (*container.spec.command, *container.spec.args))
    if argv[0] in _PYTHON:
        argv = (sys.executable, "-I", "-S", *argv[1:])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    if shutil.which(argv[0] if name in _PYTHON else name, path=path) is None:
        raise ContainerFailureError(f"{name} is not on PATH: run `make setup`, or install it.")
    address, _, port = container.address.rpartition(":")
    variables = {"PATH": path, "PORT": port, "GATEWAY_ADDRESS": f"unix@{address}", "DOOR_ADDRESS": f"unix@{address}"}
    return Command(argv, {**container.environment, **variables})


def _on_this_machine(word: str, mounts: Mapping[str, str]) -> str:
    """A word of a command line; the path of a file in a mounted volume as this machine has it."""
    for mount, folder in mounts.items():
        if mount.startswith("/") and word.startswith(f"{mount.rstrip('/')}/"):
            return f"{folder}{word.removeprefix(mount.rstrip('/'))}"
    return word


def simulated_server(container: ContainerLaunch) -> Command:
    """A simulated vLLM of the image's release, with the unchanged arguments of the container."""
    argv = (sys.executable, "-m", "bezel_simulated_vllm", *container.args)
    unknown = f"{container.spec.image} names no release of vLLM: the simulated server is its default release"
    return Command(argv, environment_of(container), () if container.release else (unknown,))


def real(container: ContainerLaunch) -> Command:
    """The `vllm` of this machine with a local model; the platform's log names the rewritten arguments."""
    from bezel_localcloud.services.cloud_run.runtime.real_vllm import command

    model = os.environ.get("LOCALCLOUD_VLLM_MODEL", "")
    if not model:
        raise ContainerFailureError("LOCALCLOUD_VLLM_MODEL is not set: set it to the folder of the real vLLM's model.")
    try:
        argv, notes, defaults = command(
            container.args,
            model_dir=Path(model),
            address=container.address,
            paths=Paths(Path(container.environment[DIRECTORY_VARIABLE])),
            mounts=container.mounts,
        )
    except OSError as error:
        raise ContainerFailureError(f"LOCALCLOUD_VLLM_MODEL={model} does not hold a model: {error}") from None
    return Command(tuple(argv), defaults | environment_of(container), tuple(notes))


def _in_network(cloud: Context, container: ContainerLaunch) -> ContainerLaunch:
    """The container with the addresses of machines that reach them on this computer."""
    environment = {name: with_loopback(cloud.store, text) for name, text in container.environment.items()}
    return replace(container, environment=environment)


def _program_of(cloud: Context, spec: ContainerSpec) -> str:
    """The program of this machine that stands for a container's image, "" for a vLLM.

    Raises:
        RevisionFailureError: The image was pushed, and its entrypoint or the container's command is unknown here.
    """
    entrypoint = pushed_entrypoint(cloud, spec.image)
    if entrypoint is None:
        return program_of(spec.image)
    command = spec.command or tuple(entrypoint)
    name = Path(command[0]).name if command else ""
    if name in programs():
        return name
    if not any(command[: len(entrypoint_words)] == entrypoint_words for entrypoint_words in _ENTRYPOINTS):
        text = (
            f"localcloud starts {', '.join(sorted(programs()))} and vllm in place of images, not {' '.join(command)!r}"
        )
        raise ContainerFailureError(f"Application exec likely failed: {text}, the command of {spec.image}.")
    return ""


def container_command(
    cloud: Context,
    launcher: Callable[[ContainerLaunch], Command],
    spec: ContainerSpec,
    address: str,
    speed: float,
    platform: Mapping[str, str],
) -> Command:
    """Return the command of a container.

    Args:
        cloud: Holds its secrets and buckets.
        launcher: Turns a container into a command if its image does not stand for a program of this machine.
        spec: The container of a revision or task.
        address: Path of the socket that stands for the container's port.
        speed: Simulated seconds in one real second while it starts.
        platform: The variables that the platform sets; they override the container's own.

    Raises:
        RevisionFailureError: A secret, a bucket or the program does not exist, or is not readable.
    """
    runs, variables = _program_of(cloud, spec), resolve_environment(cloud, spec)
    mounts, secrets = resolve_mounts(cloud, spec), resolve_secret_mounts(cloud, spec)
    folders = {mount: cloud.secret_folders.new() for mount in secrets}
    addresses = {
        "HF_ENDPOINT": f"{cloud.base}{HUB_PREFIX}",
        "GOOGLE_STORAGE_CUSTOM_ENDPOINT": f"{cloud.base}/storage/v1/",
    }
    own_variables = addresses | passed_on(variables)
    place = variables_of_domain(cloud.balancers.description(), variables) if UPSTREAM in variables else {}
    container = ContainerLaunch(
        args=() if runs else serve_arguments(spec.command, spec.args),
        environment={**own_variables, **place, **platform, DIRECTORY_VARIABLE: str(cloud.layout.root)},
        faults=cloud.faults.container_file,
        mounts=mounts | {mount.path: str(folder / mount.sub_path) for mount, folder in folders.items()},
        spec=spec,
        address=address,
        speed=speed,
        release=release_of(cloud, spec.image),
    )
    command = program(_in_network(cloud, container), runs) if runs else launcher(container)
    # Last, so that a failure before leaves no file behind.
    for mount, folder in folders.items():
        cloud.secret_folders.write(folder, secrets[mount])
    return replace(command, notes=(*command.notes, *notes_of_withheld(variables)), folders=tuple(folders.values()))
