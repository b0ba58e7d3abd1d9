"""The settings of a stack file, typed and strict: the one description of every key, its type, default and meaning.

Owns shapes and bounds that hold for any model and any hardware. Leaves what follows from the catalogue (defaults,
combinations, limits of the platform) to the rules. Pulumi.yaml and the README's table are generated from this module.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _no_bool(value: object) -> object:
    # pydantic takes True for 1; a switch in place of a number is a mistake.
    return "true" if value is True else "false" if value is False else value


Whole = Annotated[int, BeforeValidator(_no_bool)]
Number = Annotated[float, BeforeValidator(_no_bool)]


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, defer_build=True, allow_inf_nan=False, str_strip_whitespace=True
    )


class Weights(_Section):
    """Where the model's files lie."""

    bucket: str | None = Field(None, description="bucket with the weights; default `<project>-models`")
    path: str | None = Field(None, description="folder inside the bucket; default the checkpoint's own name")
    create: bool = Field(
        default=False, description="whether the stack makes the bucket; otherwise it must be there already"
    )
    loading: Literal["fuse", "fuse-prefetch", "runai-streamer", "hub"] | None = Field(
        None,
        description="how weights reach the GPU, see docs/weights.md; default fuse-prefetch where the memory suffices, "
        "else fuse",
    )


class Image(_Section):
    """The server's container image, where it is not the release's own."""

    registry: str | None = Field(
        None, description="a registry that anybody may read; default docker.io", examples=["quay.io"]
    )
    repository: str | None = Field(
        None, description="path there; default vllm/vllm-openai, on TPUs vllm/vllm-tpu", examples=["vllm/vllm-tpu"]
    )
    tag: str | None = Field(None, description="default `v` and `vllm_version`", examples=["v0.32.0"])
    digest: str | None = Field(
        None, description="`sha256:…`, so that no tag is looked up; a tag that moves, as `nightly`, needs it"
    )
    options: str | None = Field(
        None,
        description="recorded options that it takes, see `bezel catalog record-options`; default what the tag says",
        examples=["0.32.0"],
    )


class Resources(_Section):
    """What one instance gets beside its accelerator."""

    cpu: Whole | None = Field(None, gt=0, description="vCPUs; default the accelerator's minimum", examples=[4])
    memory: str | None = Field(
        None, description="memory of the host, e.g. `16Gi`; default the accelerator's minimum", examples=["16Gi"]
    )
    cpu_boost: bool = Field(
        default=False, description="more vCPUs while an instance starts, which are paid for (4 and 6 become 8)"
    )


class Scaling(_Section):
    """How many instances, and how many requests each takes."""

    min_instances: Whole = Field(0, ge=0, description="instances kept running without traffic")
    # Far above any project's quota; the API accepts 32 bits.
    max_instances: Whole = Field(1, ge=1, le=1000, description="most instances at a time; each needs GPU quota")
    request_concurrency: Whole | None = Field(
        None,
        ge=1,
        le=1000,
        description="requests that one instance takes at a time; default twice max-num-seqs, at most 1000",
    )
    zonal_redundancy: bool = Field(
        default=False,
        description="keep GPUs of another zone in reserve: a dearer price, and another quota, which begins at 0",
    )


class ProbeSettings(_Section):
    """The startup probe on /health."""

    initial_delay_seconds: Whole = Field(30, ge=0, description="wait before the first probe, at most 240")
    period_seconds: Whole = Field(10, ge=1, description="time between probes, at most 240")
    timeout_seconds: Whole = Field(5, ge=1, description="wait for one answer, at most the period")
    failure_threshold: Whole = Field(
        180, ge=1, description="failed probes before the start is given up; times the period at most 1800 s"
    )


class Access(_Section):
    """Who may call the service."""

    invokers: tuple[str, ...] = Field(
        (),
        description="members with roles/run.invoker, e.g. `serviceAccount:app@p.iam.gserviceaccount.com`",
        examples=["[user:NAME@DOMAIN]"],
    )
    public: bool = Field(default=False, description="let anyone on the internet call it, without a token")
    ingress: Literal["all", "internal", "internal-and-cloud-load-balancing"] = Field(
        "all", description="from where requests may come; they need an identity all the same"
    )
    accepted_risks: tuple[str, ...] = Field(
        (),
        description="variables and options of vLLM, by name, that open the server to its callers or have it run code "
        "of another place, and are wanted anyway",
        examples=["[VLLM_SERVER_DEV_MODE]"],
    )


class Vpc(_Section):
    """The network that a Cloud Run service sends its requests through."""

    network: str | None = Field(None, description="VPC network, by its name or `projects/P/global/networks/N`")
    subnetwork: str | None = Field(
        None, description="its subnetwork in the region, /26 or larger; default the one of the network's name"
    )
    egress: Literal["private-ranges-only", "all-traffic"] = Field(
        "private-ranges-only",
        description="what goes that way; `all-traffic` needs Private Google Access in the subnetwork for the weights",
    )
    tags: tuple[str, ...] = Field((), description="network tags that firewall rules know the service by")


class PriceRow(_Section):
    """A price of the user's own, for what the catalogue does not price."""

    item: str = Field(description="the missing row's item, e.g. `gpu nvidia-l4 no zonal redundancy`", examples=["vcpu"])
    region: str = Field(description="the region that it holds for", examples=["us-east4"])
    usd_per_unit: Number = Field(
        gt=0,
        description="USD per second of one unit (GPU, chip, machine, vCPU or GiB), of `requests` per million",
        examples=[0.0001867],
    )
    as_of: str = Field(description="when it was read, e.g. `2026-11`", examples=["2026-11"])
    source: str = Field(description="where it was read", examples=["our invoice"])


class Cost(_Section):
    """What may be spent."""

    max_hourly_usd: Number | None = Field(
        None, gt=0, description="most USD per hour with all instances running; above it the plan is refused"
    )
    max_idle_hourly_usd: Number | None = Field(
        None,
        ge=0,
        description="most USD per hour without traffic (`min_instances`); default 0 in `dev`, no limit in `prod`",
    )
    max_lease_usd: Number | None = Field(
        None, gt=0, description="most USD for the leases of a stack until they end; above it the plan is refused"
    )
    prices: tuple[PriceRow, ...] = Field((), description="own price rows (item, region, usd_per_unit, as_of, source)")


class ZonePreference(_Section):
    """A zone to ask in, and for how long."""

    zone: str = Field(description="zone of Google Cloud", examples=["us-east5-a"])
    patience: str | None = Field(None, description="how long to wait there; default `lease.patience`", examples=["2h"])


class LeaseSettings(_Section):
    """How machines are bought that are leased for a time: TPU slices, machines with several GPUs."""

    zones: tuple[ZonePreference, ...] = Field(
        (),
        description="zones in order of preference (zone, patience); required for a lease",
        examples=["[{zone: us-east5-a}]"],
    )
    patience: str = Field("30m", description="how long a request waits in the queue of a zone before the next is asked")
    duration: str = Field("4h", description="when the machine is ended, counted from its start: 10m to 7d")
    provisioning: Literal["flex-start", "spot", "on-demand"] = Field(
        "flex-start", description="how it is bought; flex-start waits for capacity and is cheapest on v6e"
    )
    back_end: Literal["queued_resource", "flex_start_vm"] | None = Field(
        None,
        description="control plane, each with a quota of its own; default queued_resource for TPU slices, else "
        "flex_start_vm",
    )
    renew: bool = Field(default=False, description="whether `up` buys again what has ended")
    count: Whole = Field(1, ge=1, le=16, description="leases behind one gateway")
    compile_cache: bool = Field(
        default=True, description="keep compiled graphs in the bucket, so that the next lease starts sooner"
    )
    provisioning_deadline: str = Field("30m", description="how long a granted machine may take until it runs")
    boot_deadline: str = Field("90m", description="how long a machine that runs may take until vLLM answers")


class NetworkSettings(_Section):
    """The network that leased machines stand in."""

    nat: bool = Field(
        default=False, description="let machines reach the internet: for weights from the hub, packages at boot"
    )


class Smoke(_Section):
    """The check and the short benchmark after each deploy."""

    deadline_seconds: Whole = Field(2400, ge=30, description="how long the check waits for a healthy service")
    requests: Whole | None = Field(None, ge=1, le=1000, description="benchmark requests; default three rounds")
    concurrency: Whole | None = Field(
        None, ge=1, le=1000, description="at a time; default a full batch of each instance, at most 64"
    )
    # Shorter prompts have no room for words of their own beside the template.
    prompt_tokens: Whole = Field(256, ge=32, description="tokens of each prompt")
    output_tokens: Whole = Field(64, ge=2, description="tokens of each answer")
    min_draft_acceptance: Number | None = Field(
        None, gt=0, le=1, description="least share of accepted draft tokens, with speculative decoding only"
    )
    random_weights: bool = Field(
        default=False, description="a test model with random weights: the share is reported and not judged"
    )
    impersonate: str | None = Field(
        None, description="service account that identity tokens are made for, where the caller's own cannot"
    )
    inside: bool = Field(
        default=False,
        description="the deployer is in a network of the project, so it reaches a service with internal ingress",
    )


class Settings(_Section):
    """All settings of a stack file, under the namespace `bezel`."""

    environment: Literal["dev", "prod"] = Field("dev", description="`prod` protects the service from deletion")
    deletion_protection: Literal["environment", "always", "never"] = Field(
        "environment",
        description="whether deleting the service is refused: in `prod`, always, or never; to take it down: `never`, "
        "`up`, then `down`",
    )
    model: str = Field(description="checkpoint of the catalogue", examples=["gemma-4-12b-it-qat-w4a16"])
    accelerator: str = Field(
        description="accelerator of the catalogue; a TPU slice or a machine with GPUs is leased", examples=["nvidia-l4"]
    )
    region: str = Field(
        description="region of the service; of a lease: of its gateway, images and weights", examples=["us-east4"]
    )
    vllm_version: str = Field("0.32.0", description="vLLM release of the image; its option list checks the arguments")
    image: Image = Field(
        Image(), description="another image than the release's own", examples=["{tag: nightly-2026-11-20}"]
    )
    weights: Weights = Field(Weights(), description="where the model's files lie", examples=["{bucket: NAME}"])
    vllm: dict[str, Any] = Field(
        {},
        description="options of `vllm serve`, without dashes in front, each with its value; null drops a default",
        examples=["{max-model-len: 32768}"],
    )
    resources: Resources = Field(Resources(), description="CPU and memory of one instance", examples=["{memory: 16Gi}"])
    scaling: Scaling = Field(
        Scaling(), description="how many instances, and how many requests each takes", examples=["{max_instances: 1}"]
    )
    rollout: Literal["direct", "gated"] = Field(
        "direct", description="`gated` checks a new revision before it gets traffic; needs GPUs for two revisions"
    )
    probe: ProbeSettings = Field(
        ProbeSettings(), description="startup probe on /health", examples=["{failure_threshold: 180}"]
    )
    access: Access = Field(Access(), description="who may call the service", examples=["{public: false}"])
    vpc: Vpc = Field(Vpc(), description="the network that the service sends through", examples=["{network: default}"])
    variables: dict[str, str] = Field(
        {},
        description="plain environment variables of the container, nothing secret",
        examples=["{VLLM_LOGGING_LEVEL: DEBUG}"],
    )
    secrets: dict[str, str] = Field(
        {}, description="environment variable -> name of a secret in Secret Manager", examples=["{HF_TOKEN: hf-token}"]
    )
    lease: LeaseSettings = Field(
        LeaseSettings(), description="how leased machines are bought", examples=["{duration: 4h}"]
    )
    network: NetworkSettings = Field(
        NetworkSettings(), description="the network of leased machines", examples=["{nat: false}"]
    )
    cost: Cost = Field(Cost(), description="what may be spent", examples=["{max_hourly_usd: 1.5}"])
    smoke: Smoke = Field(Smoke(), description="check and short benchmark after the deploy", examples=["{requests: 24}"])
    labels: dict[str, str] = Field(
        {}, description="labels of every resource that takes them", examples=["{team: speech}"]
    )

    @property
    def protects_from_deletion(self) -> bool:
        """Whether deleting the serving resources is refused."""
        said = self.deletion_protection
        return self.environment == "prod" if said == "environment" else said == "always"
