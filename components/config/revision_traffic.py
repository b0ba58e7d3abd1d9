"""How a new revision of a Cloud Run service comes to its traffic, as rules over what run v2 says of the service.

`direct`: the newest revision that is ready has all traffic, from the moment it is ready. `gated`: what serves goes on
serving, pinned by name; the newest revision is reached by a tag only, and gets the traffic once it was checked there.

Owns what is declared and what is moved. Leaves asking and moving to `components`, and whether two revisions have room
to `bezel.planner.assemble.quota`. Pure, and apart from the planner: the processes that move and check start faster
without it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# On a service: which inputs made it what it is. Set by a gated rollout only, so it also tells one.
FINGERPRINT = "bezel-deployment"
# On a revision: the failed one that it is another attempt at.
ATTEMPT = "bezel-attempt"
# Of the newest revision that is ready: its own address, whether it has traffic or not.
TAG = "newest"

_LATEST = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
_PINNED = "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION"


@dataclass(frozen=True, slots=True)
class Target:
    """One traffic target of a service.

    Attributes:
        revision: Its short name; "" is the newest that is ready, whichever that is.
        percent: Its share of what comes to the service's address.
        tag: What names an address of its own, "" without one.
    """

    revision: str = ""
    percent: int = 0
    tag: str = ""

    @property
    def type(self) -> str:
        """The allocation type of run v2."""
        return _PINNED if self.revision else _LATEST

    def as_json(self) -> dict[str, Any]:
        """As run v2 takes it, without what is zero."""
        said = {"type": self.type, "revision": self.revision, "percent": self.percent, "tag": self.tag}
        return {key: value for key, value in said.items() if value}


DIRECT = (Target(percent=100),)
"""All traffic to the newest revision that is ready."""
FIRST = (Target(percent=100, tag=TAG),)
"""The same under a gate that holds nothing back yet, as no revision serves."""


def moved_to(revision: str) -> tuple[Target, ...]:
    """The traffic once a revision passed its checks."""
    return Target(revision, 100), Target(tag=TAG)


def shares(service: Mapping[str, Any]) -> dict[str, int]:
    """Short name of each revision that has traffic -> its percent, as the service's own description says it.

    Without targets all of it goes to the newest revision that is ready (discovery document of run v2).
    """
    found: dict[str, int] = {}
    for target in service.get("traffic") or (Target(percent=100).as_json(),):
        name = _short(target.get("revision") or service.get("latestReadyRevision"))
        percent = int(target.get("percent") or 0)
        if name and percent:
            found[name] = found.get(name, 0) + percent
    return found


def has_all_traffic(service: Mapping[str, Any], revision: str) -> bool:
    """Whether a gated rollout of this revision is over: it has all traffic, by name, and the tag is there."""
    return shares(service) == {revision: 100} and _is_held(service)


def is_gated(service: Mapping[str, Any]) -> bool:
    """Whether a gated rollout made the service what it is."""
    return FINGERPRINT in (service.get("annotations") or {})


def declared(service: Mapping[str, Any] | None, fingerprint: str) -> tuple[Target, ...] | None:
    """The traffic that a gated service is declared with.

    Whoever updates a service sends its traffic along, and leaves a new revision none only if what serves now is named.
    Where nothing is to be updated nothing is declared: the traffic was moved since the last update, and what was
    declared then would be a difference for ever.

    Args:
        service: As run v2 describes it now; None where there is none.
        fingerprint: Of all that is declared beside the traffic.

    Returns:
        The targets, or None where the service is to keep those that it has.
    """
    serving = {} if service is None else shares(service)
    if service is None or not serving or not _short(service.get("latestReadyRevision")):
        return FIRST
    same = (service.get("annotations") or {}).get(FINGERPRINT) == fingerprint
    if same and _is_held(service):
        return None
    return *(Target(name, percent) for name, percent in serving.items()), Target(tag=TAG)


def attempt(service: Mapping[str, Any] | None) -> str:
    """What tells the revision to be made from one that failed: that one's short name; "" where none has.

    Cloud Run never tries a failed revision again, and makes no other one as long as the template stays the same.
    """
    if service is None:
        return ""
    created, ready = _short(service.get("latestCreatedRevision")), _short(service.get("latestReadyRevision"))
    failed = (service.get("terminalCondition") or {}).get("state") == "CONDITION_FAILED"
    if failed and created != ready:
        return created
    annotations = (service.get("template") or {}).get("annotations") or {}
    return str(annotations.get(ATTEMPT, ""))


def fingerprint_of(declared_inputs: object) -> str:
    """Sixteen digits that change with anything in the inputs; objects count by their attributes."""
    text = json.dumps(declared_inputs, default=vars, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_held(service: Mapping[str, Any]) -> bool:
    """Whether no new revision gets traffic by itself, and the tag shows the newest one."""
    given = service.get("traffic") or ()
    targets = [(bool(t.get("revision")), int(t.get("percent") or 0), t.get("tag")) for t in given]
    pinned = all(by_name for by_name, percent, _ in targets if percent)
    return pinned and any(not by_name and tag == TAG for by_name, _, tag in targets)


def _short(revision: object) -> str:
    return str(revision or "").rpartition("/")[2]
