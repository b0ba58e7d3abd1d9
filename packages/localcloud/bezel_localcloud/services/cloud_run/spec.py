"""Spec of a revision, read from its JSON with the platform's defaults filled in. Pure."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bezel_localcloud.core.json_types import Json, seconds_of
from bezel_localcloud.core.paths import DEFAULT_COMPUTE_ACCOUNT
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
    return tomllib.loads((Path(__file__).parents[2] / "data" / "cloud_run.toml").read_text())


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
class RevisionSpec:
    """Fields of a revision that its instances need."""

    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    environment: tuple[Json, ...]
    port: int
    cpu: float
    memory: int
    accelerator: str
    accelerators: int
    redundant: bool
    concurrency: int
    timeout: float
    min_instances: int
    max_instances: int
    service_account: str
    mounts: tuple[BucketMount, ...]
    secrets: tuple[SecretMount, ...]
    startup: ProbeSpec
    liveness: ProbeSpec | None
    readiness: ProbeSpec | None = None


def revision_spec(template: Json, service_scaling: Json) -> RevisionSpec:
    """The spec of a revision from its template (or the revision itself) and its service's scaling."""
    container = serving_container(template)
    resources = (container.get("resources") or {}).get("limits") or {}
    scaling, requests = template.get("scaling") or {}, limits()["requests"]
    ports = container.get("ports") or [{}]
    maxima = [int(s["maxInstanceCount"]) for s in (scaling, service_scaling) if s.get("maxInstanceCount")]
    startup, cpu = container.get("startupProbe"), cores(resources.get("cpu", "1"))
    return RevisionSpec(
        image=container.get("image", ""),
        command=tuple(container.get("command") or ()),
        args=tuple(container.get("args") or ()),
        environment=tuple(container.get("env") or ()),
        port=int(ports[0].get("containerPort") or 8080),
        cpu=cpu,
        memory=size_in_bytes(resources.get("memory", "512Mi")),
        accelerator=(template.get("nodeSelector") or {}).get("accelerator", ""),
        accelerators=int(resources.get("nvidia.com/gpu", "0")),
        redundant=not template.get("gpuZonalRedundancyDisabled", False),
        concurrency=int(
            template.get("maxInstanceRequestConcurrency") or (requests["default_concurrency"] if cpu >= 1 else 1)
        ),
        timeout=seconds_of(template.get("timeout"), requests["default_timeout_seconds"]),
        min_instances=max(int(s.get("minInstanceCount") or 0) for s in (scaling, service_scaling)),
        max_instances=min(maxima, default=limits()["instances"]["default_max"]),
        service_account=template.get("serviceAccount") or DEFAULT_COMPUTE_ACCOUNT,
        mounts=bucket_mounts(template, container),
        secrets=secret_mounts(template, container),
        # Without a probe the platform waits four minutes for the port.
        startup=probe(startup) if startup else ProbeSpec(None, 0, 0.0, 240.0, 240.0, 1),
        liveness=probe(container["livenessProbe"]) if container.get("livenessProbe") else None,
        readiness=probe(container["readinessProbe"]) if container.get("readinessProbe") else None,
    )


def serving_container(template: Json) -> Json:
    """The container that takes requests: the one with a port, else the first."""
    containers: list[Json] = template.get("containers") or [{}]
    return next((c for c in containers if c.get("ports")), containers[0])


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
