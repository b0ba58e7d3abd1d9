"""Record of a rollback: the annotation of a Cloud Run service that says which revision has the traffic, and since when.

It is written by the same request that moves the traffic, so there is never one without the other. It is in force as
long as that revision has all traffic by its name, and no deploy has ended it. A deploy moves the traffic after it
updated the service, so the record stays, and the state of that move says which rollback it has ended. Pure.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ANNOTATION = "bezel-rollback"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_NAMES = r"[a-z0-9-]{1,63}(?:,[a-z0-9-]{1,63})*"
_RECORD = re.compile(
    rf"([a-z0-9-]{{1,63}}) since ({_TIME}) from ({_NAMES})"
    rf"(?:, earlier from ({_NAMES}))?(?:; deployed ([0-9a-f]{{16}}))?"
)
_ENDED = re.compile(rf"ended {_TIME}, from ({_NAMES})")
_MOST_LEFT = 20


@dataclass(frozen=True)
class Rollback:
    """A rollback.

    Attributes:
        revision: Short name of the revision that got the traffic.
        since: When, RFC 3339 in UTC to the second.
        origin: Short names of those that had it before.
        earlier: Short names of those that earlier rollbacks have left.
        deployed: Fingerprint of the declaration that a deploy ends it with; "" before a deploy did.
    """

    revision: str
    since: str
    origin: tuple[str, ...]
    earlier: tuple[str, ...] = ()
    deployed: str = ""

    def text(self) -> str:
        """The value of the annotation."""
        earlier = f", earlier from {','.join(self.earlier)}" if self.earlier else ""
        deployed = f"; deployed {self.deployed}" if self.deployed else ""
        return f"{self.revision} since {self.since} from {','.join(self.origin)}{earlier}{deployed}"

    def sentence(self) -> str:
        """What is so, for a reader, without a full stop."""
        return f"pinned to {self.revision} since {self.since} by a rollback from {' and '.join(self.origin)}"

    @property
    def revisions_left(self) -> tuple[str, ...]:
        """Short names of all revisions that this and earlier rollbacks have left, the last ones first."""
        names = dict.fromkeys((*self.origin, *self.earlier))
        return tuple(name for name in names if name != self.revision)[:_MOST_LEFT]


def new_rollback(service: Mapping[str, Any], revision: str, since: str, origin: Sequence[str]) -> Rollback:
    """A rollback of a service, which remembers what earlier ones have left.

    Args:
        service: The service in run v2's description.
        revision: As of `Rollback`.
        since: As of `Rollback`.
        origin: As of `Rollback`.
    """
    earlier = tuple(name for name in left_by(service) if name not in (revision, *origin))
    return Rollback(revision, since, tuple(origin), earlier)


def recorded_rollback(service: Mapping[str, Any]) -> Rollback | None:
    """The rollback that a service's annotation records, in force or not; None without one.

    Args:
        service: The service in run v2's description.
    """
    match = _RECORD.fullmatch(_value(service))
    if match is None:
        return None
    earlier = tuple(match[4].split(",")) if match[4] else ()
    return Rollback(match[1], match[2], tuple(match[3].split(",")), earlier, match[5] or "")


def left_by(service: Mapping[str, Any]) -> tuple[str, ...]:
    """Short names of the revisions that rollbacks have left, each for a fault."""
    if (rollback := recorded_rollback(service)) is not None:
        return rollback.revisions_left
    ended = _ENDED.fullmatch(_value(service))
    return tuple(ended[1].split(",")) if ended else ()


def in_force(service: Mapping[str, Any], ended: str = "") -> Rollback | None:
    """The rollback that decides where the traffic goes; None without one.

    Args:
        service: The service in run v2's description.
        ended: Time of the rollback that the last deploy has ended, by the state; "" without one.
    """
    rollback = recorded_rollback(service)
    if rollback is None or rollback.since == ended:
        return None
    shares = [target for target in service.get("traffic") or () if target.get("percent")]
    is_pinned = [_short(target.get("revision")) for target in shares] == [rollback.revision]
    return rollback if is_pinned else None


def ended_text(service: Mapping[str, Any] | None) -> str:
    """The annotation with which a deploy ends the rollback of a service; "" where there was none."""
    if service is None:
        return ""
    rollback = recorded_rollback(service)
    if rollback is not None:
        return f"ended {rollback.since}, from {','.join(rollback.revisions_left or rollback.origin)}"
    return kept_text(service)


def kept_text(service: Mapping[str, Any] | None) -> str:
    """The annotation as it is, which a deploy keeps by declaring it; "" where there was no rollback."""
    value = "" if service is None else _value(service)
    return value if _RECORD.fullmatch(value) or _ENDED.fullmatch(value) else ""


def _value(service: Mapping[str, Any]) -> str:
    return str((service.get("annotations") or {}).get(ANNOTATION) or "")


def _short(revision: object) -> str:
    return str(revision or "").rpartition("/")[2]
