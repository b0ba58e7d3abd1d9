"""Whether what a stack may come to need fits into the project's quotas, before anything is made.

Owns which limits a stack counts in, what it needs of each, the arithmetic and the request that raises one. Leaves
asking what a project may have to `components.lookups.quota`, and what other services hold to
`bezel.planner.assemble.quota_use`. Pure.

Facts: Cloud Run refuses a service whose most instances exceed the region's GPUs, CPUs (in thousandths) or memory (in
bytes), each by the instance (its pages on maximum instances and on quotas, November 2026).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.catalog import accelerator
from bezel.planner.base.hardware import leased_quota
from bezel.planner.base.problems import Problem, setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.assemble.lease_plan import LeasePlan, LeaseTerms
    from bezel.planner.base.deployment import ServicePlan

# What the preflight asks, beside the APIs that a stack uses.
QUOTA_API, USE_API = "cloudquotas.googleapis.com", "monitoring.googleapis.com"
RUN_API = "run.googleapis.com"
CPU_QUOTA, MEMORY_QUOTA = "CpuAllocPerProjectRegion", "MemAllocPerProjectRegion"
_PERMISSION = "roles/cloudquotas.viewer"


@dataclass(frozen=True, slots=True)
class Quota:
    """One limit: of which API, its id, what it counts (`unit` of it is one `thing`) and by what beside the place."""

    service: str
    id: str
    thing: str
    unit: int = 1
    dimensions: tuple[tuple[str, str], ...] = ()

    def told(self, amount: int) -> str:
        """An amount as the quota counts it, and as people do."""
        return f"{amount} of {self.id} ({self.things(amount)})"

    def things(self, amount: float) -> str:
        """An amount as people count it."""
        number = amount / self.unit
        return f"{number:g} {self.thing}{'' if number == 1 or self.thing == 'GiB' else 's'}"


@dataclass(frozen=True, slots=True)
class Need:
    """What a stack may need of a quota in a place: `each` for an instance, of so many instances and revisions."""

    quota: Quota
    place: str
    each: int
    instances: int
    revisions: int = 1

    @property
    def wanted(self) -> int:
        """At a time, as the quota counts."""
        return self.each * self.instances * self.revisions


def gpu_quota(name: str, *, zonal_redundancy: bool) -> Quota:
    """The quota of Cloud Run that an accelerator of the catalogue counts in."""
    found = accelerator(name)
    quota = found.quota_zonal_redundancy if zonal_redundancy else found.quota
    return Quota(RUN_API, quota, "GPU", found.quota_unit_per_gpu)


def service_needs(service: ServicePlan, *, gated: bool) -> tuple[Need, ...]:
    """What a Cloud Run service may need; a gated rollout has two revisions at a time."""
    gpu = gpu_quota(service.accelerator, zonal_redundancy=service.zonal_redundancy)
    amounts = {
        gpu: service.accelerator_count * gpu.unit,
        Quota(RUN_API, CPU_QUOTA, "vCPU", 1000): service.cpu * 1000,
        Quota(RUN_API, MEMORY_QUOTA, "GiB", 1 << 30): service.memory_gib << 30,
    }
    revisions = 2 if gated else 1
    return tuple(Need(quota, service.region, each, service.max_instances, revisions) for quota, each in amounts.items())


def lease_quota(terms: LeaseTerms) -> Quota:
    """The quota that a lease counts in: flex-start and spot consume the preemptible one."""
    service, name, dimensions = leased_quota(terms.hardware, terms.back_end, terms.provisioning)
    return Quota(service, name, "chip" if terms.hardware.device == "tpu" else "GPU", dimensions=dimensions)


def lease_needs(terms: LeaseTerms) -> tuple[Need, ...]:
    """What one lease needs, in each place that it may be asked for in, in their order.

    The TPU API counts by the zone, Compute Engine by the region.
    """
    by_zone = terms.back_end == "queued_resource"
    places = dict.fromkeys(zone.zone if by_zone else zone.region for zone in terms.zones)
    quota = lease_quota(terms)
    return tuple(Need(quota, place, terms.hardware.chips, 1) for place in places)


def request(need: Need, project: str, value: int) -> str:
    """The command that asks Google for more."""
    dimensions = (("zone" if need.place.count("-") > 1 else "region", need.place), *need.quota.dimensions)
    return (
        f"gcloud beta quotas preferences create --project={project} --service={need.quota.service} "
        f"--quota-id={need.quota.id} --dimensions={','.join('='.join(pair) for pair in dimensions)} "
        f"--preferred-value={value} --email=YOUR_ADDRESS"
    )


def is_short(need: Need, allowed: float, held: int = 0) -> bool:
    """Whether a quota cannot hold what is needed beside what others hold of it."""
    return need.wanted + held > allowed


def shortage(need: Need, allowed: float, *, project: str, held: int = 0, holders: str = "") -> Problem:
    """A quota that is too small for a service, as a problem of the stack.

    Args:
        need: what the service needs.
        allowed: what the quota allows there, as it counts.
        project: whose quota it is.
        held: what other services hold of it for certain.
        holders: who they are.
    """
    quota, gated = need.quota, need.revisions > 1
    there = f"this project has {allowed:.0f} in {need.place}" + (f", of which {holders} hold {held}" if held else "")
    left = max(0, allowed - held)
    fits = int(left // (need.each * need.revisions))
    ways = [f"lower {setting('scaling.max_instances')} to {fits}"] if fits else []
    if gated and need.each * need.instances <= left:
        ways.insert(0, f"set {setting('rollout')} to direct (which fits once the old revision holds no instance)")
    ways.append(f"ask for {need.wanted + held}: `{request(need, project, need.wanted + held)}`")
    repair = f"{', '.join(ways[:-1])}, or {ways[-1]}." if len(ways) > 1 else f"{ways[0]}."
    instances = f"{need.instances} instance{'s' if need.instances > 1 else ''}"
    if gated:
        return Problem(
            setting("rollout"),
            "gated",
            f"the old revision serves while the new one is checked: with {instances} each they may need "
            f"{quota.told(need.wanted)} at a time, and {there}.",
            repair,
        )
    return Problem(
        setting("scaling.max_instances"),
        str(need.instances),
        f"{instances} may need {quota.told(need.wanted)}, and {there}: Cloud Run refuses the service after all that it "
        "stands on was made.",
        repair,
    )


def lease_shortage(plan: LeasePlan, allowed: Mapping[Need, float]) -> Problem:
    """No place has quota for the leases of a plan, as a problem of the stack."""
    needs = list(allowed)
    first, count = needs[0], len(plan.terms.names)
    told = ", ".join(f"{value:.0f} in {need.place}" for need, value in allowed.items())
    return Problem(
        setting("lease.zones"),
        ", ".join(zone.zone for zone in plan.terms.zones),
        f"{count} lease{'s' if count > 1 else ''} of {plan.terms.hardware.id} need "
        f"{first.quota.told(first.wanted * count)}, and this project has {told}: no zone would grant "
        f"{'them all' if count > 1 else 'it'}.",
        f"list a zone with quota (`bezel tpu find` shows them), or ask for it: "
        f"`{request(first, plan.project, first.wanted * count)}`.",
    )


def leases_that_fit(allowed: Mapping[Need, float]) -> float:
    """How many leases all places hold together."""
    return sum(value // need.wanted for need, value in allowed.items())


def unknown(needs: tuple[Need, ...], project: str, why: str) -> str:
    """What is said of quotas that nobody can tell: what is needed, what may come of it, and how to know."""
    listed = "; ".join(need.quota.told(need.wanted) for need in needs)
    places = ", ".join(dict.fromkeys(need.place for need in needs))
    return (
        f"quota of {places} is not known ({why}).\n"
        f"  Needed at a time: {listed}.\n"
        "  Consequence: if the project has less, the deploy fails after other resources were made.\n"
        f"  Repair: `gcloud services enable {QUOTA_API} --project={project}`, and {_PERMISSION} for whoever deploys; "
        "then preview again."
    )
