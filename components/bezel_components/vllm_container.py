"""Container that runs vLLM: image, arguments, environment, probes, resources and mounts, as plain data.

It is a typed value and no Pulumi resource: a container block exists only inside a service or a job, and a component
around it would add a node to the state that represents nothing. The component that deploys it (`CloudRunGpuService`)
calls its rendering.

Leaves the choice of every value to the plan. Refuses only values that no container may have.

Example:
    ```python
    container = VllmContainer(
        arguments=("/mnt/models/gemma", "--served-model-name=gemma"), cpu=4, memory_gib=16,
        startup_probe=Probe(path="/health", period_seconds=30, timeout_seconds=5, failure_threshold=50),
        mounts=(BucketMount(bucket="acme-llm-models", path="/mnt/models"),),
    )
    block = container.cloud_run_container("us-east4-docker.pkg.dev/acme-llm/hub/vllm/vllm-openai@sha256:…")
    ```
"""

import re
from collections.abc import Mapping

from pulumi_gcp import cloudrunv2
from pydantic import Field, model_validator

from bezel.planner.base.deployment import HEALTH_PATH, LIVENESS, MOUNT_FLAGS
from bezel_components.base.arguments import ComponentArgs, Text

CONTAINER = "vllm"
"""Name of the container in its instance."""
IMAGE_USER = 1001
"""User and group that runs vLLM's image here; a mount of another owner cannot be read."""

_OWNER = re.compile(r"(uid|gid)=(\d+)")


class Probe(ComponentArgs):
    """A probe of the container; times in seconds."""

    path: str = HEALTH_PATH
    """Path of an HTTP probe, vLLM's own by default; "" for a connection to the port."""
    initial_delay_seconds: int = 0
    """Time before the first one; `VllmService` begins the startup probe after 30 seconds."""
    period_seconds: int
    timeout_seconds: int
    failure_threshold: int


class BucketMount(ComponentArgs):
    """A bucket mounted read-only by GCS FUSE, owned by the user that vLLM runs as."""

    bucket: Text
    """Name of the bucket."""
    path: str
    """Absolute directory in the container."""
    options: tuple[str, ...] = tuple(MOUNT_FLAGS)
    """Flags of gcsfuse without dashes; the owner is added."""
    name: str = "weights"

    @model_validator(mode="after")
    def _readable_by_the_server(self) -> "BucketMount":
        for option in self.options:
            owner = _OWNER.fullmatch(option)
            if owner and int(owner[2]) != IMAGE_USER:
                raise ValueError(
                    f"mount option {option} gives the weights to another user than {IMAGE_USER}, so vLLM could not read"
                    f" them; omit it, or set {owner[1]}={IMAGE_USER}"
                )
        return self

    @property
    def owned_options(self) -> list[str]:
        """All flags of gcsfuse, the owner first, each once."""
        return list(dict.fromkeys([f"uid={IMAGE_USER}", f"gid={IMAGE_USER}", *self.options]))

    def cloud_run_volume(self) -> cloudrunv2.ServiceTemplateVolumeArgs:
        """Render the volume of a Cloud Run revision."""
        return cloudrunv2.ServiceTemplateVolumeArgs(
            name=self.name,
            gcs=cloudrunv2.ServiceTemplateVolumeGcsArgs(
                bucket=self.bucket, read_only=True, mount_options=self.owned_options
            ),
        )


class VllmContainer(ComponentArgs):
    """A vLLM server in a container."""

    arguments: tuple[str, ...]
    """Arguments after the image's entrypoint `vllm serve`, the model first."""
    environment: Mapping[str, str] = Field(default_factory=dict)
    """Plain environment variables, no secrets; `VllmService` sets those that its model and its image need."""
    secrets: Mapping[str, str] = Field(default_factory=dict)
    """Variable -> id of the Secret Manager secret whose latest version it holds; values never pass through here."""
    port: int = 8080
    cpu: int
    memory_gib: int
    accelerators: int = 1
    cpu_boost: bool = False
    """Whether an instance has more CPUs while it starts."""
    startup_probe: Probe
    liveness_probe: Probe | None = Field(default_factory=lambda: Probe.model_validate(LIVENESS))
    """Probe of a running instance; by default the instance is replaced after three minutes without an answer. None for
    none."""
    readiness_probe: Probe | None = None
    """Probe by which an instance gets requests, and a load balancer learns the health of a service that keeps an
    instance; it has a path and no initial delay. None for none. `VllmService` sets it by its regions."""
    mounts: tuple[BucketMount, ...] = ()
    """Buckets that the server reads as folders; `VllmService` mounts that of its model."""

    @model_validator(mode="after")
    def _readiness_by_http_at_once(self) -> "VllmContainer":
        probe = self.readiness_probe
        if probe is not None and (not probe.path or probe.initial_delay_seconds):
            raise ValueError(
                "readiness_probe has no path or an initial delay, which Cloud Run has for other probes only; set its"
                f" path, e.g. {HEALTH_PATH}, and omit initial_delay_seconds"
            )
        return self

    @model_validator(mode="after")
    def _one_source_for_each_variable(self) -> "VllmContainer":
        both = sorted(self.environment.keys() & self.secrets.keys())
        if both:
            raise ValueError(
                f"{', '.join(both)}: set both in the environment and from a secret, and the platform uses either of"
                " them; remove it from the environment"
            )
        return self

    def cloud_run_container(self, image: Text) -> cloudrunv2.ServiceTemplateContainerArgs:
        """Render the container of a Cloud Run revision that has a GPU.

        The CPU stays allocated between requests: Cloud Run requires it with a GPU, and vLLM's engine works outside of
        requests. Variables are sorted, since the platform returns them in an order of its own.

        Args:
            image: Reference of the image, by digest.
        """
        liveness, readiness = self.liveness_probe, self.readiness_probe
        return cloudrunv2.ServiceTemplateContainerArgs(
            name=CONTAINER,
            image=image,
            args=list(self.arguments),
            envs=[*self._plain_variables(), *self._secret_variables()],
            ports=cloudrunv2.ServiceTemplateContainerPortsArgs(name="http1", container_port=self.port),
            resources=cloudrunv2.ServiceTemplateContainerResourcesArgs(
                limits={
                    "cpu": str(self.cpu),
                    "memory": f"{self.memory_gib}Gi",
                    "nvidia.com/gpu": str(self.accelerators),
                },
                cpu_idle=False,
                # Left out when off, as the platform does in its responses.
                startup_cpu_boost=self.cpu_boost or None,
            ),
            startup_probe=cloudrunv2.ServiceTemplateContainerStartupProbeArgs(
                initial_delay_seconds=self.startup_probe.initial_delay_seconds,
                period_seconds=self.startup_probe.period_seconds,
                timeout_seconds=self.startup_probe.timeout_seconds,
                failure_threshold=self.startup_probe.failure_threshold,
                http_get=cloudrunv2.ServiceTemplateContainerStartupProbeHttpGetArgs(
                    path=self.startup_probe.path, port=self.port
                )
                if self.startup_probe.path
                else None,
                tcp_socket=None
                if self.startup_probe.path
                else cloudrunv2.ServiceTemplateContainerStartupProbeTcpSocketArgs(port=self.port),
            ),
            liveness_probe=None
            if liveness is None
            else cloudrunv2.ServiceTemplateContainerLivenessProbeArgs(
                initial_delay_seconds=liveness.initial_delay_seconds,
                period_seconds=liveness.period_seconds,
                timeout_seconds=liveness.timeout_seconds,
                failure_threshold=liveness.failure_threshold,
                http_get=cloudrunv2.ServiceTemplateContainerLivenessProbeHttpGetArgs(path=liveness.path, port=self.port)
                if liveness.path
                else None,
                tcp_socket=None
                if liveness.path
                else cloudrunv2.ServiceTemplateContainerLivenessProbeTcpSocketArgs(port=self.port),
            ),
            readiness_probe=None
            if readiness is None
            else cloudrunv2.ServiceTemplateContainerReadinessProbeArgs(
                period_seconds=readiness.period_seconds,
                timeout_seconds=readiness.timeout_seconds,
                failure_threshold=readiness.failure_threshold,
                http_get=cloudrunv2.ServiceTemplateContainerReadinessProbeHttpGetArgs(
                    path=readiness.path, port=self.port
                ),
            ),
            volume_mounts=[
                cloudrunv2.ServiceTemplateContainerVolumeMountArgs(name=mount.name, mount_path=mount.path)
                for mount in self.mounts
            ],
        )

    def _plain_variables(self) -> list[cloudrunv2.ServiceTemplateContainerEnvArgs]:
        return [
            cloudrunv2.ServiceTemplateContainerEnvArgs(name=name, value=value)
            for name, value in sorted(self.environment.items())
        ]

    def _secret_variables(self) -> list[cloudrunv2.ServiceTemplateContainerEnvArgs]:
        return [
            cloudrunv2.ServiceTemplateContainerEnvArgs(
                name=name,
                value_source=cloudrunv2.ServiceTemplateContainerEnvValueSourceArgs(
                    secret_key_ref=cloudrunv2.ServiceTemplateContainerEnvValueSourceSecretKeyRefArgs(
                        secret=secret, version="latest"
                    )
                ),
            )
            for name, secret in sorted(self.secrets.items())
        ]
