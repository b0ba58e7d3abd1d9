"""Spec of a revision, read from its JSON with the platform's defaults filled in. Pure."""

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from bezel_localcloud.core.json_types import Json, seconds_of
from bezel_localcloud.core.paths import DEFAULT_COMPUTE_ACCOUNT
from bezel_localcloud.services.cloud_run.containers.order import serving_container
from bezel_localcloud.services.cloud_run.containers.volumes import (
    BucketMount,
    SecretMount,
    bucket_mounts,
    secret_mounts,
)

GIB = 1024**3
_UNITS = {"": 1, "k": 1000, "M": 1000**2, "G": 1000**3, "Ki": 1024, "Mi": 1024**2, "Gi": GIB}


@cache
def limits() -> Json:
    """The platform's limits, see data/cloud_run.toml."""
    return tomllib.loads((Path(__file__).parents[2] / "data" / "cloud_run.toml").read_text(encoding="utf-8"))


def cores(quantity: str) -> float:
    """CPUs of a Kubernetes quantity such as "4" or "4000m".

    Raises:
        ValueError: If it is none.
    """
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(m?)", quantity)
    if match is None:
        raise ValueError(f"{quantity!r} is not a number of CPUs such as '4'")
    return float(match[1]) / (1000 if match[2] else 1)


def size_in_bytes(quantity: str) -> int:
    """Bytes of a Kubernetes quantity such as "16Gi".

    Raises:
        ValueError: If it is none.
    """
    match = re.fullmatch(r"([0-9]{1,15})([kMG]|[KMG]i)?", quantity)
    if match is None:
        raise ValueError(f"{quantity!r} is not an amount of memory such as '16Gi'")
    return int(match[1]) * _UNITS[match[2] or ""]


@dataclass(frozen=True)
class ProbeSpec:
    """A health probe; all times in seconds of the platform.

    Attributes:
        path: Path of an HTTP probe; None for a TCP connection.
        port: Port in the container, 0 for the container's own.
    """

    path: str | None
    port: int
    initial_delay: float
    timeout: float
    period: float
    failures: int

    @property
    def window(self) -> float:
        """Seconds until the platform gives up."""
        return self.initial_delay + self.period * self.failures


@dataclass(frozen=True)
class ContainerSpec:
    """Fields of a container that its process needs.

    Attributes:
        port: Where it takes requests, 0 for a container that takes none.
        depends_on: Names of the containers that must have started before it.
        startup: None for a container that has started once its process has.
    """

    name: str
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    environment: tuple[Json, ...]
    port: int
    cpu: float
    memory: int
    accelerator: str
    accelerators: int
    service_account: str
    mounts: tuple[BucketMount, ...]
    secrets: tuple[SecretMount, ...]
    depends_on: tuple[str, ...]
    startup: ProbeSpec | None
    liveness: ProbeSpec | None
    readiness: ProbeSpec | None


@dataclass(frozen=True)
class RevisionSpec(ContainerSpec):
    """Fields of a revision that its instances need: those of the container that takes requests, and the others.

    Attributes:
        sidecars: The other containers of an instance.
        instance_cpu: CPUs of all containers of an instance.
        instance_memory: Bytes of memory of all of them.
        instance_accelerators: GPUs of all of them.
    """

    sidecars: tuple[ContainerSpec, ...]
    instance_cpu: float
    instance_memory: int
    instance_accelerators: int
    redundant: bool
    concurrency: int
    timeout: float
    min_instances: int
    max_instances: int


def revision_spec(template: Json, service_scaling: Json) -> RevisionSpec:
    """The spec of a revision from its template (or the revision itself) and its service's scaling."""
    serving = serving_container(template)
    main = container_spec(template, serving)
    others = [each for each in template.get("containers") or [] if each is not serving]
    named = [{"name": f"container-{index}"} | each for index, each in enumerate(others, 1)]
    sidecars = tuple(container_spec(template, each, is_serving=False) for each in named)
    scaling, requests, containers = template.get("scaling") or {}, limits()["requests"], (main, *sidecars)
    maxima = [int(s["maxInstanceCount"]) for s in (scaling, service_scaling) if s.get("maxInstanceCount")]
    return RevisionSpec(
        **{field.name: getattr(main, field.name) for field in fields(ContainerSpec)},
        sidecars=sidecars,
        instance_cpu=sum(container.cpu for container in containers),
        instance_memory=sum(container.memory for container in containers),
        instance_accelerators=sum(container.accelerators for container in containers),
        redundant=not template.get("gpuZonalRedundancyDisabled", False),
        concurrency=int(
            template.get("maxInstanceRequestConcurrency") or (requests["default_concurrency"] if main.cpu >= 1 else 1)
        ),
        timeout=seconds_of(template.get("timeout"), requests["default_timeout_seconds"]),
        min_instances=max(int(s.get("minInstanceCount") or 0) for s in (scaling, service_scaling)),
        max_instances=min(maxima, default=limits()["instances"]["default_max"]),
    )


def container_spec(template: Json, container: Json, *, is_serving: bool = True) -> ContainerSpec:
    """The spec of a container of a template."""
    resources = (container.get("resources") or {}).get("limits") or {}
    ports = container.get("ports") or [{}]
    probes = {name: container.get(f"{name}Probe") for name in ("startup", "liveness", "readiness")}
    specs = {name: probe(body) if body else None for name, body in probes.items()}
    if is_serving and specs["startup"] is None:
        # Without a probe the platform waits four minutes for the port.
        specs["startup"] = ProbeSpec(None, 0, 0.0, 240.0, 240.0, 1)
    return ContainerSpec(
        name=container.get("name", ""),
        image=container.get("image", ""),
        command=tuple(container.get("command") or ()),
        args=tuple(container.get("args") or ()),
        environment=tuple(container.get("env") or ()),
        port=int(ports[0].get("containerPort") or 8080) if is_serving else 0,
        cpu=cores(resources.get("cpu", "1")),
        memory=size_in_bytes(resources.get("memory", "512Mi")),
        accelerator=(template.get("nodeSelector") or {}).get("accelerator", ""),
        accelerators=int(resources.get("nvidia.com/gpu", "0")),
        service_account=template.get("serviceAccount") or DEFAULT_COMPUTE_ACCOUNT,
        mounts=bucket_mounts(template, container),
        secrets=secret_mounts(template, container),
        depends_on=tuple(container.get("dependsOn") or ()),
        **specs,
    )


def probe(body: Json) -> ProbeSpec:
    """A probe from its JSON, with the platform's defaults."""
    http, tcp = body.get("httpGet"), body.get("tcpSocket")
    return ProbeSpec(
        path=None if http is None else http.get("path") or "/",
        port=int((http or tcp or {}).get("port") or 0),
        initial_delay=float(body.get("initialDelaySeconds") or 0),
        timeout=float(body.get("timeoutSeconds") or 1),
        period=float(body.get("periodSeconds") or 10),
        failures=int(body.get("failureThreshold") or 3),
    )
