"""Types of the services' arguments: the settings of a stack file.

Made by `python -m tools.docs.planner.service_settings --write` from bezel/planner/base/settings.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from pulumi import Input


class Address(TypedDict, total=False):
    """One address with a name of one's own, for the services of all regions or for the gateway."""

    domain: str | None
    """Name of the address: a load balancer with a certificate leads it to the services."""
    zone: str | None
    """Name of the project's Cloud DNS zone that holds the domain; without it the plan lists the records to set
    elsewhere."""


class Image(TypedDict, total=False):
    """The server's container image, where it is not the release's own."""

    registry: str | None
    """Host of a public registry; default docker.io."""
    repository: str | None
    """Path in the registry; default vllm/vllm-openai, on TPUs vllm/vllm-tpu."""
    tag: str | None
    """Tag of the image; default `v` followed by `vllm_version`."""
    digest: str | None
    """`sha256:…`: the tag is not looked up; required for a tag that moves, such as `nightly`."""
    options: str | None
    """Recorded options of its vLLM, see `bezel catalog record-release`; default the release in the tag."""


class Weights(TypedDict, total=False):
    """Location of the model's files."""

    bucket: Input[str] | None
    """Bucket with the weights; default `<project>-models`."""
    path: str | None
    """Folder inside the bucket; default the checkpoint's own name."""
    create: bool
    """Whether the stack creates the bucket; otherwise it must exist."""
    loading: Literal["fuse", "fuse-prefetch", "runai-streamer", "hub"] | None
    """How weights are loaded onto the GPU, see docs/weights.md; default fuse-prefetch where the memory suffices, else
    fuse."""
    regional_buckets: bool
    """Whether each of several regions reads a copy of its own, in `<bucket>-<region>`; otherwise all read the one
    bucket."""


class Adapter(TypedDict, total=False):
    """A LoRA adapter that the server loads at its start, and answers for by its name."""

    name: Required[str]
    """Name that requests ask for; letters, digits, `.`, `_` and `-`."""
    source: str | None
    """Adapter on the Hugging Face hub, `OWNER/NAME[@REVISION]`: `bezel weights copy` copies it into the bucket; with
    `weights.loading: hub` the server downloads it."""
    path: str | None
    """Folder inside the bucket; default `adapters/` and the adapter's name."""
    rank: int
    """Largest rank in its adapter_config.json (`r`, `rank_pattern`), for which memory is reserved."""


class Resources(TypedDict, total=False):
    """CPU and memory of one instance, beside its accelerator."""

    cpu: int | None
    """vCPUs; default the accelerator's minimum."""
    memory: str | None
    """Memory of the host, e.g. `16Gi`; default the accelerator's minimum."""
    cpu_boost: bool
    """More vCPUs while an instance starts, at their price (4 and 6 become 8)."""


class ScheduledScaling(TypedDict, total=False):
    """A minimum of instances that is set at certain times."""

    cron: Required[str]
    """Times at which it is set: minute, hour, day, month, weekday."""
    time_zone: str
    """Time zone of these times."""
    min_instances: Required[int]
    """Instances kept running from then on."""


class Scaling(TypedDict, total=False):
    """Number of instances, and of requests for each."""

    min_instances: int
    """Instances kept running without traffic."""
    max_instances: int
    """Maximum of instances; each needs GPU quota."""
    request_concurrency: int | None
    """Concurrent requests per instance; default twice max-num-seqs, at most 1000."""
    request_timeout_seconds: int
    """Time limit of a request with its whole response, after which Cloud Run ends it (504); for leases, of the
    gateway."""
    zonal_redundancy: bool
    """Reserve GPUs in another zone: at a higher price, and from another quota, which is 0 at first."""
    schedule: Sequence[ScheduledScaling]
    """Times at which the minimum changes (cron, time_zone, min_instances), without a new revision."""


class ProbeSettings(TypedDict, total=False):
    """The startup probe of a Cloud Run service."""

    kind: Literal["http", "tcp"]
    """`http`: /health answers; `tcp`: the port is open."""
    initial_delay_seconds: int
    """Wait before the first probe, at most 240."""
    period_seconds: int
    """Time between probes, at most 240."""
    timeout_seconds: int
    """Time limit of one probe, at most the period."""
    failure_threshold: int
    """Failed probes after which the start fails; times the period at most 1800 s."""


class Access(TypedDict, total=False):
    """Who may call the service."""

    invokers: Sequence[str]
    """Members with roles/run.invoker, e.g. `serviceAccount:caller@my-project.iam.gserviceaccount.com`."""
    public: bool
    """Allow anyone on the internet to call it, without a token."""
    ingress: Literal["all", "internal", "internal-and-cloud-load-balancing"]
    """Networks that may send requests; every request needs an identity too."""
    keys: bool
    """Make a door that admits callers by key, for clients that can only send one, see docs/keys.md."""
    accepted_risks: Sequence[str]
    """Names of vLLM variables and options that open the server to its callers or let it run foreign code, and are
    accepted."""


class Vpc(TypedDict, total=False):
    """Network of a Cloud Run service's outgoing requests."""

    network: Input[str] | None
    """VPC network: its name or `projects/P/global/networks/N`."""
    subnetwork: Input[str] | None
    """Subnetwork in the region, /26 or larger; default the one with the network's name."""
    egress: Literal["private-ranges-only", "all-traffic"]
    """Traffic through the network; for weights, `all-traffic` needs Private Google Access there."""
    tags: Sequence[str]
    """Network tags of the service, for firewall rules."""


class ZonePreference(TypedDict, total=False):
    """A zone for requests, and the time limit there."""

    zone: Required[str]
    """Zone of Google Cloud."""
    patience: str | None
    """Time limit of a request there; default `lease.patience`."""


class LeaseHours(TypedDict, total=False):
    """Hours in which machines are leased."""

    start: Required[str]
    """Times at which the leases are requested: minute, hour, day, month, weekday."""
    end: Required[str]
    """Times at which they are returned."""
    time_zone: str
    """Time zone of these times."""


class LeaseSettings(TypedDict, total=False):
    """Terms of leases: of TPU slices and of machines with several GPUs."""

    zones: Sequence[ZonePreference]
    """Zones in order of preference (zone, patience); required for a lease."""
    patience: str
    """Time that a request waits in a zone's queue before the next zone is tried."""
    duration: str
    """Length of a lease, from the start of its machine: 10m to 7d."""
    provisioning: Literal["flex-start", "spot", "on-demand"]
    """Provisioning model; flex-start waits for capacity and is the cheapest on v6e."""
    back_end: Literal["queued_resource", "flex_start_vm"] | None
    """Control plane, with its own quota; default queued_resource for TPU slices, else flex_start_vm."""
    renew: bool
    """Whether `up` requests a new lease in place of an ended one."""
    count: int
    """Number of leases behind one gateway."""
    hours: Sequence[LeaseHours]
    """Hours in which the machines are leased (start, end, time_zone), by Cloud Scheduler; default until the end of
    `duration`, once."""
    compile_cache: bool
    """Store compiled graphs in the bucket, so that the next lease starts faster."""
    provisioning_deadline: str
    """Time limit from the grant of a machine until it runs."""
    boot_deadline: str
    """Time limit from the start of a machine until vLLM responds."""


class Fallback(TypedDict, total=False):
    """A GPU of Cloud Run that serves while no lease does."""

    accelerator: str | None
    """Accelerator of Cloud Run; without one there is no fallback."""
    region: str | None
    """Region of the fallback; default the gateway's."""
    model: str | None
    """Its checkpoint; default the lease's model."""
    vllm: Mapping[str, Any]
    """Its options of `vllm serve`, which it shares with no machine, without leading dashes."""
    resources: Resources
    """CPU and memory of one instance."""
    max_instances: int
    """Maximum of instances; there is none without traffic."""
    accept_shorter_context: bool
    """Whether its context may be shorter than the lease's: longer requests then fail while it serves."""


class NetworkSettings(TypedDict, total=False):
    """The network of leased machines."""

    nat: bool
    """Allow machines to reach the internet: for weights from the hub, packages at boot."""


class PriceRow(TypedDict, total=False):
    """The user's price of an item that the catalogue does not price."""

    item: Required[str]
    """Item of the missing row, e.g. `gpu nvidia-l4 no zonal redundancy`."""
    region: Required[str]
    """Region of the price."""
    usd_per_unit: Required[float]
    """USD per second of one unit (GPU, chip, machine, vCPU or GiB), of `requests` per million."""
    as_of: Required[str]
    """Month or day of the price, e.g. `2026-11`."""
    source: Required[str]
    """Source of the price."""


class Cost(TypedDict, total=False):
    """Spending limits, and the user's own prices."""

    max_hourly_usd: float | None
    """Maximum USD per hour with all instances of all regions running; a plan above it is refused."""
    max_idle_hourly_usd: float | None
    """Maximum USD per hour without traffic (`min_instances`, an address); default 0 in `dev`, which an address may
    pass, no limit in `prod`."""
    max_lease_usd: float | None
    """Maximum USD for a stack's leases until they end; a plan above it is refused."""
    prices: Sequence[PriceRow]
    """Own price rows (item, region, usd_per_unit, as_of, source)."""


class Smoke(TypedDict, total=False):
    """Smoke check and short benchmark after each deploy."""

    deadline_seconds: int
    """Time limit of the check for a healthy service."""
    requests: int | None
    """Requests of the benchmark; default three rounds."""
    concurrency: int | None
    """Concurrent requests; default a full batch for each instance, at most 64."""
    prompt_tokens: int
    """Tokens of each prompt."""
    output_tokens: int
    """Tokens of each response."""
    min_draft_acceptance: float | None
    """Minimum share of accepted draft tokens, only with speculative decoding."""
    random_weights: bool
    """A test model with random weights: the share is reported and not checked."""
    impersonate: str | None
    """Service account to impersonate for identity tokens, where the caller cannot create its own."""
    inside: bool
    """Whether the deployer is in a network of the project, and so reaches internal services."""


class Observability(TypedDict, total=False):
    """Alerts and dashboard of a Cloud Run service, or of leases and their gateway, in Cloud Monitoring."""

    alerts: bool
    """Make alerts: requests wait without an instance or for the KV cache, requests fail, many cold starts, idle
    instances; for leases: a lease is about to end, requests fail; with `metrics` more, see docs/observability.md."""
    dashboard: bool
    """Make a dashboard: requests, latency, instances, starts, GPU; for leases of the gateway; with `metrics` vLLM's
    figures too."""
    metrics: bool
    """Keep vLLM's figures over time: a collector beside each server writes them to Cloud Monitoring, at a price by
    sample."""
    uptime: bool
    """Check every five minutes from outside that the service answers; needs `min_instances` above 0, as each check
    would start an instance; not for leases."""
    budget: int | None
    """Budget of a month for everything with the stack's label, in whole units of `currency`; mails at 50, 90 and 100 %,
    and where the forecast exceeds it; it stops nothing."""
    billing_account: str | None
    """Billing account of the budget."""
    currency: str
    """Currency of the billing account."""
    email: str | None
    """Address that alerts and the budget mail to; without it alerts are shown in the console only."""
    max_error_share: float
    """Share of failed requests (5xx) over 5 minutes above which an alert opens."""
    max_cold_starts: int | None
    """Starts of instances within 24 hours above which an alert opens; none without it; not for leases."""
    idle_hours: int
    """Hours that `min_instances` may run without a request before an alert opens; not for leases."""
    max_ttft_seconds: float | None
    """Time to the first token, measured in the server, that 95 % of requests shall stay below: else an alert opens;
    none without it; needs `metrics`."""
    max_tpot_seconds: float | None
    """Time for each further token that 95 % of requests shall stay below: else an alert opens; none without it; needs
    `metrics`."""


class ServiceSettings(TypedDict, total=False):
    """Settings of `VllmService`."""

    environment: str
    """Any word; each but `dev` protects the service from deletion, as `prod` does."""
    deletion_protection: Literal["environment", "always", "never"]
    """When deleting the service is refused: outside of `dev`, always, or never; to delete a protected one: `never`,
    `up`, then `down`."""
    model: Required[str]
    """Checkpoint of the catalogue or of catalog.toml; `bezel plan` also takes OWNER/NAME of a hub."""
    accelerator: Required[str]
    """Accelerator from the catalogue; TPU slices and machines with several GPUs are leased."""
    region: str
    """Region of the service; for leases, of gateway, images and weights; required without `regions`."""
    regions: Sequence[str]
    """Regions of the service, in place of `region`; the first is deployed and checked first."""
    optional_regions: Sequence[str]
    """Those of `regions`, not the first, that are left out with a warning where a quota is too small."""
    address: Address
    """One address with a name of one's own, see docs/address.md."""
    service_name: str
    """Name of the Cloud Run service, for leases of the gateway; empty: `bezel-` and the stack's name."""
    vllm_version: str
    """vLLM release of the image; arguments are checked against its options."""
    image: Image
    """Container image, if not the release's own."""
    weights: Weights
    """Location of the model's files."""
    vllm: Mapping[str, Any]
    """Options of `vllm serve` without leading dashes, each with its value; null removes a default."""
    adapters: Sequence[Adapter]
    """LoRA adapters beside the model (name, source, path, rank), see docs/adapters.md."""
    resources: Resources
    """CPU and memory of one instance."""
    scaling: Scaling
    """Number of instances, and of requests for each."""
    rollout: Literal["direct", "gated"]
    """`gated` checks a new revision before it gets traffic; needs GPUs for two revisions."""
    restarted_at: str
    """Time of the last `bezel restart`: another text makes a new revision of the service."""
    probe: ProbeSettings
    """Startup probe of a service."""
    access: Access
    """Who may call the service."""
    vpc: Vpc
    """Network of the service's outgoing requests."""
    variables: Mapping[str, str]
    """Plain environment variables of the container, no secrets."""
    secrets: Mapping[str, str]
    """Environment variable -> name of a secret in Secret Manager."""
    fallback: Fallback
    """Cloud Run GPU that serves while no lease does, see docs/leases.md."""
    cost: Cost
    """Spending limits, and own prices."""
    smoke: Smoke
    """Smoke check and short benchmark after each deploy."""
    observability: Observability
    """Alerts, dashboard, figures over time and budget, see docs/observability.md."""
    labels: Mapping[str, str]
    """Labels of every resource that supports labels."""


class LeasedServiceSettings(ServiceSettings, total=False):
    """Settings of `LeasedVllmService`."""

    lease: LeaseSettings
    """Terms of leases."""
    network: NetworkSettings
    """Network of leased machines."""
