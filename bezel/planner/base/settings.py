"""The settings of a stack file, typed and strict: the one description of every key, its type, default and meaning.

Owns shapes and bounds that hold for any model and any hardware. Leaves what follows from the catalogue (defaults,
combinations, limits of the platform) to the rules. Pulumi.yaml and the table of docs/stacks.md come from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import Field, PlainSerializer

from bezel.planner.base.environments import THROW_AWAY
from bezel.planner.base.setting_values import Duration, Environment, Memory, Number, Section, Switch, Whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic.fields import FieldInfo


class Weights(Section):
    """Location of the model's files."""

    bucket: str | None = Field(None, description="bucket with the weights; default `<project>-models`")
    path: str | None = Field(None, description="folder inside the bucket; default the checkpoint's own name")
    create: Switch = Field(default=False, description="whether the stack creates the bucket; otherwise it must exist")
    loading: Literal["fuse", "fuse-prefetch", "runai-streamer", "hub"] | None = Field(
        None,
        description="how weights are loaded onto the GPU, see docs/weights.md; default fuse-prefetch where the memory "
        "suffices, else fuse",
    )
    regional_buckets: Switch = Field(
        default=False,
        description="whether each of several regions reads a copy of its own, in `<bucket>-<region>`; otherwise all "
        "read the one bucket",
    )


class Address(Section):
    """One address with a name of one's own, for the services of all regions or for the gateway."""

    domain: str | None = Field(
        None,
        description="name of the address: a load balancer with a certificate leads it to the services",
        examples=["llm.acme.example"],
    )
    zone: str | None = Field(
        None,
        description="name of the project's Cloud DNS zone that holds the domain; without it the plan lists the records "
        "to set elsewhere",
        examples=["acme-example"],
    )


class Adapter(Section):
    """A LoRA adapter that the server loads at its start, and answers for by its name."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
        description="name that requests ask for; letters, digits, `.`, `_` and `-`",
        examples=["sql"],
    )
    source: str | None = Field(
        None,
        description="adapter on the Hugging Face hub, `OWNER/NAME[@REVISION]`: `bezel weights copy` copies it into the "
        "bucket; with `weights.loading: hub` the server downloads it",
        examples=["acme/sql-lora"],
    )
    path: str | None = Field(
        None,
        description="folder inside the bucket; default `adapters/` and the adapter's name",
        examples=["adapters/sql"],
    )
    rank: Whole = Field(
        16,
        ge=1,
        le=512,
        description="largest rank in its adapter_config.json (`r`, `rank_pattern`), for which memory is reserved",
    )


class Image(Section):
    """The server's container image, where it is not the release's own."""

    registry: str | None = Field(None, description="host of a public registry; default docker.io", examples=["quay.io"])
    repository: str | None = Field(
        None,
        description="path in the registry; default vllm/vllm-openai, on TPUs vllm/vllm-tpu",
        examples=["vllm/vllm-tpu"],
    )
    tag: str | None = Field(
        None, description="tag of the image; default `v` followed by `vllm_version`", examples=["v0.32.0"]
    )
    digest: str | None = Field(
        None, description="`sha256:…`: the tag is not looked up; required for a tag that moves, such as `nightly`"
    )
    options: str | None = Field(
        None,
        description="recorded options of its vLLM, see `bezel catalog record-release`; default the release in the tag",
        examples=["0.32.0"],
    )


class Resources(Section):
    """CPU and memory of one instance, beside its accelerator."""

    cpu: Whole | None = Field(None, gt=0, le=1000, description="vCPUs; default the accelerator's minimum", examples=[4])
    memory: Memory | None = Field(
        None, description="memory of the host, e.g. `16Gi`; default the accelerator's minimum", examples=["16Gi"]
    )
    cpu_boost: Switch = Field(
        default=False, description="more vCPUs while an instance starts, at their price (4 and 6 become 8)"
    )


class ScheduledScaling(Section):
    """A minimum of instances that is set at certain times."""

    cron: str = Field(
        description="times at which it is set: minute, hour, day, month, weekday", examples=["0 8 * * 1-5"]
    )
    time_zone: str = Field("UTC", description="time zone of these times", examples=["Europe/Berlin"])
    min_instances: Whole = Field(ge=0, le=1000, description="instances kept running from then on", examples=[1])


class Scaling(Section):
    """Number of instances, and of requests for each."""

    min_instances: Whole = Field(0, ge=0, le=1000, description="instances kept running without traffic")
    # Far above any project's quota; the API accepts 32 bits.
    max_instances: Whole = Field(1, ge=1, le=1000, description="maximum of instances; each needs GPU quota")
    request_concurrency: Whole | None = Field(
        None,
        ge=1,
        le=1000,
        description="concurrent requests per instance; default twice max-num-seqs, at most 1000",
    )
    request_timeout_seconds: Whole = Field(
        3600,
        ge=1,
        le=3600,
        description="time limit of a request with its whole response, after which Cloud Run ends it (504); for leases, "
        "of the gateway",
    )
    zonal_redundancy: Switch = Field(
        default=False,
        description="reserve GPUs in another zone: at a higher price, and from another quota, which is 0 at first",
    )
    schedule: tuple[ScheduledScaling, ...] = Field(
        (),
        description="times at which the minimum changes (cron, time_zone, min_instances), without a new revision",
        examples=["[{cron: 0 8 * * 1-5, min_instances: 1}, {cron: 0 18 * * 1-5, min_instances: 0}]"],
    )


class ProbeSettings(Section):
    """The startup probe of a Cloud Run service."""

    kind: Literal["http", "tcp"] = Field("http", description="`http`: /health answers; `tcp`: the port is open")
    initial_delay_seconds: Whole = Field(30, ge=0, description="wait before the first probe, at most 240")
    period_seconds: Whole = Field(10, ge=1, description="time between probes, at most 240")
    timeout_seconds: Whole = Field(5, ge=1, description="time limit of one probe, at most the period")
    failure_threshold: Whole = Field(
        180, ge=1, description="failed probes after which the start fails; times the period at most 1800 s"
    )


class Access(Section):
    """Who may call the service."""

    invokers: tuple[str, ...] = Field(
        (),
        description="members with roles/run.invoker, e.g. `serviceAccount:caller@my-project.iam.gserviceaccount.com`",
        examples=["[user:NAME@DOMAIN]"],
    )
    public: Switch = Field(default=False, description="allow anyone on the internet to call it, without a token")
    ingress: Literal["all", "internal", "internal-and-cloud-load-balancing"] = Field(
        "all", description="networks that may send requests; every request needs an identity too"
    )
    keys: Switch = Field(
        default=False,
        description="make a door that admits callers by key, for clients that can only send one, see docs/keys.md",
    )
    accepted_risks: tuple[str, ...] = Field(
        (),
        description="names of vLLM variables and options that open the server to its callers or let it run foreign "
        "code, and are accepted",
        examples=["[VLLM_SERVER_DEV_MODE]"],
    )


class Vpc(Section):
    """Network of a Cloud Run service's outgoing requests."""

    network: str | None = Field(None, description="VPC network: its name or `projects/P/global/networks/N`")
    subnetwork: str | None = Field(
        None, description="subnetwork in the region, /26 or larger; default the one with the network's name"
    )
    egress: Literal["private-ranges-only", "all-traffic"] = Field(
        "private-ranges-only",
        description="traffic through the network; for weights, `all-traffic` needs Private Google Access there",
    )
    tags: tuple[str, ...] = Field((), description="network tags of the service, for firewall rules")


class PriceRow(Section):
    """The user's price of an item that the catalogue does not price."""

    item: str = Field(
        description="item of the missing row, e.g. `gpu nvidia-l4 no zonal redundancy`", examples=["vcpu"]
    )
    region: str = Field(description="region of the price", examples=["us-east4"])
    usd_per_unit: Number = Field(
        gt=0,
        description="USD per second of one unit (GPU, chip, machine, vCPU or GiB), of `requests` per million",
        examples=[0.0001867],
    )
    as_of: str = Field(description="month or day of the price, e.g. `2026-11`", examples=["2026-11"])
    source: str = Field(description="source of the price", examples=["our invoice"])


class Cost(Section):
    """Spending limits, and the user's own prices."""

    max_hourly_usd: Number | None = Field(
        None,
        gt=0,
        description="maximum USD per hour with all instances of all regions running; a plan above it is refused",
    )
    max_idle_hourly_usd: Number | None = Field(
        None,
        ge=0,
        description="maximum USD per hour without traffic (`min_instances`, an address); default 0 in `dev`, which an "
        "address may pass, no limit in `prod`",
    )
    max_lease_usd: Number | None = Field(
        None, gt=0, description="maximum USD for a stack's leases until they end; a plan above it is refused"
    )
    prices: tuple[PriceRow, ...] = Field((), description="own price rows (item, region, usd_per_unit, as_of, source)")


class Observability(Section):
    """Alerts and dashboard of a Cloud Run service, or of leases and their gateway, in Cloud Monitoring."""

    alerts: Switch = Field(
        default=False,
        description="make alerts: requests wait without an instance or for the KV cache, requests fail, many cold "
        "starts, idle instances; for leases: a lease is about to end, requests fail; with `metrics` more, see "
        "docs/observability.md",
    )
    dashboard: Switch = Field(
        default=False,
        description="make a dashboard: requests, latency, instances, starts, GPU; for leases of the gateway; with "
        "`metrics` vLLM's figures too",
    )
    metrics: Switch = Field(
        default=False,
        description="keep vLLM's figures over time: a collector beside each server writes them to Cloud Monitoring, at "
        "a price by sample",
    )
    uptime: Switch = Field(
        default=False,
        description="check every five minutes from outside that the service answers; needs `min_instances` above 0, "
        "as each check would start an instance; not for leases",
    )
    budget: Whole | None = Field(
        None,
        ge=1,
        le=1_000_000_000_000,
        description="budget of a month for everything with the stack's label, in whole units of `currency`; mails at "
        "50, 90 and 100 %, and where the forecast exceeds it; it stops nothing",
    )
    billing_account: str | None = Field(
        None,
        pattern=r"^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$",
        description="billing account of the budget",
        examples=["012345-6789AB-CDEF01"],
    )
    currency: str = Field("USD", pattern=r"^[A-Z]{3}$", description="currency of the billing account")
    email: str | None = Field(
        None,
        description="address that alerts and the budget mail to; without it alerts are shown in the console only",
        examples=["team@example.com"],
    )
    max_error_share: Number = Field(
        0.05, gt=0, lt=1, description="share of failed requests (5xx) over 5 minutes above which an alert opens"
    )
    max_cold_starts: Whole | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="starts of instances within 24 hours above which an alert opens; none without it; not for leases",
    )
    idle_hours: Whole = Field(
        24,
        ge=1,
        le=24,
        description="hours that `min_instances` may run without a request before an alert opens; not for leases",
    )
    # Between the bounds of vLLM's buckets: below the lowest and above the highest one no percentile tells a limit.
    max_ttft_seconds: Number | None = Field(
        None,
        ge=0.001,
        le=2560,
        description="time to the first token, measured in the server, that 95 % of requests shall stay below: else an "
        "alert opens; none without it; needs `metrics`",
        examples=[2],
    )
    max_tpot_seconds: Number | None = Field(
        None,
        ge=0.01,
        le=60,
        description="time for each further token that 95 % of requests shall stay below: else an alert opens; none "
        "without it; needs `metrics`",
        examples=[0.05],
    )


class ZonePreference(Section):
    """A zone for requests, and the time limit there."""

    zone: str = Field(description="zone of Google Cloud", examples=["us-east5-a"])
    patience: Duration | None = Field(
        None, description="time limit of a request there; default `lease.patience`", examples=["2h"]
    )


class LeaseHours(Section):
    """Hours in which machines are leased."""

    start: str = Field(
        description="times at which the leases are requested: minute, hour, day, month, weekday",
        examples=["0 8 * * 1-5"],
    )
    end: str = Field(description="times at which they are returned", examples=["0 18 * * 1-5"])
    time_zone: str = Field("UTC", description="time zone of these times", examples=["Europe/Berlin"])


class LeaseSettings(Section):
    """Terms of leases: of TPU slices and of machines with several GPUs."""

    zones: tuple[ZonePreference, ...] = Field(
        (),
        description="zones in order of preference (zone, patience); required for a lease",
        examples=["[{zone: us-east5-a}]"],
    )
    patience: Duration = Field(
        1800, description="time that a request waits in a zone's queue before the next zone is tried"
    )
    duration: Duration = Field(14_400, description="length of a lease, from the start of its machine: 10m to 7d")
    provisioning: Literal["flex-start", "spot", "on-demand"] = Field(
        "flex-start", description="provisioning model; flex-start waits for capacity and is the cheapest on v6e"
    )
    back_end: Literal["queued_resource", "flex_start_vm"] | None = Field(
        None,
        description="control plane, with its own quota; default queued_resource for TPU slices, else flex_start_vm",
    )
    renew: Switch = Field(default=False, description="whether `up` requests a new lease in place of an ended one")
    count: Whole = Field(1, ge=1, le=16, description="number of leases behind one gateway")
    hours: tuple[LeaseHours, ...] = Field(
        (),
        description="hours in which the machines are leased (start, end, time_zone), by Cloud Scheduler; default until "
        "the end of `duration`, once",
        examples=["[{start: 0 8 * * 1-5, end: 0 18 * * 1-5, time_zone: Europe/Berlin}]"],
    )
    compile_cache: Switch = Field(
        default=True, description="store compiled graphs in the bucket, so that the next lease starts faster"
    )
    provisioning_deadline: Duration = Field(1800, description="time limit from the grant of a machine until it runs")
    boot_deadline: Duration = Field(5400, description="time limit from the start of a machine until vLLM responds")


class Fallback(Section):
    """A GPU of Cloud Run that serves while no lease does."""

    accelerator: str | None = Field(
        None, description="accelerator of Cloud Run; without one there is no fallback", examples=["nvidia-l4"]
    )
    region: str | None = Field(
        None, description="region of the fallback; default the gateway's", examples=["europe-west4"]
    )
    model: str | None = Field(
        None,
        description="its checkpoint; default the lease's model",
        examples=["gemma-4-12b-it-qat-w4a16"],
    )
    vllm: dict[str, Any] = Field(
        {},
        description="its options of `vllm serve`, which it shares with no machine, without leading dashes",
        examples=["{max-model-len: 8192}"],
    )
    resources: Resources = Field(Resources(), description="CPU and memory of one instance", examples=["{memory: 16Gi}"])
    max_instances: Whole = Field(1, ge=1, le=1000, description="maximum of instances; there is none without traffic")
    accept_shorter_context: Switch = Field(
        default=False,
        description="whether its context may be shorter than the lease's: longer requests then fail while it serves",
    )


class NetworkSettings(Section):
    """The network of leased machines."""

    nat: Switch = Field(
        default=False, description="allow machines to reach the internet: for weights from the hub, packages at boot"
    )


class Smoke(Section):
    """Smoke check and short benchmark after each deploy."""

    deadline_seconds: Whole = Field(2400, ge=30, le=86_400, description="time limit of the check for a healthy service")
    requests: Whole | None = Field(None, ge=1, le=1000, description="requests of the benchmark; default three rounds")
    concurrency: Whole | None = Field(
        None, ge=1, le=1000, description="concurrent requests; default a full batch for each instance, at most 64"
    )
    # The chat template leaves no room for words in shorter prompts.
    prompt_tokens: Whole = Field(256, ge=32, description="tokens of each prompt")
    output_tokens: Whole = Field(64, ge=2, description="tokens of each response")
    min_draft_acceptance: Number | None = Field(
        None, gt=0, le=1, description="minimum share of accepted draft tokens, only with speculative decoding"
    )
    random_weights: Switch = Field(
        default=False, description="a test model with random weights: the share is reported and not checked"
    )
    impersonate: str | None = Field(
        None, description="service account to impersonate for identity tokens, where the caller cannot create its own"
    )
    inside: Switch = Field(
        default=False,
        description="whether the deployer is in a network of the project, and so reaches internal services",
    )


class Settings(Section):
    """All settings of a stack file, under the namespace `bezel`."""

    environment: Environment = Field(
        THROW_AWAY, description="any word; each but `dev` protects the service from deletion, as `prod` does"
    )
    deletion_protection: Literal["environment", "always", "never"] = Field(
        "environment",
        description="when deleting the service is refused: outside of `dev`, always, or never; to delete a protected "
        "one: `never`, `up`, then `down`",
    )
    model: str = Field(
        description="checkpoint of the catalogue or of catalog.toml; `bezel plan` also takes OWNER/NAME of a hub",
        examples=["gemma-4-12b-it-qat-w4a16"],
    )
    accelerator: str = Field(
        description="accelerator from the catalogue; TPU slices and machines with several GPUs are leased",
        examples=["nvidia-l4"],
    )
    region: str = Field(
        "",
        description="region of the service; for leases, of gateway, images and weights; required without `regions`",
        examples=["us-east4"],
    )
    regions: tuple[str, ...] = Field(
        (),
        description="regions of the service, in place of `region`; the first is deployed and checked first",
        examples=["[us-east4, europe-west4]"],
    )
    optional_regions: tuple[str, ...] = Field(
        (),
        description="those of `regions`, not the first, that are left out with a warning where a quota is too small",
        examples=["[europe-west4]"],
    )
    address: Address = Field(
        Address(),
        description="one address with a name of one's own, see docs/address.md",
        examples=["{domain: llm.acme.example}"],
    )
    service_name: str = Field(
        "",
        pattern=r"^(?:[a-z](?:[a-z0-9-]{0,47}[a-z0-9])?)?$",
        description="name of the Cloud Run service, for leases of the gateway; empty: `bezel-` and the stack's name",
        examples=["chat"],
    )
    vllm_version: str = Field(
        "0.32.0", description="vLLM release of the image; arguments are checked against its options"
    )
    image: Image = Field(
        Image(), description="container image, if not the release's own", examples=["{tag: nightly-2026-11-20}"]
    )
    weights: Weights = Field(Weights(), description="location of the model's files", examples=["{bucket: NAME}"])
    vllm: dict[str, Any] = Field(
        {},
        description="options of `vllm serve` without leading dashes, each with its value; null removes a default",
        examples=["{max-model-len: 32768}"],
    )
    adapters: tuple[Adapter, ...] = Field(
        (),
        description="LoRA adapters beside the model (name, source, path, rank), see docs/adapters.md",
        examples=["[{name: sql, source: acme/sql-lora, rank: 16}]"],
    )
    resources: Resources = Field(Resources(), description="CPU and memory of one instance", examples=["{memory: 16Gi}"])
    scaling: Scaling = Field(
        Scaling(), description="number of instances, and of requests for each", examples=["{max_instances: 1}"]
    )
    rollout: Literal["direct", "gated"] = Field(
        "direct", description="`gated` checks a new revision before it gets traffic; needs GPUs for two revisions"
    )
    restarted_at: str = Field(
        "",
        pattern=r"^[0-9A-Za-z:.+-]{0,40}$",
        description="time of the last `bezel restart`: another text makes a new revision of the service",
        examples=['"2026-11-24T12:00:00Z"'],
    )
    probe: ProbeSettings = Field(
        ProbeSettings(), description="startup probe of a service", examples=["{failure_threshold: 180}"]
    )
    access: Access = Field(Access(), description="who may call the service", examples=["{public: false}"])
    vpc: Vpc = Field(Vpc(), description="network of the service's outgoing requests", examples=["{network: default}"])
    variables: dict[str, str] = Field(
        {},
        description="plain environment variables of the container, no secrets",
        examples=["{VLLM_LOGGING_LEVEL: DEBUG}"],
    )
    secrets: dict[str, str] = Field(
        {}, description="environment variable -> name of a secret in Secret Manager", examples=["{HF_TOKEN: hf-token}"]
    )
    lease: LeaseSettings = Field(LeaseSettings(), description="terms of leases", examples=["{duration: 4h}"])
    fallback: Fallback = Field(
        Fallback(),
        description="Cloud Run GPU that serves while no lease does, see docs/leases.md",
        examples=["{accelerator: nvidia-l4}"],
    )
    network: NetworkSettings = Field(
        NetworkSettings(), description="network of leased machines", examples=["{nat: false}"]
    )
    cost: Cost = Field(Cost(), description="spending limits, and own prices", examples=["{max_hourly_usd: 1.5}"])
    smoke: Smoke = Field(
        Smoke(), description="smoke check and short benchmark after each deploy", examples=["{requests: 24}"]
    )
    observability: Observability = Field(
        Observability(),
        description="alerts, dashboard, figures over time and budget, see docs/observability.md",
        examples=["{alerts: true}"],
    )
    labels: dict[str, str] = Field(
        {}, description="labels of every resource that supports labels", examples=["{team: speech}"]
    )

    @property
    def protects_from_deletion(self) -> bool:
        """Whether deleting the serving resources is refused."""
        if self.deletion_protection == "environment":
            return self.environment != THROW_AWAY
        return self.deletion_protection == "always"


def is_computed(field: FieldInfo) -> bool:
    """Whether a rule computes the value of a setting that is not set; its description names the rule."""
    return field.default is None and "default " in (field.description or "")


def default_as_written(field: FieldInfo) -> object:
    """The default of a setting as a stack file writes it, e.g. `30m` for 1800 seconds."""
    as_text = next((data.func for data in field.metadata if isinstance(data, PlainSerializer)), None)
    if as_text is None or field.default is None:
        return field.default
    return cast("Callable[[object], object]", as_text)(field.default)
