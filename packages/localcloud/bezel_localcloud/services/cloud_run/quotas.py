"""Quotas of a project in a region of Cloud Run, and the use that its services request. Pure.

Two checks, as Cloud Run makes them. When a service is written: its maximum instances times its GPUs, CPUs and memory;
an excess is refused with the number that would fit. When a revision is created: the GPUs of all services of the region,
each with the maximum instances of its newest revision and the running instances of its older revisions; so a service
whose maximum uses the whole quota cannot roll to a new revision while the old one has an instance. GPUs with and
without zonal redundancy are counted separately; the quota of the RTX PRO 6000 is in thousandths of a GPU.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.services.cloud_run.spec import RevisionSpec, limits, revision_spec

# Metric names from quota listings that users published, 2026.
CPU_METRIC, MEMORY_METRIC = "run.googleapis.com/cpu_allocation", "run.googleapis.com/mem_allocation"

Granted = Callable[[str, int], int]
"""(id of a quota, its initial value) -> the value in force."""


@dataclass(frozen=True)
class GpuQuota:
    """A quota of GPUs.

    Attributes:
        name: Google's id of the quota.
        gpus: GPUs that it allows in a region.
        unit: Amount of one GPU in it: 1, or 1000 where it is in milli-GPU.
        metric: Its metric, as Cloud Quotas and Cloud Monitoring name it.
    """

    name: str
    gpus: int
    unit: int
    metric: str

    def amount(self, gpus: int) -> str:
        """A number of GPUs in the quota's unit."""
        return f"{gpus * self.unit}{' milli-GPU' if self.unit > 1 else ''}"


def gpu_quota_of(accelerator: str, *, redundant: bool) -> GpuQuota:
    """The quota that an accelerator counts towards."""
    rules = limits()["accelerators"][accelerator]
    suffix = "_redundant" if redundant else ""
    unit = rules["quota_unit"]
    # The pattern of both existing accelerators' metrics.
    metric = f"run.googleapis.com/{accelerator.replace('-', '_')}_gpu_allocation"
    metric += "" if redundant else "_no_zonal_redundancy"
    return GpuQuota(rules[f"quota{suffix}_name"], rules[f"quota{suffix}"] // unit, unit, metric)


def amounts(spec: RevisionSpec) -> Iterator[tuple[str, int]]:
    """(metric, amount of one instance) of each quota."""
    yield CPU_METRIC, round(spec.instance_cpu * 1000)
    yield MEMORY_METRIC, spec.instance_memory
    if spec.instance_accelerators:
        quota = gpu_quota_of(spec.accelerator, redundant=spec.redundant)
        yield quota.metric, spec.instance_accelerators * quota.unit


def max_instances_of(spec: RevisionSpec, service_scaling: Json) -> int:
    """Most instances of a revision that gets all traffic."""
    if service_scaling.get("scalingMode") == "MANUAL":
        return int(service_scaling.get("manualInstanceCount") or 0)
    return max(spec.min_instances, spec.max_instances)


def gpus_needed(
    services: Iterable[tuple[Json, Mapping[str, Json], Counter[str]]], accelerator: str, *, redundant: bool
) -> int:
    """GPUs of one quota that the services of a region may come to hold.

    Args:
        services: (service, its revisions by name, instances that each revision has at this moment).
        accelerator: The counted kind.
        redundant: Whether GPUs with zonal redundancy are counted.
    """
    count = 0
    for service, revisions, instances in services:
        scaling = service.get("scaling") or {}
        newest = service.get("latestCreatedRevision" if service.get("reconciling") else "latestReadyRevision", "")
        for name in {newest, *instances} & revisions.keys():
            spec = revision_spec(revisions[name], scaling)
            if (spec.accelerator, spec.redundant) == (accelerator, redundant):
                count += spec.instance_accelerators * (
                    max_instances_of(spec, scaling) if name == newest else instances[name]
                )
    return count


def initial_values(_quota: str, initial: int) -> int:
    """The values of a project that never requested others."""
    return initial


def quota_violations(template: Json, service_scaling: Json, granted: Granted = initial_values) -> Iterator[str]:
    """Violations of the region's quotas by a service alone.

    Args:
        template: The revision's template; its quantities are well-formed.
        service_scaling: Scaling of the service.
        granted: (id of a quota, its initial value) -> its value in the region.
    """
    spec = revision_spec(template, service_scaling)
    maximums = [s.get("maxInstanceCount") for s in (template.get("scaling") or {}, service_scaling)]
    if not any(maximums) and service_scaling.get("scalingMode") != "MANUAL":
        return  # the platform then limits the instances to the quota
    instances, quotas = max_instances_of(spec, service_scaling), limits()["quotas"]
    quota = gpu_quota_of(spec.accelerator, redundant=spec.redundant) if spec.instance_accelerators else None
    gpus = [("in order to set GPU requirements", quota.name, spec.instance_accelerators, quota.gpus)] if quota else []
    cpu = (
        "to set the requested total CPU",
        "CpuAllocPerProjectRegion",
        round(spec.instance_cpu * 1000),
        quotas["cpu_milli"],
    )
    memory = (
        "to set the requested total memory",
        "MemAllocPerProjectRegion",
        spec.instance_memory,
        quotas["memory_bytes"],
    )
    for why, name, amount, initial in (*gpus, cpu, memory):
        unit = quota.unit if quota and name == quota.name else 1
        allowed = granted(name, initial * unit) // unit
        if instances * amount > allowed:
            yield (
                f"Max instances must be set to {allowed // amount} or fewer {why}. Quota violated: "
                f"{name} requested: {instances * amount} allowed: {allowed}"
            )
