"""Deployment part of a plan, as frozen values: image, weights, service and smoke check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.base.schedule import Entry
    from bezel.planner.base.settings import ProbeSettings, Vpc

HEALTH_PATH = "/health"  # of both probes
# A hung engine leaves the port open; a server without a response for three minutes is dead, not busy.
LIVENESS = {"initial_delay_seconds": 0, "period_seconds": 60, "timeout_seconds": 30, "failure_threshold": 3}
# Flags of GCS FUSE, each with its reason. Its file cache stays off: it would be in the instance's memory, where the
# page cache holds the same bytes.
MOUNT_FLAGS = {
    "uid=1001": "the container's user must be able to read the files",
    "gid=1001": "as its group",
    "implicit-dirs": "folders exist by the names of their objects, however those were copied",
    "metadata-cache-ttl-secs=-1": "weights never change under a running instance; the default is 60 s",
    "max-conns-per-host=100": "an object is read in many ranges at a time",
}


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """The upstream image; the tag's digest is looked up at preview, unless the stack file names one."""

    registry: str
    repository: str
    tag: str
    digest: str = ""

    @property
    def name(self) -> str:
        """The container's image reference; with a digest, the tag only informs the reader."""
        return f"{self.registry}/{self.repository}:{self.tag}" + (f"@{self.digest}" if self.digest else "")


@dataclass(frozen=True, slots=True)
class WeightsPlan:
    """Location of the model's files, and how they are loaded.

    `loading` is an id of bezel.planner.vllm.loading, or "copied" on leased machines; `model` is vLLM's model argument.
    `bucket` is None where none is used, `path` the folder inside it, `create` whether the stack creates it.
    `mount_path` is None without a mount; a mount is read-only, and `mount_options` are flags of GCS FUSE
    without their dashes. `source` is the hub id to copy from ("" where this form is not published). `drafts` are the
    folders of draft models that the arguments name, each with its hub id; `adapters`
    those of LoRA adapters, each with the largest rank that the server takes, and `adapter_sources` the hub ids, with a
    revision, of those that are copied from there; `hidden_size` and `layers` are the model's, which adapters must have.
    """

    loading: str
    model: str
    bucket: str | None
    path: str
    mount_path: str | None
    mount_options: tuple[str, ...]
    create: bool
    source: str
    drafts: Mapping[str, str]
    adapters: Mapping[str, int]
    adapter_sources: Mapping[str, str]
    hidden_size: int
    layers: int

    @property
    def address(self) -> str:
        """`gs://BUCKET/FOLDER`, "" without a bucket."""
        return f"gs://{self.bucket}/{self.path}" if self.bucket else ""

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output."""
        return {"loading": self.loading, "model": self.model, "mounted_at": self.mount_path}


@dataclass(frozen=True, slots=True)
class PlannedOption:
    """An option of the server: its value as vLLM reads it, and its flags, each with the values that follow it."""

    value: Any
    flags: tuple[tuple[str, ...], ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Its words on the command line: `--flag=value` for a flag with one value."""
        return tuple(word for flag in self.flags for word in (("=".join(flag),) if len(flag) == 2 else flag))


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """The server's command line, the same on Cloud Run and on leased machines; `options` by name, in their order."""

    options: Mapping[str, PlannedOption]
    weights: WeightsPlan

    @property
    def arguments(self) -> tuple[str, ...]:
        """What follows `vllm serve`: the model's path or hub id, then the words of every option."""
        return (self.weights.model, *(word for option in self.options.values() for word in option.arguments))

    @property
    def values(self) -> dict[str, Any]:
        """Values of the options as vLLM reads them, by name."""
        return {name: option.value for name, option in self.options.items()}


@dataclass(frozen=True, slots=True)
class ServicePlan(ServerPlan):
    """One Cloud Run service with a GPU; `secrets` maps environment variables to ids in Secret Manager.

    `readiness_probe` is None where no balancer reads the service's health.
    """

    name: str
    region: str
    image: ImagePlan
    environment: Mapping[str, str]
    secrets: Mapping[str, str]
    port: int
    cpu: int
    memory_gib: int
    accelerator: str
    accelerator_count: int
    zonal_redundancy: bool
    startup_probe: ProbeSettings
    liveness_probe: ProbeSettings
    readiness_probe: ProbeSettings | None
    min_instances: int
    max_instances: int
    schedule: tuple[Entry, ...]
    request_concurrency: int
    restarted_at: str
    timeout_seconds: int
    cpu_boost: bool
    ingress: str
    vpc: Vpc | None
    invokers: tuple[str, ...]
    public: bool
    deletion_protection: bool
    labels: Mapping[str, str]
    service_account_id: str
    image_repository_id: str


@dataclass(frozen=True, slots=True)
class SmokePlan:
    """Smoke check and short benchmark after a deploy; lengths in tokens, durations in seconds.

    `pooled_at` is the endpoint that both ask of a model that pools, "" where only a plugin could ask for it; None for a
    model that generates.
    """

    deadline_seconds: int
    speculative: bool
    min_draft_acceptance: float | None
    random_weights: bool
    requests: int
    concurrency: int
    prompt_tokens: int
    output_tokens: int
    impersonate: str | None
    pooled_at: str | None = None

    @property
    def sequence_tokens(self) -> int:
        """Tokens of one request's sequence: its prompt, and its response where the model generates one."""
        return self.prompt_tokens + (self.output_tokens if self.pooled_at is None else 0)
