"""Whether a gated rollout has room: the old revision's GPUs and the new one's, against what the project may have.

Leaves who gets the traffic to `bezel.traffic`, and asking for the quota to `components`. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from bezel.catalog import accelerator
from bezel.planner.problems import Problem, setting

# What a gated rollout asks beside the APIs of every stack.
QUOTA_API = "cloudquotas.googleapis.com"


@dataclass(frozen=True, slots=True)
class GpuQuota:
    """The quota of run.googleapis.com that a service's GPUs count in; `unit` is what one GPU counts in it."""

    id: str
    unit: int


def gpu_quota(name: str, *, zonal_redundancy: bool) -> GpuQuota:
    """The quota of an accelerator of the catalogue."""
    found = accelerator(name)
    return GpuQuota(found.quota_zonal_redundancy if zonal_redundancy else found.quota, found.quota_unit_per_gpu)


def check_room(allowed: int, *, max_instances: int, gpus: int, quota: GpuQuota, region: str) -> list[Problem]:
    """Whether the quota holds the old and the new revision at a time.

    Args:
        allowed: What the quota allows in the region, as it counts.
        max_instances: Of each revision.
        gpus: Of one instance.
        quota: The quota.
        region: Where.
    """
    needed = 2 * max_instances * gpus * quota.unit
    if needed <= allowed:
        return []
    fits = allowed // (2 * gpus * quota.unit)
    lower = f"lower {setting('scaling.max_instances')} to {fits}, " if fits else ""
    return [
        Problem(
            setting("rollout"),
            "gated",
            f"the old revision serves while the new one is checked: with {max_instances} instances each they may need "
            f"{needed} of {quota.id} at a time, and this project has {allowed} in {region}.",
            f"set {setting('rollout')} to direct, {lower}or ask for {needed} under IAM & Admin > Quotas "
            "(service run.googleapis.com).",
        )
    ]
