"""Cost of a list of resources, e.g. of a stack's state or of its planned resources: per hour, per month, idle.

Accelerators and load balancers cost; data through a load balancer has a price a GiB beside the sums.

Owns what counts once: a component is no resource of the cloud, and the request for a lease and the wait for it are one
machine. An unknown part makes the sum unknown, and is named. Leaves the limits to `policies`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

from bezel.planner.base.money import Amount, Priced, Unpriced, exact, times, total
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from bezel.resource_cost.hardware import SERVICE, Hardware, hardware_of
from bezel.resource_cost.inputs import UNKNOWN, InputError, Inputs
from bezel.resource_cost.prices.gpu_service import GpuService
from bezel.resource_cost.prices.leases import Lease
from bezel.resource_cost.prices.load_balancing import LoadBalancers, endpoint_regions, is_part, load_balancers
from bezel.resource_cost.prices.samples import samples_monthly
from bezel.resource_cost.prices.scheduled_minimum import BeyondDeclaration, ScheduledMinimum
from bezel_base.errors import Problem

# Values that a preview cannot know, as the engine writes them for each kind (sdk/go/common/resource/plugin).
UNKNOWN_MARKS = frozenset(
    {
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
# Marks a value that is not plain (sdk/go/common/resource/sig in Pulumi's sources).
_SIGNATURE, _SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
_ENGINES_OWN = "__"
_ZERO = Priced(Decimal(0))


class AnyResource(Protocol):
    """A resource of a program or of a state."""

    @property
    def name(self) -> str:
        """Its logical name."""

    @property
    def type(self) -> str:
        """Token of its type."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Its inputs, plain or as the engine writes them."""

    @property
    def custom(self) -> bool:
        """False for a component, which is nothing in the cloud."""


class StateResource(NamedTuple):
    """A resource of a state."""

    name: str
    type: str
    inputs: Mapping[str, Any]
    custom: bool = True


@dataclass(frozen=True, slots=True)
class StackCost:
    """Cost of all accelerators and load balancers of a stack.

    Attributes:
        hourly: with everything running.
        monthly: at most: all instances for 730 hours, a lease in its hours of a month, any other until its end.
        idle_hourly: without traffic: the minimum of instances, and all leased machines.
        missing: what is unknown: price rows that the catalogue does not hold, and inputs.
        count: number of services and leases with accelerators, forwarding rules and unused addresses.
        gib: a GiB through a load balancer in one direction, which is in no sum; None without a load balancer.
        regions: region -> its part of `hourly`: services with accelerators there.
        left_out: number of services without an accelerator beside what has one, which are in no sum: gateways, doors.
        samples: of collectors in a month at most, with the reads of their configuration; in no sum; None without one.
    """

    hourly: Amount = _ZERO
    monthly: Amount = _ZERO
    idle_hourly: Amount = _ZERO
    missing: tuple[str, ...] = ()
    count: int = 0
    gib: Amount | None = None
    regions: Mapping[str, Amount] = field(default_factory=dict)
    left_out: int = 0
    samples: Amount | None = None

    def as_json(self) -> dict[str, object]:
        """Amounts as decimal strings, None where unknown; what is beside the sums where there is any."""
        data: dict[str, object] = {} if self.gib is None else {"gib_usd": _text(self.gib)}
        if self.regions:
            data["regions_hourly_usd"] = {region: _text(amount) for region, amount in self.regions.items()}
        if self.samples is not None:
            data["samples_monthly_usd"] = _text(self.samples)
        if self.left_out:
            data["services_left_out"] = self.left_out
        return {
            "hourly_usd": _text(self.hourly),
            "monthly_usd": _text(self.monthly),
            "idle_hourly_usd": _text(self.idle_hourly),
            "missing": list(self.missing),
            **data,
        }


class PaidLeases:
    """Leases that were counted: two resources with one lease, its request and its wait, concern the same machine."""

    def __init__(self) -> None:
        self._counted: set[tuple[str, Amount, int | None]] = set()

    def already(self, hardware: Hardware) -> bool:
        """Whether the hardware is a lease that was asked about before."""
        if not isinstance(hardware, Lease) or hardware.name is None:
            return False
        lease = (hardware.name, hardware.hourly, hardware.run_seconds)
        if lease in self._counted:
            return True
        self._counted.add(lease)
        return False


def stack_cost(resources: Iterable[AnyResource]) -> StackCost:
    """The cost of resources together; what is neither an accelerator nor a load balancer costs nothing here."""
    paid = PaidLeases()
    hourly: list[Amount] = []
    monthly: list[Amount] = []
    idle: list[Amount] = []
    missing: list[str] = []
    regions: dict[str, list[Amount]] = {}
    count = left_out = 0
    servers: list[GpuService] = []
    pairs = [(resource, Inputs(plain(resource.inputs))) for resource in resources if resource.custom]
    services = [inputs for resource, inputs in pairs if resource.type == SERVICE]
    for resource, inputs in pairs:
        try:
            cost = cost_in_stack(resource.type, inputs, services)
            left_out += cost is None and resource.type == SERVICE
            if cost is None or (not isinstance(cost, BeyondDeclaration) and paid.already(cost)):
                continue
            amounts = cost.hourly, monthly_of(cost), idle_of(cost)
            servers += [cost] if isinstance(cost, GpuService) else []
        except InputError as error:
            amounts = (Unpriced(*(_input(resource.name, problem) for problem in error.problems)),) * 3
        count += 1
        if resource.type == SERVICE:
            regions.setdefault(_region(inputs), []).append(amounts[0])
        for amount, kind in zip(amounts, (hourly, monthly, idle), strict=True):
            kind.append(amount)
        missing += [reason for amount in amounts if isinstance(amount, Unpriced) for reason in amount.reasons]
    left_out = left_out if count else 0
    balancers = _balancers([(resource.type, inputs) for resource, inputs in pairs])
    if balancers is not None:
        count += balancers.count
        for amount, kind in ((balancers.hourly, hourly), (balancers.monthly, monthly), (balancers.hourly, idle)):
            kind.append(amount)
        missing += balancers.hourly.reasons if isinstance(balancers.hourly, Unpriced) else ()
    gib = balancers.gib if balancers is not None and balancers.rules else None
    return StackCost(
        total(hourly),
        total(monthly),
        total(idle),
        tuple(dict.fromkeys(missing)),
        count,
        gib,
        {region: total(amounts) for region, amounts in regions.items()},
        left_out,
        samples_monthly(servers),
    )


def _region(inputs: Inputs) -> str:
    """Region of a service; of one that is known after the deploy only, in words."""
    location = "" if inputs.is_unknown("location") else inputs.get("location")
    return str(location or "a region that is not known yet")


def _balancers(pairs: list[tuple[str, Inputs]]) -> LoadBalancers | None:
    """The load balancers of a list; unpriced where an input of one cannot be read."""
    parts = [(token, inputs) for token, inputs in pairs if is_part(token)]
    try:
        return load_balancers(parts, endpoint_regions(pairs))
    except InputError as error:
        unknown = Unpriced(*(_input("a load balancer", problem) for problem in error.problems))
        return LoadBalancers(len(parts), len(parts), unknown, unknown)


def cost_in_stack(token: str, inputs: Inputs, services: Iterable[Inputs]) -> Hardware | BeyondDeclaration | None:
    """What costs money of a resource in its stack; None where it adds nothing to the other resources.

    Args:
        token: the resource's type.
        inputs: of the resource.
        services: inputs of all Cloud Run services of the stack, whose minimum a job may set.

    Raises:
        InputError: an input that the cost depends on cannot be read.
    """
    hardware = hardware_of(token, inputs)
    return hardware.beyond(services) if isinstance(hardware, ScheduledMinimum) else hardware


def monthly_of(hardware: Hardware | BeyondDeclaration) -> Amount:
    """Cost of a month, or of a lease that ends earlier: without hours a lease is requested again only on request."""
    if isinstance(hardware, BeyondDeclaration):
        return hardware.monthly
    hours = Decimal(HOURS_PER_MONTH)
    if isinstance(hardware, Lease) and hardware.monthly_hours is not None:
        hours = min(hours, hardware.monthly_hours)
    elif hardware.run_seconds is not None:
        hours = min(hours, Decimal(hardware.run_seconds) / 3600)
    return times(hardware.hourly, hours)


def idle_of(hardware: Hardware | BeyondDeclaration) -> Amount:
    """Cost per hour without traffic; a leased machine runs with or without it."""
    return hardware.idle_hourly if isinstance(hardware, GpuService | BeyondDeclaration) else hardware.hourly


def resources_in(state: Sequence[Mapping[str, Any]]) -> list[StateResource]:
    """The resources of a state that its program manages, with those that are still to be deleted.

    Args:
        state: `deployment.resources` of `pulumi stack export`, or the checkpoint's.
    """
    return [
        StateResource(str(entry["urn"]).rpartition("::")[2], str(entry["type"]), entry.get("inputs") or {})
        for entry in state
        if entry.get("custom") and not entry.get("external")
    ]


def plain(value: object) -> Any:
    """Inputs as a state or an event holds them, as plain values: unknown and secret ones as UNKNOWN."""
    if isinstance(value, str):
        return UNKNOWN if value in UNKNOWN_MARKS else value
    if isinstance(value, Mapping):
        if value.get(_SIGNATURE) == _SECRET:
            return UNKNOWN
        return {key: plain(item) for key, item in value.items() if not str(key).startswith(_ENGINES_OWN)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _input(name: str, problem: Problem) -> str:
    """An input that is unknown or cannot be read, with its resource."""
    return f"{problem.head} of {name}".replace("; ", ", ")


def _text(amount: Amount) -> str | None:
    return exact(amount.usd) if isinstance(amount, Priced) else None
