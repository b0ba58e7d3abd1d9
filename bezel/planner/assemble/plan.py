"""Plans: everything about a stack that can be known without the cloud, as plain frozen values.

Owns the types that components, smoke and commands read: Plan for a Cloud Run service, LeasePlan for leased machines.
Leaves their construction to bezel.planner.assemble.build.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

from bezel.planner.address.address_notes import address_warnings, region_warnings
from bezel.planner.address.domain import CHALLENGE
from bezel.planner.address.regional_service import in_region
from bezel.planner.base.deployment import ServerPlan
from bezel.planner.base.money import Priced, figure
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from bezel.planner.cost.total_cost import TotalCost
from bezel.planner.cost.weights_transfer import BucketPlace, Transfer
from bezel.planner.fallback.settings_of_service import shared_name_warnings
from bezel.planner.rules.image_checks import is_own
from bezel.planner.rules.request_notes import concurrency_warnings, timeout_warnings
from bezel.planner.team.door_checks import shared_door_warnings
from bezel.planner.vllm.late_values import unchecked_packages
from bezel_catalog import accelerator
from bezel_catalog.quantities import GIB
from bezel_catalog.sizing.roofline import Estimate
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.address.failover import Failover
    from bezel.planner.base.deployment import ImagePlan, ServicePlan, SmokePlan, WeightsPlan
    from bezel.planner.base.hardware import BackEnd, LeasedHardware
    from bezel.planner.base.hours import Window
    from bezel.planner.base.settings import Settings
    from bezel.planner.cost.address_cost import AddressCost
    from bezel.planner.cost.lease_cost import LeaseTotal
    from bezel.planner.cost.service_cost import ServiceCost
    from bezel.planner.cost.token_cost import TokenCost
    from bezel.planner.rules.startup import LeaseStart, StartEstimate
    from bezel.planner.team.door_plan import DoorPlan
    from bezel.planner.team.metrics_plan import MetricsPlan
    from bezel_catalog.sizing.memory import MemoryFit
    from bezel_catalog.sizing.pooled_speed import PooledEstimate
    from bezel_catalog.sizing.speculation import Gain
    from bezel_catalog.sizing.tpu_memory import TpuFit

LEASES = "leases"
"""Name of the hours until leases without hours end, in `server_hours`."""


@dataclass(frozen=True, slots=True)
class RegionPlan:
    """A region of a service, and what it costs there.

    `optional` ones are left out, with a warning, where a quota is too small. `bucket` is that of the weights
    which its servers read, None where they read none.
    """

    region: str
    optional: bool
    bucket: str | None
    cost: ServiceCost


@dataclass(frozen=True, slots=True)
class AddressPlan:
    """The address of a stack.

    `zone` is the project's DNS zone for the records, "" where they are set elsewhere. `detection_seconds` is the time
    for which a dead region stays in use, None without failover (`bezel.planner.address.failover`).
    """

    domain: str
    zone: str
    failover: Failover
    detection_seconds: int | None
    cost: AddressCost

    @property
    def url(self) -> str:
        """The address for clients, and the audience of their identity tokens in every region."""
        return f"https://{self.domain}"

    @property
    def records(self) -> tuple[tuple[str, str], ...]:
        """Name and type of the DNS records that it needs; their values are known after the deploy."""
        return (f"{self.domain}.", "A"), (f"{CHALLENGE}{self.domain}.", "CNAME")

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output."""
        return {
            "url": self.url,
            "failover": self.failover,
            "detection_seconds": self.detection_seconds,
            "cost": self.cost.as_output(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _StackPlan:
    """What the plans of both kinds of stacks have in common.

    `weight_bytes` and `assistant_bytes` are those of the model. `gain` is None without speculative decoding. `origins`
    has the origin of each planned value: "stack file", "catalogue default" or "computed". `cost` is that of all
    machines, `fit` that of one. `unchecked` are sentences about relations of vLLM's options that no plan can judge.
    `metrics` is None where vLLM's figures are not kept over time, `door` where no caller is admitted by key.
    """

    stack: str
    project: str
    environment: str
    model: str
    weight_bytes: int
    assistant_bytes: int
    served_model: str
    settings: Settings
    smoke: SmokePlan
    fit: MemoryFit | TpuFit
    start: StartEstimate
    estimate: Estimate | PooledEstimate
    gain: Gain | None
    cost: ServiceCost | LeaseTotal
    token_cost: TokenCost
    address: AddressPlan | None
    metrics: MetricsPlan | None
    door: DoorPlan | None
    apis: tuple[str, ...]
    origins: Mapping[str, str]
    unchecked: tuple[str, ...]

    @property
    def server(self) -> ServicePlan | NodePlan:
        """The part that describes the server."""
        raise NotImplementedError

    @property
    def _door_images(self) -> tuple[ImagePlan, ...]:
        return () if self.door is None else (self.door.image,)

    @property
    def weights(self) -> WeightsPlan:
        """Location of the model's files."""
        return self.server.weights

    @property
    def bucket_models(self) -> Mapping[str, tuple[str, str]]:
        """Folder in the bucket -> id and hub id ("" where it is not published) of each model that servers load."""
        return {self.weights.path: (self.model, self.weights.source)} if self.weights.bucket else {}

    @property
    def secrets(self) -> Mapping[str, str]:
        """Variables whose values are secrets, with the secrets' ids."""
        return self.server.secrets

    @property
    def _service_name(self) -> str:
        """Name of the service that callers ask."""
        raise NotImplementedError

    @property
    def _readers(self) -> tuple[str, tuple[str, ...], int]:
        """Region in which the stack makes its bucket, regions of its servers, and how many of them start together."""
        raise NotImplementedError

    @property
    def _may_copy(self) -> bool:
        """Whether each region of the servers may have a copy of the weights in a bucket of its own."""
        return False

    def transfer(self, place: BucketPlace | None = None) -> Transfer | None:
        """What the starts of the servers read from their bucket; None where the model comes from no bucket.

        Args:
            place: Where the bucket is, as Cloud Storage says; by default where the stack makes it, else not known.
        """
        weights = self.weights
        if weights.bucket is None:
            return None
        made_in, regions, servers = self._readers
        if place is None and weights.create:
            place = BucketPlace(made_in)
        read = self.weight_bytes + (self.assistant_bytes if weights.drafts else 0)
        return Transfer(weights.bucket, place, regions, read / GIB, servers, self._may_copy)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be known before a deploy, and refuses none."""
        transfer = self.transfer()
        connector = self.server.values.get("kv-transfer-config")
        packages = unchecked_packages(connector, own_image=is_own(self.settings.image))
        texts = [
            *shared_name_warnings(self._service_name, self.stack),
            *shared_door_warnings(self._service_name, self.stack),
            *(*self._place_warnings, transfer.warning() if transfer else ""),
            *(*self._request_warnings, *packages, *self.unchecked),
        ]
        return tuple(filter(None, texts))

    @property
    def _request_warnings(self) -> tuple[str, ...]:
        """What is to be known of requests that wait, and of responses that are cut."""
        return self._timeout_warnings(self.settings.scaling.request_timeout_seconds)

    def _timeout_warnings(self, seconds: int) -> tuple[str, ...]:
        """What is to be known of responses that are cut; a model that pools has none that grow."""
        if not isinstance(self.estimate, Estimate):
            return ()
        return tuple(timeout_warnings(seconds, self.estimate, self.fit.max_model_len))

    @property
    def _place_warnings(self) -> tuple[str, ...]:
        """What is to be known of regions and address."""
        return self._address_warnings

    @property
    def _address_warnings(self) -> tuple[str, ...]:
        """What is to be known of the address, and of a door that calls it."""
        if self.address is None:
            return ()
        certificate = (
            f"The door of the keys calls {self.address.url}: it answers with 503 until the certificate there is issued."
        )
        return (*address_warnings(self.settings), *([certificate] if self.door else []))

    @property
    def server_hours(self) -> Mapping[str, Decimal]:
        """Hours in which servers run in all, by what they run: all instances a month, or the machines of a lease."""
        raise NotImplementedError

    @property
    def is_protected(self) -> bool:
        """Whether destroying the stack is refused."""
        return self.settings.protects_from_deletion

    @property
    def _total_output(self) -> dict[str, object]:
        """The sum of a stack of several parts; empty for one."""
        return {}

    def as_output(self) -> dict[str, object]:
        """Figures for a stack's output, each with its basis; an unknown price is "unknown"."""
        starts = [figure(self.cost.start(seconds), 4) for seconds in self.start.seconds]
        transfer = self.transfer()
        network = figure(Priced(Decimal(0)) if transfer is None else transfer.usd, 4)
        return {
            "fit": self.fit.as_output(),
            "weights": self.weights.as_output(),
            "start": self.start.as_output(),
            "estimate": self.estimate.as_output(),
            "cost": {
                **self.cost.as_output(),
                "usd_per_cold_start": starts,
                "usd_of_transfer_per_cold_start": network,
                **self.token_cost.as_output(),
                **self._total_output,
            },
            **({"address": self.address.as_output()} if self.address else {}),
            **({"door": self.door.as_output()} if self.door else {}),
            **({"metrics": self._metrics_output(self.metrics)} if self.metrics else {}),
            **({"speculation": self.gain.as_output()} if self.gain else {}),
            **({} if self.smoke.pooled_at is None else {"pooled_at": self.smoke.pooled_at}),
        }

    def _metrics_output(self, metrics: MetricsPlan) -> dict[str, object]:
        return {
            "interval_seconds": metrics.interval_seconds,
            "samples_per_server_hour": metrics.cost.highest,
            "samples_per_server_hour_as_recorded": metrics.cost.typical,
            "samples": {
                period: {
                    "millions_at_most": float(round(metrics.cost.millions(hours), 3)),
                    "usd_at_most": figure(metrics.cost.usd(hours), 2),
                }
                for period, hours in self.server_hours.items()
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(_StackPlan):
    """A valid stack of a Cloud Run service, in one region or several.

    `service`, `cost` and `token_cost` are those of the first of `regions`, which is deployed and checked first.
    `left_out` are optional regions in which it cannot run, each with the reason (`bezel.planner.assemble.left_out`).
    """

    service: ServicePlan
    regions: tuple[RegionPlan, ...]
    left_out: Mapping[str, str]
    fit: MemoryFit
    cost: ServiceCost

    @property
    def images(self) -> tuple[ImagePlan, ...]:
        """The images of all parts."""
        return (self.service.image, *self._door_images)

    @property
    def services(self) -> tuple[ServicePlan, ...]:
        """The service of each region, all of one name."""
        return tuple(in_region(self.service, each.region, each.bucket) for each in self.regions)

    @property
    def total(self) -> TotalCost:
        """The cost of all regions and of the address."""
        address = self.address.cost if self.address else None
        door = self.door.cost if self.door else None
        return TotalCost({each.region: each.cost for each in self.regions}, address, door)

    @property
    def server_hours(self) -> Mapping[str, Decimal]:
        """Hours of a month in which instances run, in all regions: those without traffic, and all."""
        costs = [each.cost for each in self.regions]
        least = sum(
            (Decimal(each.min_instances) if each.average_min is None else each.average_min for each in costs),
            Decimal(0),
        )
        most = sum(each.max_instances for each in costs)
        return {"month without traffic": least * HOURS_PER_MONTH, "month at most": Decimal(most * HOURS_PER_MONTH)}

    @property
    def _total_output(self) -> dict[str, object]:
        return {} if self.total.is_one_service else {"total": self.total.as_output()}

    @property
    def server(self) -> ServicePlan:
        """The part that describes the server."""
        return self.service

    @property
    def _service_name(self) -> str:
        return self.service.name

    @property
    def _readers(self) -> tuple[str, tuple[str, ...], int]:
        regions = tuple(each.region for each in self.regions)
        # With a copy in each region, each is as near to its own as the first.
        return regions[0], regions[:1] if self.settings.weights.regional_buckets else regions, 1

    @property
    def _may_copy(self) -> bool:
        return len(self.regions) > 1

    @property
    def is_invited(self) -> bool:
        """Whether the region offers the accelerator to projects only that Google admitted."""
        return self.service.region in accelerator(self.service.accelerator).regions_on_invitation

    @property
    def _request_warnings(self) -> tuple[str, ...]:
        service = self.service
        waiting = concurrency_warnings(
            service.request_concurrency,
            self.fit.max_num_seqs,
            max_instances=service.max_instances,
            queued=integer(service.values, "max-num-queued-reqs"),
            timeout_seconds=service.timeout_seconds,
            answer="first token" if self.smoke.pooled_at is None else "answer",
        )
        return (*waiting, *self._timeout_warnings(service.timeout_seconds))

    @property
    def _place_warnings(self) -> tuple[str, ...]:
        gpu, regions = accelerator(self.service.accelerator), tuple(each.region for each in self.regions)
        invited = (
            f"{region} offers {gpu.id} on invitation only: Google has to admit the project, else the deploy fails. "
            f"Open to everyone: {', '.join(gpu.regions)} ({gpu.as_of})."
            for region in regions
            if region in gpu.regions_on_invitation
        )
        missing = (
            f"{region} is left out: {reason} The stack runs in {', '.join(regions)} only."
            for region, reason in self.left_out.items()
        )
        notes = region_warnings(regions, self.settings, self.weights)
        return (*invited, *missing, *notes, *self._address_warnings)


@dataclass(frozen=True, slots=True)
class ZonePlan:
    """A zone for requests, and the seconds to wait in its queue."""

    zone: str
    patience_seconds: int

    @property
    def region(self) -> str:
        """The zone's region."""
        return self.zone.rpartition("-")[0]


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """Terms of the leases; durations in seconds.

    `names` has one name for each lease: the id of its request, its node and its machine, the same in every zone.
    `hours` are empty where only a deploy requests leases.
    """

    names: tuple[str, ...]
    hours: tuple[Window, ...]
    hardware: LeasedHardware
    back_end: BackEnd
    provisioning: Literal["flex-start", "spot", "on-demand"]
    zones: tuple[ZonePlan, ...]
    run_seconds: int
    renew: bool
    provisioning_deadline_seconds: int
    boot_deadline_seconds: int


@dataclass(frozen=True, slots=True)
class NodePlan(ServerPlan):
    """The software of each machine.

    `compile_cache` is a `gs://` address in the bucket of the weights, "" without one. `packages` are installed at boot,
    "" where the image needs none.
    """

    image: ImagePlan
    environment: Mapping[str, str]
    secrets: Mapping[str, str]
    port: int
    compile_cache: str
    packages: str


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """The machines' own network, with an address range in each region."""

    name: str
    regions: tuple[str, ...]
    nat: bool


@dataclass(frozen=True, slots=True)
class GatewayPlan:
    """The gateway in front of the machines, and its callers."""

    name: str
    region: str
    image: ImagePlan
    max_instances: int
    timeout_seconds: int
    invokers: tuple[str, ...]
    ingress: str
    public: bool
    deletion_protection: bool
    service_account_id: str


@dataclass(frozen=True, slots=True)
class FallbackPlan:
    """The Cloud Run service that serves while no lease does, and what callers notice of it.

    `plan` is that of the service by itself, with names beside the lease's. `notes` are sentences without their full
    stop, each about one difference.
    """

    plan: Plan
    notes: tuple[str, ...]

    @property
    def service(self) -> ServicePlan:
        """The service; only the gateway calls it."""
        return self.plan.service

    @property
    def fit(self) -> MemoryFit:
        """Its memory."""
        return self.plan.fit

    @property
    def cost(self) -> ServiceCost:
        """Its cost while instances run."""
        return self.plan.cost

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output."""
        return {
            "service": self.service.name,
            "region": self.service.region,
            "model": self.plan.model,
            "max_model_len": self.fit.max_model_len,
            "notes": list(self.notes),
            **self.plan.token_cost.as_output(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasePlan(_StackPlan):
    """A valid stack of leased machines."""

    terms: LeaseTerms
    node: NodePlan
    network: NetworkPlan
    gateway: GatewayPlan
    start: LeaseStart
    cost: LeaseTotal
    labels: Mapping[str, str]
    service_account_id: str
    image_repository_id: str
    fallback: FallbackPlan | None = None

    def as_output(self) -> dict[str, object]:
        """As of every stack, with the fallback."""
        output = super(LeasePlan, self).as_output()
        return output if self.fallback is None else {**output, "fallback": self.fallback.as_output()}

    @property
    def server_hours(self) -> Mapping[str, Decimal]:
        """Hours of all machines in the hours of a month, without hours until their leases end."""
        cost = self.cost
        if cost.share is not None:
            return {"month of leases": cost.count * cost.share * HOURS_PER_MONTH}
        return {LEASES: Decimal(cost.count * cost.run_seconds) / 3600}

    @property
    def warnings(self) -> tuple[str, ...]:
        """As of every stack, with what callers notice of the fallback."""
        notes = () if self.fallback is None else self.fallback.notes
        return (*super(LeasePlan, self).warnings, *(f"While the fallback serves, {note}." for note in notes))

    @property
    def _service_name(self) -> str:
        return self.gateway.name

    @property
    def _readers(self) -> tuple[str, tuple[str, ...], int]:
        regions = dict.fromkeys(zone.region for zone in self.terms.zones)
        return self.gateway.region, tuple(regions), len(self.terms.names)

    @property
    def bucket_models(self) -> Mapping[str, tuple[str, str]]:
        """As of every stack, with the fallback's."""
        models = super(LeasePlan, self).bucket_models
        return models if self.fallback is None else {**models, **self.fallback.plan.bucket_models}

    @property
    def images(self) -> tuple[ImagePlan, ...]:
        """The images of all parts."""
        fallback = () if self.fallback is None else (self.fallback.service.image,)
        return (self.node.image, self.gateway.image, *fallback, *self._door_images)

    @property
    def server(self) -> NodePlan:
        """The part that describes the server."""
        return self.node


AnyPlan = Plan | LeasePlan
