"""Containers of an instance beside the one that takes requests: the collector, or the process of a program.

Not modelled: the network that the containers of an instance share. Only the collector reaches another container, and a
liveness probe of a sidecar has no effect.
"""

from collections.abc import Callable
from dataclasses import replace

from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.artifact_registry.images import collector_of
from bezel_localcloud.services.cloud_run.runtime.container_command import Command
from bezel_localcloud.services.cloud_run.runtime.containers.collector import Collector
from bezel_localcloud.services.cloud_run.runtime.containers.container_process import ContainerProcess
from bezel_localcloud.services.cloud_run.runtime.instance import Instance, RunningContainer
from bezel_localcloud.services.cloud_run.spec import ContainerSpec


def make_sidecar(
    cloud: Context, spec: ContainerSpec, instance: Instance, command: Callable[[ContainerSpec, str], Command]
) -> RunningContainer:
    """Return a container that is not started yet.

    Args:
        cloud: Holds its secrets and buckets, and gets its output.
        spec: The container.
        instance: The instance that it is part of.
        command: (container, path of its socket) -> the command of its process.

    Raises:
        RevisionFailureError: A secret, a bucket or its program does not exist, or is not readable.
    """
    source = replace(instance.source, container=spec.name)
    if collector_of(spec.image) == "sidecar":
        return Collector(cloud, spec, source, instance.address)
    address = cloud.sockets.new(spec.startup.port if spec.startup else 0)
    return ContainerProcess(source, spec, command(spec, address), address, cloud.logbook)
