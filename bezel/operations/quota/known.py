"""Quotas that deployments of this repository count in, from the catalogue: service, unit, and places. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from bezel.planner import AnyPlan, LeasePlan, Plan
from bezel.planner.assemble.quota import (
    CPU_QUOTA,
    MEMORY_QUOTA,
    RUN_API,
    Need,
    gpu_quota,
    lease_needs,
    service_needs,
)
from bezel.planner.base.deployment import ServicePlan
from bezel.planner.base.hardware import Quota, leased_hardware
from bezel_catalog import accelerators

PlaceKind = Literal["region", "zone"]
_APIS = {"queued_resource": "the TPU API", "flex_start_vm": "Compute Engine"}


@dataclass(frozen=True)
class KnownQuota:
    """A quota.

    Attributes:
        title: What it limits.
        quota: Service, id, unit and further dimensions.
        kind: Whether it has a value for each region or each zone.
        places: Where the catalogue knows the hardware.
    """

    title: str
    quota: Quota
    kind: PlaceKind
    places: tuple[str, ...]


def known_quotas() -> tuple[KnownQuota, ...]:
    """GPUs, CPUs and memory of Cloud Run, then chips and GPUs of the TPU API and of Compute Engine."""
    return (*_of_cloud_run(), *_of_leases())


def _of_cloud_run() -> list[KnownQuota]:
    quotas, everywhere = [], set()
    for gpu in accelerators().values():
        places = (*gpu.regions, *gpu.regions_on_invitation)
        everywhere |= {*places}
        for redundant in (False, True):
            title = f"{gpu.title} on Cloud Run" + (", zonal redundancy" if redundant else "")
            quota = gpu_quota(gpu.id, zonal_redundancy=redundant)
            quotas.append(KnownQuota(title, quota, "region", tuple(sorted(places))))
    for title, quota in (
        ("CPUs on Cloud Run", Quota(RUN_API, CPU_QUOTA, "vCPU", 1000)),
        ("memory on Cloud Run", Quota(RUN_API, MEMORY_QUOTA, "GiB", 1 << 30)),
    ):
        quotas.append(KnownQuota(title, quota, "region", tuple(sorted(everywhere))))
    return quotas


def _of_leases() -> list[KnownQuota]:
    """One entry for each quota, with the places of all hardware that counts in it."""
    places: dict[tuple[str, Quota, PlaceKind], set[str]] = {}
    for hardware in leased_hardware().values():
        device = hardware.gpu.title if hardware.gpu else f"TPU {hardware.id.partition('-')[0]}"
        for back_end, both in hardware.quotas.items():
            kind: PlaceKind = "zone" if back_end == "queued_resource" else "region"
            zones = {*hardware.zones, *hardware.zones_refused}
            where = zones if kind == "zone" else {zone.rpartition("-")[0] for zone in zones}
            for quota, model in zip(both, ("on demand", "flex-start and spot"), strict=True):
                title = f"{device} by {_APIS[back_end]}, {model}"
                places.setdefault((title, quota, kind), set()).update(where)
    return [KnownQuota(title, quota, kind, tuple(sorted(where))) for (title, quota, kind), where in places.items()]


def needs_of(plan: AnyPlan) -> tuple[Need, ...]:
    """What a stack may need of each quota in each place: of leases, with their fallback."""
    if isinstance(plan, LeasePlan):
        fallback = plan.fallback
        of_fallback = () if fallback is None else needs_of_service(fallback.plan, fallback.service)
        return (*lease_needs(plan.terms), *of_fallback)
    return tuple(need for service in plan.services for need in needs_of_service(plan, service))


def needs_of_service(plan: Plan, service: ServicePlan) -> tuple[Need, ...]:
    """What one of a plan's services may need in its region."""
    return service_needs(service, gated=plan.settings.rollout == "gated", collector=plan.metrics)


def known_by_id(quotas: Iterable[KnownQuota]) -> dict[tuple[str, str], KnownQuota]:
    """The quotas by service and id."""
    return {(each.quota.service, each.quota.id): each for each in quotas}
