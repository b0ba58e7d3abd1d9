"""Quota values of a project, read from Cloud Quotas.

Owns the request and the parsing of its response. Leaves out the amounts that a plan needs
(`bezel.planner.assemble.quota`) and when the request is sent.

Source: Cloud Quotas v1, quotaInfos.get, November 2026: one entry for each set of dimensions that has a value of its
own, with the places that it holds for; a value of 0 may be left out, as any zero in Google's JSON; -1 is no limit.
`metric` is the metric under which Cloud Monitoring counts the quota.
"""

import math
from dataclasses import dataclass
from urllib.parse import quote

from bezel.rest import ApiError, GoogleClient, endpoint

_UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class Limit:
    """A quota in a place.

    Attributes:
        service: the service that owns the quota, e.g. `run.googleapis.com`.
        quota_id: id of the quota.
        place: a region, or a zone (the quota of its region holds for it too).
        dimensions: the dimensions beside the place, e.g. `(("tpu_family", "CT6E"),)`.
    """

    service: str
    quota_id: str
    place: str
    dimensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Allowed:
    """The value of a quota, in its own unit (infinity without a limit), and the metric that counts it."""

    value: float
    metric: str


def quota_of(client: GoogleClient, project: str, limit: Limit) -> Allowed | None:
    """Return the quota of a project; None where the API returns no value.

    Raises:
        RestError: The request failed.
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
