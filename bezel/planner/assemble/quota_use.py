"""Use of a quota, and its texts in a preview: by other services of a region, by a service itself, by all. Pure.

Owns reading run v2's descriptions of services, and which of two sources counts. The amount that instances without
traffic hold is certain; the amount that a service may scale to is not, so it is reported and refuses nothing. A
service's own instances are never counted against it.

Cloud Monitoring sees everything (jobs, worker pools, serving instances), but as a sample: after a deletion it may still
count what is gone. A deploy that is refused wrongly cannot proceed, and one that is allowed wrongly fails with the
reason while the earlier revision serves. So only the list of services refuses, and what Monitoring adds is a warning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bezel.planner.assemble.quota import CPU_QUOTA, MEMORY_QUOTA, USE_API, Unread, gpu_quota, is_short, request
from bezel_base.text.shell import shell_word
from bezel_catalog import NotInCatalogueError
from bezel_catalog.quantities import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bezel.planner.assemble.quota import Need

_MEMORY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "k": 10**3, "M": 10**6, "G": 10**9, "": 1}
_DONE = "CONDITION_SUCCEEDED"
_PERMISSION = "roles/monitoring.viewer"


@dataclass(frozen=True, slots=True)
class Use:
    """Amounts that others hold of a quota, in its unit: for certain, and with the maximum of their instances."""

    certain: int
    max_held: int
    holders: tuple[str, ...]


def used_by_others(services: Iterable[Mapping[str, Any]], service_name: str, quota_id: str) -> Use:
    """Amounts that a region's services hold of a quota, all but one.

    Args:
        services: their descriptions by run v2.
        service_name: name of the service that is left out, without its path.
        quota_id: of the quota.
    """
    others = [service for service in services if _short(service) != service_name]
    amounts = {_short(service): _amounts(service, quota_id) for service in others}
    holders = tuple(sorted(name for name, (certain, _) in amounts.items() if certain))
    return Use(sum(certain for certain, _ in amounts.values()), sum(limit for _, limit in amounts.values()), holders)


def own_most(services: Iterable[Mapping[str, Any]], service_name: str, quota_id: str) -> int:
    """Amount that all instances of one revision of a service may hold of a quota; 0 without the service."""
    return sum(_amounts(service, quota_id)[1] for service in services if _short(service) == service_name)


@dataclass(frozen=True, slots=True)
class Moment:
    """The moment of a deploy at which most of a quota is needed, in the quota's unit.

    Attributes:
        need: of the service by itself.
        old: amount that the present revision may hold while the new one starts; 0 without a service.
        others: amounts of the region's other services.
    """

    need: Need
    old: int
    others: Use

    @property
    def amount(self) -> int:
        """The amount of both revisions: the present one keeps its instances until the new one serves."""
        return max(self.need.amount, self.need.per_instance * self.need.instances + self.old)


def worst_moment(need: Need, services: Sequence[Mapping[str, Any]], service_name: str) -> Moment:
    """The worst moment of a service's deploy beside the services of its region.

    Args:
        need: of the service.
        services: descriptions of the region's services by run v2, its own among them.
        service_name: its name, without its path.
    """
    quota_id = need.quota.id
    return Moment(need, own_most(services, service_name, quota_id), used_by_others(services, service_name, quota_id))


def changed_since(services: Iterable[Mapping[str, Any]], age: float, now: datetime) -> tuple[str, ...]:
    """Names of the services that were changed after a figure of an age in seconds: it does not count the change."""
    names = []
    for service in services:
        try:
            changed = datetime.fromisoformat(str(service.get("updateTime") or ""))
        except ValueError:
            continue
        if changed.tzinfo and (now - changed).total_seconds() < age:
            names.append(_short(service))
    return tuple(sorted(names))


def in_use(listed: int, counted: int | None) -> tuple[int, bool] | None:
    """(amount used of a quota, whether it is Monitoring's number); None where unknown.

    Args:
        listed: amount that services hold for certain: more may be used, so 0 means unknown.
        counted: Monitoring's newest value, None where it has none; it lags, so the larger of both counts.
    """
    if counted is not None and counted >= listed:
        return counted, True
    return (listed, False) if listed else None


def is_crowded(need: Need, allowed: float, counted: int | None, own_amount: int) -> bool:
    """Whether a quota is too small for a need beside Monitoring's count, less what may be the service's own."""
    return counted is not None and is_short(need, allowed, max(0, counted - own_amount * need.revisions))


def tight_deploy(moment: Moment, allowed: float, project: str) -> str | None:
    """Warning that a quota is too small for a deploy's worst moment; None where all may run at a time.

    What other services may scale to is counted for GPUs alone: services without one rarely come near their maximum.
    """
    need, quota, others = moment.need, moment.need.quota, moment.others
    most = others.max_held if quota.thing == "GPU" else others.certain
    value = moment.amount + most
    if value <= allowed:
        return None
    new = need.per_instance * need.instances
    parts = [f"{quota.things(new)} of the new revision"]
    if moment.amount > new:
        parts.append(f"{quota.things(moment.amount - new)} of the old one, which serves until the new one does")
    if most:
        bound = "hold without traffic" if most == others.certain else "may take with all their instances"
        parts.append(f"{quota.things(most)} that its other services {bound}")
    listed = f"{', '.join(parts[:-1])} and {parts[-1]}" if parts[1:] else parts[0]
    return (
        f"{quota.id}: at its worst moment this deploy may need {quota.things(value)} of the {quota.things(allowed)} "
        f"allowed in {need.place}: {listed}.\n"
        "  Consequence: if all of them run, Cloud Run refuses the new revision or starts fewer instances.\n"
        f"  Repair: deploy while instances are idle, or request {value}: `{request(need, project, value)}`."
    )


def has_already(services: Iterable[Mapping[str, Any]], service_name: str, need: Need) -> bool:
    """Whether a service already serves with at least the needed amount: unless it changes, it needs no more."""
    return any(
        (service.get("terminalCondition") or {}).get("state") == _DONE
        and _amounts(service, need.quota.id)[1] >= need.amount
        for service in services
        if _short(service) == service_name
    )


def use_line(
    need: Need,
    allowed: float,
    listed: int,
    counted: tuple[int, float] | Unread,
    *,
    moment: Moment | None = None,
    changed: Sequence[str] = (),
) -> str:
    """One quota in a preview: its use with the source, the limit, and the need.

    Args:
        need: the maximum that the stack may need of it.
        allowed: the project's limit, infinity without one.
        listed: amount that Cloud Run's services hold without traffic.
        counted: Monitoring's number and its age in seconds, or the reason why there is none.
        moment: the deploy's worst moment; None where the region's services are not known, or for a lease.
        changed: services that were changed after Monitoring's number.
    """
    things = need.quota.things
    limit = "no limit" if allowed == math.inf else f"{things(allowed)} allowed"
    used = in_use(listed, None if isinstance(counted, Unread) else counted[0])
    before = f", before {', '.join(changed)} changed" if changed else ""
    monitoring = "" if isinstance(counted, Unread) else f"Cloud Monitoring, {duration_text(counted[1])} ago{before}"
    if used is None:
        use = "use not known"
    elif used[1]:
        use = f"{things(used[0])} used ({monitoring})"
    else:
        lower = f"; less by {monitoring}" if monitoring else ""
        use = f"at least {things(used[0])} used (by the services that run without traffic{lower})"
    needed = f"{things(need.amount)} needed"
    if moment and moment.amount > need.amount:
        needed += f", {things(moment.amount)} while the old revision still runs"
    if moment and moment.others.max_held and need.quota.thing == "GPU":
        needed += f"; other services may take {things(moment.others.max_held)}"
    return f"{need.quota.id} in {need.place}: {use}, {limit}, {needed}."


def uncounted_warning(needs: Iterable[Need], project: str, why: Unread) -> str:
    """Warning that Cloud Monitoring reports no use: what is therefore not counted, and after a 403 the repair."""
    quotas = ", ".join(dict.fromkeys(need.quota.id for need in needs))
    repair = f" Grant {_PERMISSION} and run `gcloud services enable {USE_API} --project={shell_word(project)}`."
    return (
        f"Cloud Monitoring does not report the use of {quotas} ({why.reason}): jobs, instances that serve requests and "
        f"other users are not counted.{repair if why.is_denied else ''}"
    )


def crowding(need: Need, allowed: float, counted: tuple[int, float], project: str) -> str:
    """Warning that a quota is too full by Monitoring: not a refusal, since what it counted may have ended."""
    (used, age), things = counted, need.quota.things
    value = need.amount + used
    return (
        f"{need.quota.id}: {duration_text(age)} ago Cloud Monitoring counted {things(used)} in use in {need.place}, of "
        f"the {things(allowed)} of this project; this stack may need {things(need.amount)}.\n"
        "  Consequence: if that is still so, instances do not start until others have ended, and a lease is refused.\n"
        f"  Repair: end what is not needed, or request {value}: `{request(need, project, value)}`."
    )


def _short(service: Mapping[str, Any]) -> str:
    return str(service.get("name") or "").rpartition("/")[2]


def _amounts(service: Mapping[str, Any], quota_id: str) -> tuple[int, int]:
    """What a service holds of a quota: without traffic, and with the maximum of its instances."""
    outer = service.get("scaling") or {}
    inner = (service.get("template") or {}).get("scaling") or {}
    if outer.get("scalingMode") == "MANUAL":
        low = high = int(outer.get("manualInstanceCount") or 0)
    else:
        low = max(int(scaling.get("minInstanceCount") or 0) for scaling in (outer, inner))
        limits = [int(scaling["maxInstanceCount"]) for scaling in (outer, inner) if scaling.get("maxInstanceCount")]
        high = max(low, min(limits, default=0))
    amount = _per_instance(service, quota_id)
    return amount * low, amount * high


def _per_instance(service: Mapping[str, Any], quota_id: str) -> int:
    """Amount that one instance of a service counts in a quota."""
    template = service.get("template") or {}
    limits = [(container.get("resources") or {}).get("limits") or {} for container in template.get("containers") or ()]
    if quota_id == CPU_QUOTA:
        return sum(_milli(str(limit.get("cpu") or "1")) for limit in limits)
    if quota_id == MEMORY_QUOTA:
        return sum(_bytes(str(limit.get("memory") or "512Mi")) for limit in limits)
    name = str((template.get("nodeSelector") or {}).get("accelerator") or "")
    try:
        quota = gpu_quota(name, zonal_redundancy=not template.get("gpuZonalRedundancyDisabled"))
    except NotInCatalogueError:
        return 0
    if quota.id != quota_id:
        return 0
    return quota.unit * sum(int(limit.get("nvidia.com/gpu") or 0) for limit in limits)


def _milli(text: str) -> int:
    return int(text.removesuffix("m")) if text.endswith("m") else round(float(text) * 1000)


def _bytes(text: str) -> int:
    number = text.rstrip("KMGik")
    return int(number) * _MEMORY.get(text.removeprefix(number), 1)
