"""Translation of a Cloud Run container into its command: secrets read, buckets mounted, the image mapped to a program.

The same for an instance of a service and a task of a job. Leaves out the process itself (instance.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from bezel.localcloud.core.paths import HUB_PREFIX
from bezel.localcloud.processes.process_status import DIRECTORY_VARIABLE
from bezel.localcloud.processes.variables import handed_on, note_of_kept_back
from bezel.localcloud.routing.context import Context
from bezel.localcloud.services.artifact_registry.images import program_of
from bezel.localcloud.services.cloud_run.references import resolve_environment, resolve_mounts
from bezel.localcloud.services.cloud_run.runtime.container_command import Command, Container, program, serve_arguments
from bezel.localcloud.services.cloud_run.spec import RevisionSpec


def container_command(
    cloud: Context,
    launcher: Callable[[Container], Command],
    spec: RevisionSpec,
    address: str,
    speed: float,
    platform: Mapping[str, str],
) -> Command:
    """Return the command of a container.

    Args:
        cloud: Holds its secrets and buckets.
        launcher: Turns a container into a command if its image does not stand for a program of this machine.
        spec: The revision or task to run.
        address: Path of the socket that stands for the container's port.
        speed: Simulated seconds in one real second while it starts.
        platform: The variables that the platform sets; they override the container's own.

    Raises:
        RevisionFailureError: A secret, a bucket or the program does not exist, or is not readable.
    """
    runs, given = program_of(spec.image), resolve_environment(cloud, spec)
    container = Container(
        args=() if runs else serve_arguments(spec.command, spec.args),
        environment={"HF_ENDPOINT": f"{cloud.base}{HUB_PREFIX}"}
        | handed_on(given)
        | dict(platform)
        | {DIRECTORY_VARIABLE: str(cloud.layout.root)},
        faults=cloud.faults.container_file,
        mounts=resolve_mounts(cloud, spec),
        spec=spec,
        address=address,
        speed=speed,
    )
    command = program(container, runs) if runs else launcher(container)
    return replace(command, notes=(*command.notes, *note_of_kept_back(given)))
