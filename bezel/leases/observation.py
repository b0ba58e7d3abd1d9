"""Observation of a lease in a zone, with the same states for both back ends. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from bezel.leases.names import SPEC, is_bezels, is_ours

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PHASES = ("network", "image", "weights", "compile", "healthy")
"""Boot phases of a node until its server responds, in order."""
NAMESPACE = "bezel"


class State(StrEnum):
    """State of a lease."""

    ABSENT = "absent"
    REFUSED = "refused"
    """Nothing is there, and the zone gave the reason why nothing can be."""
    WAITING = "waiting"
    PROVISIONING = "provisioning"
    ACTIVE = "active"
    ENDING = "ending"
    ENDED = "ended"
    FAILED = "failed"
    DELETING = "deleting"


LIVE = frozenset({State.WAITING, State.PROVISIONING, State.ACTIVE})
"""States of a lease that exists or may still be granted; all others are final."""
NOTHING = frozenset({State.ABSENT, State.REFUSED})


@dataclass(frozen=True)
class Observation:
    """A lease as observed in one zone.

    Attributes:
        zone: Its zone.
        name: Its name.
        state: Its state.
        word: Google's own word for the state.
        reason: Why it failed or was refused, "" if not reported.
        labels: Labels of the node or machine.
        id: Full resource name and creation time: differs when it is bought again.
        created_at: When the request was stored, unix seconds.
        active_at: When its machine was created.
        ends_at: End of its run duration.
        node_state: State of the machine.
        health: The platform's verdict on the machine.
        address: Its internal address.
        hardware: The requested hardware, e.g. `v6e-4`.
        run_seconds: Its run duration; None without an end.
        kind: `queued_resource`, `flex_start_vm`, or `node` for one whose request is gone.
    """

    zone: str
    name: str
    state: State
    word: str = ""
    reason: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    created_at: float | None = None
    active_at: float | None = None
    ends_at: float | None = None
    node_state: str = ""
    health: str = ""
    address: str = ""
    hardware: str = ""
    run_seconds: float | None = None
    kind: str = ""

    @property
    def spec(self) -> str:
        """Hash of its request's body."""
        return self.labels.get(SPEC, "")

    @property
    def stack(self) -> str:
        """Name of the stack that requested it."""
        return self.labels.get("stack", "")

    @property
    def ours(self) -> bool:
        """Whether any of Bezel's stacks requested it."""
        return is_bezels(self.labels)

    def belongs(self, stack: str) -> bool:
        """Whether this stack requested it."""
        return is_ours(self.labels, self.name, stack)

    @property
    def live(self) -> bool:
        """Whether it exists or may still be granted."""
        return self.state in LIVE

    @property
    def there(self) -> bool:
        """Whether a resource exists, even one that has ended or is being deleted."""
        return self.state not in NOTHING


@dataclass(frozen=True)
class Phase:
    """One step of a node's boot, as the node reports it.

    Attributes:
        name: One of `PHASES`.
        state: `running`, `done` or `failed`.
        at: When it began, unix seconds.
        detail: The node's text about it.
    """

    name: str
    state: str
    at: float
    detail: str = ""


def phases_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, Phase]:
    """The phases among guest attributes ({namespace, key, value}); entries that are no known phase are left out."""
    found = {str(e.get("key")): str(e.get("value")) for e in entries if e.get("namespace") == NAMESPACE}
    read = {name: _phase(name, found[name]) for name in PHASES if name in found}
    return {name: phase for name, phase in read.items() if phase is not None}


def _phase(name: str, text: str) -> Phase | None:
    try:
        said = json.loads(text)
        return Phase(name, str(said["state"]), float(said.get("at") or 0), str(said.get("detail") or ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
