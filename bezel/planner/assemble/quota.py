"""Quota check: whether the most that a stack may need fits into the project's quotas, before anything is created.

Owns which limits a stack counts in, what it needs of each, the arithmetic and the request that raises one. Leaves
looking up a project's limits to `bezel_components.lookups.quota`, and the use by other services to
`bezel.planner.assemble.quota_use`. Pure.

Facts: Cloud Run refuses a service whose maximum of instances exceeds the region's GPUs, CPUs (in thousandths) or memory
(in bytes), each counted per instance (its pages on maximum instances and on quotas, November 2026).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.base.hardware import Quota
from bezel.planner.base.problems import setting
from bezel.planner.base.repairs import QUOTA, to_number
from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word
from bezel_catalog import accelerator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.planner.assemble.plan import LeasePlan, LeaseTerms
    from bezel.planner.base.deployment import ServicePlan
    from bezel.planner.team.metrics_plan import MetricsPlan

# APIs that the preflight uses, besides those of the stack.
QUOTA_API, USE_API = "cloudquotas.googleapis.com", "monitoring.googleapis.com"
RUN_API = "run.googleapis.com"
CPU_QUOTA, MEMORY_QUOTA = "CpuAllocPerProjectRegion", "MemAllocPerProjectRegion"
_PERMISSION = "roles/cloudquotas.viewer"


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a value is not known: the reason in words, and whether the caller lacked a permission or an enabled API."""

    reason: str
    is_denied: bool = False


@dataclass(frozen=True, slots=True)
class Need:
    """The maximum need of a quota in a place: `per_instance`, times instances and revisions."""

    quota: Quota
    place: str
    per_instance: int
    instances: int
    revisions: int = 1

    @property
    def amount(self) -> int:
        """The amount needed at a time, in the quota's unit."""
        return self.per_instance * self.instances * self.revisions


def gpu_quota(name: str, *, zonal_redundancy: bool) -> Quota:
    """The quota of Cloud Run that an accelerator of the catalogue counts in."""
    gpu = accelerator(name)
    return Quota(RUN_API, gpu.quota_zonal_redundancy if zonal_redundancy else gpu.quota, "GPU", gpu.quota_unit_per_gpu)


def service_needs(service: ServicePlan, *, gated: bool, collector: MetricsPlan | None = None) -> tuple[Need, ...]:
    """Needs of a Cloud Run service; a gated rollout has two revisions at a time, a collector is in each instance."""
    cpu, gib = (collector.cpu, collector.memory_gib) if collector else (0, 0)
    gpu = gpu_quota(service.accelerator, zonal_redundancy=service.zonal_redundancy)
    amounts = {
        gpu: service.accelerator_count * gpu.unit,
        Quota(RUN_API, CPU_QUOTA, "vCPU", 1000): (service.cpu + cpu) * 1000,
        Quota(RUN_API, MEMORY_QUOTA, "GiB", 1 << 30): (service.memory_gib + gib) << 30,
    }
    instances, revisions = service.max_instances, 2 if gated else 1
    return tuple(Need(quota, service.region, amount, instances, revisions) for quota, amount in amounts.items())


def lease_quota(terms: LeaseTerms) -> Quota:
    """The quota that a lease counts in: flex-start and spot consume the preemptible one."""
    standard, preemptible = terms.hardware.quotas[terms.back_end]
    return standard if terms.provisioning == "on-demand" else preemptible


def lease_needs(terms: LeaseTerms) -> tuple[Need, ...]:
    """Needs of one lease, in each place where it may be requested, in their order.

    The TPU API counts per zone, Compute Engine per region.
    """
    by_zone = terms.back_end == "queued_resource"
    places = dict.fromkeys(zone.zone if by_zone else zone.region for zone in terms.zones)
    quota = lease_quota(terms)
    return tuple(Need(quota, place, terms.hardware.chips, 1) for place in places)


def request(need: Need, project: str, value: int) -> str:
    """The command that requests more from Google."""
    dimensions = (("zone" if need.place.count("-") > 1 else "region", need.place), *need.quota.dimensions)
    return (
        f"gcloud beta quotas preferences create --project={shell_word(project)} "
        f"--service={shell_word(need.quota.service)} "
        f"--quota-id={shell_word(need.quota.id)} "
        f"--dimensions={shell_word(','.join('='.join(pair) for pair in dimensions))} "
        f"--preferred-value={shell_word(value)} --email=YOUR_ADDRESS"
    )


def is_short(need: Need, allowed: float, used: int = 0) -> bool:
    """Whether a quota is too small for a need beside the amount that others hold."""
    return need.amount + used > allowed


def shortage(need: Need, allowed: float, *, project: str, used: int = 0, holders: str = "") -> Problem:
    """A quota that is too small for a service, as a problem of the stack.

    Args:
        need: what the service needs.
        allowed: the limit there, in the quota's unit.
        project: the project's id.
        used: amount that other services hold for certain.
        holders: names of those services.
    """
    quota, gated, total = need.quota, need.revisions > 1, need.amount + used
    there = f"this project has {allowed:.0f} in {need.place}" + (f", of which {holders} hold {used}" if used else "")
    left = max(0, allowed - used)
    fits = int(left // (need.per_instance * need.revisions))
    repairs = [to_number("lower", "scaling.max_instances", fits)] if fits else []
    if gated and need.per_instance * need.instances <= left:
        repairs.insert(0, f"set {setting('rollout')} to direct (which fits once the old revision holds no instance)")
    repairs.append(f"{QUOTA}{total}: `{request(need, project, total)}`")
    repair = f"{', '.join(repairs[:-1])}{', or ' if repairs[1:] else ''}{repairs[-1]}."
    instances = f"{need.instances} instance{'s' if need.instances > 1 else ''}"
    if gated:
        consequence = (
            f"the old revision serves while the new one is checked: with {instances} each they may need "
            f"{quota.describe(need.amount)} at a time, and {there}."
        )
        return Problem(setting("rollout"), "gated", consequence, repair)
    consequence = (
        f"{instances} may need {quota.describe(need.amount)}, and {there}: Cloud Run refuses the service after the "
        "resources that it needs are created."
    )
    return Problem(setting("scaling.max_instances"), need.instances, consequence, repair)


def lease_shortage(plan: LeasePlan, allowed: Mapping[Need, float]) -> Problem:
    """The problem that no place has quota for the leases of a plan."""
    needs = list(allowed)
    first, count = needs[0], len(plan.terms.names)
    limits = ", ".join(f"{value:.0f} in {need.place}" for need, value in allowed.items())
    return Problem(
        setting("lease.zones"),
        ", ".join(zone.zone for zone in plan.terms.zones),
        f"{count} lease{'s' if count > 1 else ''} of {plan.terms.hardware.id} {'need' if count > 1 else 'needs'} "
        f"{first.quota.describe(first.amount * count)}, and this project has {limits}: no zone would grant "
        f"{'them all' if count > 1 else 'it'}.",
        f"list a zone with quota (`bezel tpu find` shows them), or request it: "
        f"`{request(first, plan.project, first.amount * count)}`.",
    )


def leases_that_fit(allowed: Mapping[Need, float]) -> float:
    """Number of leases that the quotas of all places allow together."""
    return sum(value // need.amount for need, value in allowed.items())


def unknown(needs: tuple[Need, ...], project: str, why: str) -> str:
    """Warning about quotas that cannot be read: the need, the consequence, and the repair."""
    listed = "; ".join(need.quota.describe(need.amount) for need in needs)
    places = ", ".join(dict.fromkeys(need.place for need in needs))
    return (
        f"quota of {places} is not known ({why}).\n"
        f"  Needed at a time: {listed}.\n"
        "  Consequence: if the project has less, the deploy fails after other resources are created.\n"
        f"  Repair: `gcloud services enable {QUOTA_API} --project={shell_word(project)}`, and {_PERMISSION} for the "
        "deployer; "
        "then preview again."
    )
