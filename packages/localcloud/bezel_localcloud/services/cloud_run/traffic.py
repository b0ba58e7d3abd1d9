"""Traffic of a service: choice of a request's revision, and division of instances among revisions. Pure.

The rules are those of run v2's discovery document (TrafficTarget, ServiceScaling) and of Cloud Run's pages on traffic
and on manual scaling.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.services.cloud_run.spec import limits


@dataclass(frozen=True)
class TrafficTarget:
    """A traffic target with its revision resolved.

    Attributes:
        revision: Full name of the revision.
        percent: Its share of the requests to the service's own address; 0 for one that only its tag reaches.
        tag: Tag in its own address, "" without one.
    """

    revision: str
    percent: int
    tag: str


def targets(service: Json) -> list[TrafficTarget]:
    """The targets of a service's traffic; those to the latest ready revision are left out while there is none."""
    resolved = []
    for target in service["traffic"]:
        if target.get("revision"):
            revision = f"{service['name']}/revisions/{target['revision'].rpartition('/')[2]}"
        else:
            revision = service.get("latestReadyRevision", "")
        if revision:
            resolved.append(TrafficTarget(revision, int(target.get("percent") or 0), target.get("tag") or ""))
    return resolved


def shares(service: Json) -> dict[str, int]:
    """Revision -> percent of the traffic, for those that get any."""
    percents: dict[str, int] = {}
    for target in targets(service):
        if target.percent:
            percents[target.revision] = percents.get(target.revision, 0) + target.percent
    return percents


def pick(parts: Mapping[str, int], chance: float) -> str | None:
    """Choose the revision of one request.

    Args:
        parts: Revision -> percent.
        chance: Random number, uniform from 0 to below 1.
    """
    place = chance * sum(parts.values())
    for revision, percent in parts.items():
        if place < percent:
            return revision
        place -= percent
    return None


def divide(count: int, parts: Mapping[str, int]) -> dict[str, int]:
    """Divide a number of instances by shares of traffic: whole parts first, the rest by the largest remainders."""
    whole = sum(parts.values())
    divided = {revision: count * percent // whole for revision, percent in parts.items()}
    by_remainder = sorted(parts, key=lambda revision: -(count * parts[revision] % whole))
    for revision in by_remainder[: count - sum(divided.values())]:
        divided[revision] += 1
    return divided


def bounds(service: Json, revision: Json) -> tuple[int, int]:
    """(minimum, maximum) of a revision's instances.

    The service's bounds apply to all revisions with traffic together, not to a revision that only a tag reaches. With
    manual scaling there are exactly as many instances as the service sets, and the revision's own bounds are ignored; a
    revision that only a tag reaches has its own minimum, or one instance on demand. The rounding of a share of traffic
    is localcloud's own: at least one instance with automatic scaling, since a revision with traffic needs one.
    """
    whole, revision_scaling = service.get("scaling") or {}, revision.get("scaling") or {}
    minimum = int(revision_scaling.get("minInstanceCount") or 0)
    maximum = int(revision_scaling.get("maxInstanceCount") or limits()["instances"]["default_max"])
    parts, name = shares(service), revision["name"]
    if whole.get("scalingMode") == "MANUAL":
        if name not in parts:
            return minimum, max(minimum, 1)
        count = divide(int(whole.get("manualInstanceCount") or 0), parts)[name]
        return count, count
    if name in parts:
        minimum = max(minimum, divide(int(whole.get("minInstanceCount") or 0), parts)[name])
        if whole.get("maxInstanceCount"):
            maximum = min(maximum, max(1, divide(int(whole["maxInstanceCount"]), parts)[name]))
    return minimum, max(maximum, minimum)
