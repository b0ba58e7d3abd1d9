"""LeasePlan: everything about a stack of leased machines that can be known without the cloud, as frozen values.

Owns the types that components, smoke and commands read. Leaves their construction to
bezel.planner.assemble.lease_build, and the plan of a Cloud Run service to bezel.planner.assemble.plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.base.deployment import ImagePlan, Ingress, SmokePlan, WeightsPlan
    from bezel.planner.base.hardware import BackEnd, Leased
    from bezel.planner.base.settings import Settings
    from bezel.planner.cost.lease_total import LeaseTotal
    from bezel.planner.cost.token_cost import TokenCost
    from bezel.planner.rules.lease_startup import LeaseStart
    from bezel.planner.sizing.memory import MemoryFit
    from bezel.planner.sizing.roofline import Estimate
    from bezel.planner.sizing.speculation import Gain
    from bezel.planner.sizing.tpu_memory import TpuFit


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
    """How machines are bought; durations in seconds.

    `names` has one name a lease: the id of its request, its node and its machine, the same in every zone.
    """

    names: tuple[str, ...]
    hardware: Leased
    back_end: BackEnd
    provisioning: Literal["flex-start", "spot", "on-demand"]
    zones: tuple[ZonePlan, ...]
    run_seconds: int
    renew: bool
    provisioning_deadline_seconds: int
    boot_deadline_seconds: int


@dataclass(frozen=True, slots=True)
class NodePlan:
    """The software of each machine.

    `arguments` is what follows `vllm serve`: the model's folder on the machine or its hub id, then flags.
    `compile_cache` is a `gs://` address in the bucket of the weights, "" without one. `packages` are installed at boot,
    "" where the image needs none.
    """

    image: ImagePlan
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    secrets: Mapping[str, str]
    port: int
    weights: WeightsPlan
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
    invokers: tuple[str, ...]
    ingress: Ingress
    public: bool
    deletion_protection: bool
    service_account_id: str


@dataclass(frozen=True, slots=True)
class LeasePlan:
    """A valid stack of leased machines. As `Plan`, with `fit` of one machine and `cost` of all."""

    stack: str
    project: str
    environment: Literal["dev", "prod"]
    model: str
    served_model: str
    settings: Settings
    terms: LeaseTerms
    node: NodePlan
    network: NetworkPlan
    gateway: GatewayPlan
    smoke: SmokePlan
    fit: TpuFit | MemoryFit
    start: LeaseStart
    estimate: Estimate
    gain: Gain | None
    cost: LeaseTotal
    token_cost: TokenCost
    apis: tuple[str, ...]
    origins: Mapping[str, str]
    labels: Mapping[str, str]
    service_account_id: str
    image_repository_id: str

    @property
    def weights(self) -> WeightsPlan:
        """Location of the model's files."""
        return self.node.weights

    @property
    def secrets(self) -> Mapping[str, str]:
        """Variables whose values are secrets, with the secrets' ids."""
        return self.node.secrets

    @property
    def protected(self) -> bool:
        """Whether destroying the stack is refused."""
        return self.gateway.deletion_protection
