"""What one look at a lease in a zone says, in the same words for both back ends. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from bezel.leases.names import SPEC, is_bezels, is_ours

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PHASES = ("network", "image", "weights", "compile", "healthy")
"""What a node goes through until its server answers, in order."""
NAMESPACE = "bezel"


class State(StrEnum):
    """Where a lease is on its way."""

    ABSENT = "absent"
    REFUSED = "refused"
    """Nothing is there, and the zone said why nothing can be."""
    WAITING = "waiting"
    PROVISIONING = "provisioning"
    ACTIVE = "active"
    ENDING = "ending"
    ENDED = "ended"
    FAILED = "failed"
    DELETING = "deleting"


LIVE = frozenset({State.WAITING, State.PROVISIONING, State.ACTIVE})
"""States of a lease that is there or may still come; everything else is over."""
NOTHING = frozenset({State.ABSENT, State.REFUSED})


@dataclass(frozen=True)
class Observation:
    """A lease as it was seen in one zone.

    Attributes:
        zone: Where.
        name: Its name.
        state: Where it is on its way.
        word: Google's own word for that.
        reason: Why it failed or was refused, "" where nothing is said.
        labels: Of the node or machine.
        id: Full resource name and creation: another one when it is bought again.
        created_at: When the request was stored, unix seconds.
        active_at: When its machine was made.
        ends_at: When its run duration is over.
        node_state: State of the machine.
        health: The platform's verdict on the machine.
        address: Its internal address.
        hardware: What was asked for, e.g. `v6e-4`.
        run_seconds: How long it runs at most; None without an end.
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
        """Hash of the body that it was asked for with."""
        return self.labels.get(SPEC, "")

    @property
    def stack(self) -> str:
        """Whose it is."""
        return self.labels.get("stack", "")

    @property
    def ours(self) -> bool:
        """Whether any stack of ours asked for it."""
        return is_bezels(self.labels)

    def belongs(self, stack: str) -> bool:
        """Whether this very stack asked for it."""
        return is_ours(self.labels, self.name, stack)

    @property
    def live(self) -> bool:
        """Whether it is there or may still come."""
        return self.state in LIVE

    @property
    def there(self) -> bool:
        """Whether anything is there at all, be it over or on its way out."""
        return self.state not in NOTHING


@dataclass(frozen=True)
class Phase:
    """One step of a node's boot, as the node reports it.

    Attributes:
        name: One of `PHASES`.
        state: `running`, `done` or `failed`.
        at: Since when, unix seconds.
        detail: What the node says of it.
    """

    name: str
    state: str
    at: float
    detail: str = ""


def phases_of(entries: Iterable[Mapping[str, Any]]) -> dict[str, Phase]:
    """The phases among guest attributes ({namespace, key, value}); what is no phase of ours is left out."""
    found = {str(e.get("key")): str(e.get("value")) for e in entries if e.get("namespace") == NAMESPACE}
    read = {name: _phase(name, found[name]) for name in PHASES if name in found}
    return {name: phase for name, phase in read.items() if phase is not None}


def _phase(name: str, text: str) -> Phase | None:
    try:
        said = json.loads(text)
        return Phase(name, str(said["state"]), float(said.get("at") or 0), str(said.get("detail") or ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
