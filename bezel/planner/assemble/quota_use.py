"""Use of a quota: by the other Cloud Run services of a region, by a service itself, by all together. Pure.

Owns reading run v2's descriptions of services, and which of two sources counts. The amount that instances without
traffic hold is certain; the amount that a service may scale to is not, so it is reported and refuses nothing. A
service's own instances are never counted against it.

Cloud Monitoring sees everything (jobs, worker pools, serving instances), but as a sample: after a deletion it may still
count what is gone. A deploy that is refused wrongly cannot proceed, and one that is allowed wrongly fails with the
reason while the earlier revision serves. So only the list of services refuses, and what Monitoring adds is a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel.catalog import NotInCatalogueError
from bezel.planner.assemble.quota import CPU_QUOTA, MEMORY_QUOTA, gpu_quota, is_short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bezel.planner.assemble.quota import Need

_MEMORY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "k": 10**3, "M": 10**6, "G": 10**9, "": 1}
_DONE = "CONDITION_SUCCEEDED"


@dataclass(frozen=True, slots=True)
class Use:
    """Amounts that others hold of a quota, in its unit: for certain, and with the maximum of their instances."""

    held: int
    most: int
    holders: tuple[str, ...]


def used_by_others(services: Iterable[Mapping[str, Any]], own: str, quota_id: str) -> Use:
    """Amounts that a region's services hold of a quota, all but one.

    Args:
        services: their descriptions by run v2.
        own: name of the service that is left out, without its path.
        quota_id: of the quota.
    """
    others = [service for service in services if _short(service) != own]
    held = {_short(service): _each(service, quota_id) * _instances(service)[0] for service in others}
    most = sum(_each(service, quota_id) * _instances(service)[1] for service in others)
    return Use(sum(held.values()), most, tuple(sorted(name for name, amount in held.items() if amount)))


def own_most(services: Iterable[Mapping[str, Any]], own: str, quota_id: str) -> int:
    """Amount that all instances of one revision of a service may hold of a quota; 0 without the service."""
    return sum(_each(one, quota_id) * _instances(one)[1] for one in services if _short(one) == own)


def in_use(listed: int, counted: int | None) -> tuple[int, bool] | None:
    """(amount used of a quota, whether it is Monitoring's number); None where unknown.

    Args:
        listed: amount that services hold for certain: more may be used, so 0 means unknown.
        counted: Monitoring's newest value, None where it has none; it lags, so the larger of both counts.
    """
    if counted is not None and counted >= listed:
        return counted, True
    return (listed, False) if listed else None


def is_crowded(need: Need, allowed: float, counted: int | None, own: int) -> bool:
    """Whether a quota is too small for a need beside Monitoring's count, less what may be the service's own."""
    return counted is not None and is_short(need, allowed, max(0, counted - own * need.revisions))


def has_already(services: Iterable[Mapping[str, Any]], own: str, need: Need) -> bool:
    """Whether a service already serves with at least the needed amount: unless it changes, it needs no more."""
    found = next((service for service in services if _short(service) == own), None)
    if found is None or (found.get("terminalCondition") or {}).get("state") != _DONE:
        return False
    return _each(found, need.quota.id) * _instances(found)[1] >= need.wanted


def _short(service: Mapping[str, Any]) -> str:
    return str(service.get("name") or "").rpartition("/")[2]


def _instances(service: Mapping[str, Any]) -> tuple[int, int]:
    """(instances that run without traffic, maximum of instances)."""
    outer = service.get("scaling") or {}
    inner = (service.get("template") or {}).get("scaling") or {}
    if outer.get("scalingMode") == "MANUAL":
        manual = int(outer.get("manualInstanceCount") or 0)
        return manual, manual
    least = max(int(one.get("minInstanceCount") or 0) for one in (outer, inner))
    given = [int(one["maxInstanceCount"]) for one in (outer, inner) if one.get("maxInstanceCount")]
    return least, max(least, min(given, default=0))


def _each(service: Mapping[str, Any], quota_id: str) -> int:
    """Amount that one instance of a service counts in a quota."""
    template = service.get("template") or {}
    limits = [(one.get("resources") or {}).get("limits") or {} for one in template.get("containers") or ()]
    if quota_id == CPU_QUOTA:
        return sum(_milli(str(one.get("cpu") or "1")) for one in limits)
    if quota_id == MEMORY_QUOTA:
        return sum(_bytes(str(one.get("memory") or "512Mi")) for one in limits)
    name = str((template.get("nodeSelector") or {}).get("accelerator") or "")
    try:
        quota = gpu_quota(name, zonal_redundancy=not template.get("gpuZonalRedundancyDisabled"))
    except NotInCatalogueError:
        return 0
    if quota.id != quota_id:
        return 0
    return quota.unit * sum(int(one.get("nvidia.com/gpu") or 0) for one in limits)


def _milli(text: str) -> int:
    number, milli = text.removesuffix("m"), text.endswith("m")
    return int(number) if milli else round(float(number) * 1000)


def _bytes(text: str) -> int:
    number = text.rstrip("KMGik")
    return int(number) * _MEMORY.get(text.removeprefix(number), 1)
