"""Texts of a preview about the use of quotas: how much is used, by which source, and what is not known. Pure.

Owns the wording. Leaves the rule behind it to `bezel.planner.assemble.quota_use`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bezel.planner.assemble.quota import USE_API, request
from bezel.planner.assemble.quota_use import in_use
from bezel.planner.base.durations import duration_text

if TYPE_CHECKING:
    from bezel.planner.assemble.quota import Need

_PERMISSION = "roles/monitoring.viewer"


def use_line(need: Need, allowed: float, listed: int, counted: tuple[int, float] | str) -> str:
    """One quota: its use with the source, the limit, and the need.

    Args:
        need: the most that the stack may need of it.
        allowed: the project's limit, infinity without one.
        listed: amount that Cloud Run's services hold without traffic.
        counted: Monitoring's number and its age in seconds, or the reason why there is none.
    """
    things = need.quota.things
    limit = "no limit" if allowed == math.inf else f"{things(allowed)} allowed"
    used = in_use(listed, None if isinstance(counted, str) else counted[0])
    monitoring = "" if isinstance(counted, str) else f"Cloud Monitoring, {duration_text(counted[1])} ago"
    if used is None:
        told = "use not known"
    elif used[1]:
        told = f"{things(used[0])} used ({monitoring})"
    else:
        lower = f"; less by {monitoring}" if monitoring else ""
        told = f"at least {things(used[0])} used (by the services that run without traffic{lower})"
    return f"{need.quota.id} in {need.place}: {told}, {limit}, {things(need.wanted)} needed."


def uncounted(needs: tuple[Need, ...], project: str, why: str) -> str:
    """Warning that Cloud Monitoring reports no use: what is therefore not counted, and after a 403 the repair."""
    quotas = ", ".join(dict.fromkeys(need.quota.id for need in needs))
    repair = f" It takes {_PERMISSION} and `gcloud services enable {USE_API} --project={project}`."
    return (
        f"Cloud Monitoring does not tell the use of {quotas} ({why}): jobs, instances that serve and other users are "
        f"not seen.{repair if why.startswith('403') else ''}"
    )


def crowding(need: Need, allowed: float, counted: tuple[int, float], project: str) -> str:
    """Warning that a quota is too full by Monitoring: no refusal, since what it counted may have ended."""
    used, age = counted
    value = need.wanted + used
    return (
        f"{need.quota.id}: {duration_text(age)} ago Cloud Monitoring counted {need.quota.things(used)} in use in "
        f"{need.place}, of {need.quota.things(allowed)} that this project has; this stack may need "
        f"{need.quota.things(need.wanted)}.\n"
        "  Consequence: if that is still so, instances do not start until others have ended, and a lease is refused.\n"
        f"  Repair: end what is not needed, or ask for {value}: `{request(need, project, value)}`."
    )
