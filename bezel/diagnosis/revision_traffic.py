"""Traffic of a Cloud Run service during a rollout, as rules over run v2's description of the service.

`direct`: the newest ready revision has all traffic, from the moment it is ready. `gated`: the serving revision keeps
its traffic, pinned by name; the newest revision is reached by a tag only, and gets the traffic after its checks.

Owns the declared and the moved traffic. Leaves requests to `components`, and the quota for two revisions to
`bezel.planner.assemble.quota`. Pure, and apart from the planner: the processes that move and check start faster
without it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# Annotation of a service: a fingerprint of its inputs. Only a gated rollout sets it, so it also marks one.
FINGERPRINT = "bezel-deployment"
# Annotation of a revision: the failed one that it is another attempt at.
ATTEMPT = "bezel-attempt"
RESTARTED = "bezel-restarted-at"
# Tag of the newest ready revision: an address of its own, with or without traffic.
TAG = "newest"

_LATEST = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
_PINNED = "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION"


@dataclass(frozen=True, slots=True)
class Target:
    """One traffic target of a service.

    Attributes:
        revision: Its short name; "" for whichever is the newest ready one.
        percent: Its share of the requests to the service's address.
        tag: Name of an address of its own, "" without one.
    """

    revision: str = ""
    percent: int = 0
    tag: str = ""

    @property
    def type(self) -> str:
        """The allocation type of run v2."""
        return _PINNED if self.revision else _LATEST

    def as_json(self) -> dict[str, Any]:
        """The JSON of run v2, without zero values."""
        fields = {"type": self.type, "revision": self.revision, "percent": self.percent, "tag": self.tag}
        return {key: value for key, value in fields.items() if value}


DIRECT = (Target(percent=100),)
"""All traffic to the newest revision that is ready."""
FIRST = (Target(percent=100, tag=TAG),)
"""The same with the tag: the first traffic of a gated service, where no revision serves yet."""


def moved_to(revision: str) -> tuple[Target, ...]:
    """The traffic after a revision passed its checks."""
    return Target(revision, 100), Target(tag=TAG)


def shares(service: Mapping[str, Any]) -> dict[str, int]:
    """Short name of each revision with traffic -> its percent, from the service's description.

    Without targets all of it goes to the newest revision that is ready (discovery document of run v2).
    """
    percents: dict[str, int] = {}
    for target in service.get("traffic") or (Target(percent=100).as_json(),):
        name = _short(target.get("revision") or service.get("latestReadyRevision"))
        percent = int(target.get("percent") or 0)
        if name and percent:
            percents[name] = percents.get(name, 0) + percent
    return percents


def has_all_traffic(service: Mapping[str, Any], revision: str) -> bool:
    """Whether a gated rollout of this revision is complete: it has all traffic, by name, and the tag exists."""
    return shares(service) == {revision: 100} and _is_held(service)


def is_direct(service: Mapping[str, Any]) -> bool:
    """Whether all traffic goes to whichever revision is the newest ready one, and no other address exists."""
    traffic = service.get("traffic") or (Target(percent=100).as_json(),)
    return [(_short(t.get("revision")), int(t.get("percent") or 0), t.get("tag") or "") for t in traffic] == [
        ("", 100, "")
    ]


def is_gated(service: Mapping[str, Any]) -> bool:
    """Whether the service was last deployed by a gated rollout."""
    return FINGERPRINT in (service.get("annotations") or {})


def declared_targets(service: Mapping[str, Any] | None, fingerprint: str) -> tuple[Target, ...] | None:
    """The traffic that a gated service is declared with.

    An update of a service includes its traffic, and keeps a new revision free of it only by naming the serving one.
    Without an update nothing is declared: the traffic was moved since the last one, and the targets declared then
    would be a permanent difference.

    Args:
        service: The present service in run v2's description; None where there is none.
        fingerprint: Fingerprint of all declared inputs except the traffic.

    Returns:
        The targets, or None where the service is to keep its present ones.
    """
    serving = {} if service is None else shares(service)
    if service is None or not serving or not _short(service.get("latestReadyRevision")):
        return FIRST
    same = (service.get("annotations") or {}).get(FINGERPRINT) == fingerprint
    if same and _is_held(service):
        return None
    return *(Target(name, percent) for name, percent in serving.items()), Target(tag=TAG)


def attempt(service: Mapping[str, Any] | None) -> str:
    """Short name of the failed revision, which distinguishes the next one from it; "" where none failed.

    Cloud Run never retries a failed revision, and makes no other one as long as the template stays the same.
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
    """Sixteen digits that change with anything in the inputs; objects count by their attributes.

    What is known only after the deploy (an output of the engine's) counts as that, whatever it will be.
    """
    text = json.dumps(declared_inputs, default=_attributes, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _attributes(value: object) -> object:
    return "(known after the deploy)" if hasattr(value, "is_known") else vars(value)


def _is_held(service: Mapping[str, Any]) -> bool:
    """Whether no new revision gets traffic by itself, and the tag points to the newest one."""
    traffic = service.get("traffic") or ()
    targets = [(bool(t.get("revision")), int(t.get("percent") or 0), t.get("tag")) for t in traffic]
    pinned = all(by_name for by_name, percent, _ in targets if percent)
    return pinned and any(not by_name and tag == TAG for by_name, _, tag in targets)


def _short(revision: object) -> str:
    return str(revision or "").rpartition("/")[2]
