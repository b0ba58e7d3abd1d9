"""Quotas that localcloud has: GPUs, CPUs and memory of Cloud Run, chips and GPUs to lease, with their initial values.

Leaves out every other quota of Google's; the values are in data/cloud_run.toml and data/machines.toml.
"""

import math
from dataclasses import dataclass, field

from bezel_localcloud.core.regions import regions
from bezel_localcloud.faults.platform import gpu_quota
from bezel_localcloud.machines import capacity
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.cloud_run.quotas import CPU_METRIC, MEMORY_METRIC, gpu_quota_of
from bezel_localcloud.services.cloud_run.spec import limits

RUN = "run.googleapis.com"
_ANY = 10**9
# The one TPU family here, for the quota that has a value for each family.
_FAMILY = {"tpu_family": "CT6E"}


@dataclass(frozen=True)
class KnownQuota:
    """A quota.

    Attributes:
        service: The service that owns it.
        id: Google's id.
        metric: The metric that counts it.
        initial: Its value before any request, while no fault lowers it.
        dimension: `region` or `zone`.
        places: Where it applies.
        more: Its other dimensions, with their one value here.
        cap: The largest value that a fault lets through.
    """

    service: str
    id: str
    metric: str
    initial: int
    dimension: str
    places: tuple[str, ...]
    more: dict[str, str] = field(default_factory=dict)
    cap: float = math.inf


def known_quotas(cloud: Context, service: str) -> dict[str, KnownQuota]:
    """The quotas of a service by id."""
    quotas = [quota for quota in (*_of_cloud_run(cloud), *_of_machines(cloud)) if quota.service == service]
    return {quota.id: quota for quota in quotas}


def _of_cloud_run(cloud: Context) -> list[KnownQuota]:
    quotas = []
    for accelerator, row in limits()["accelerators"].items():
        for redundant in (False, True):
            quota = gpu_quota_of(accelerator, redundant=redundant)
            cap = gpu_quota(cloud.faults, _ANY) * quota.unit
            value, places = min(quota.gpus * quota.unit, cap), tuple(row["regions"])
            quotas.append(KnownQuota(RUN, quota.name, quota.metric, value, "region", places, cap=cap))
    values, everywhere = limits()["quotas"], tuple(sorted(regions()))
    return [
        *quotas,
        KnownQuota(RUN, "CpuAllocPerProjectRegion", CPU_METRIC, values["cpu_milli"], "region", everywhere),
        KnownQuota(RUN, "MemAllocPerProjectRegion", MEMORY_METRIC, values["memory_bytes"], "region", everywhere),
    ]


def _of_machines(cloud: Context) -> list[KnownQuota]:
    quotas = []
    fault = cloud.faults.find("lease-quota")
    cap = fault.number("units") if fault else math.inf
    for name, value in cloud.machines.quotas().items():
        owner, dimension, places = capacity.quota_places(name)
        more = {} if capacity.is_counted(name) else _FAMILY
        quotas.append(KnownQuota(owner, name, capacity.metric_of(name), value, dimension, tuple(places), more, cap))
    return quotas
