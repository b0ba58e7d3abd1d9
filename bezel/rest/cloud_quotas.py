"""What Cloud Quotas says that a project may have of something in a place.

Owns the reading of one answer. Leaves out what needs how much (`bezel.planner.assemble.quota`) and who asks when.

Source: Cloud Quotas v1, quotaInfos.get, November 2026: one entry for each set of dimensions that has a value of its
own, with the places that it holds for; a value of 0 may be left out, as any zero in Google's JSON; -1 is no limit.
`metric` names what the quota counts, as Cloud Monitoring does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from bezel.rest import ApiError, endpoint

if TYPE_CHECKING:
    from bezel.rest import GoogleClient

_UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class Limit:
    """A quota in a place.

    Attributes:
        service: whose API it belongs to, e.g. `run.googleapis.com`.
        quota_id: of the quota.
        place: a region, or a zone, whose region's quota holds for it too.
        dimensions: what it is counted by beside the place, e.g. `(("tpu_family", "CT6E"),)`.
    """

    service: str
    quota_id: str
    place: str
    dimensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a project may have, as the quota counts (infinity without a limit), and the metric that counts it."""

    value: float
    metric: str


def quota_of(client: GoogleClient, project: str, limit: Limit) -> Allowed | None:
    """What a project may have; None where the API tells no value.

    Raises:
        RestError: It could not be asked.
    """
    name = f"services/{limit.service}/quotaInfos/{quote(limit.quota_id, safe='')}"
    path = f"projects/{project}/locations/global/{name}"
    try:
        found = client.get(f"{endpoint('CLOUD_QUOTAS')}{path}")
    except ApiError as error:
        if error.status == 404:
            return None
        raise
    places = {limit.place, limit.place.rpartition("-")[0]}
    for info in found.get("dimensionsInfos") or []:
        own = info.get("dimensions") or {}
        if any(own.get(name, wanted) != wanted for name, wanted in limit.dimensions):
            continue
        if places & {*own.values(), *(info.get("applicableLocations") or [])}:
            value = int((info.get("details") or {}).get("value") or 0)
            return Allowed(math.inf if value == _UNLIMITED else value, str(found.get("metric") or ""))
    return None
