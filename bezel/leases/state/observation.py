"""Observed and desired state of a lease, the same for both back ends. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from bezel.leases.names import LEASE, MANAGED_BY, OWNER, SPEC, STACK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bezel.leases.requests import LeaseSpec

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
        provisioning_model: FLEX_START, SPOT or STANDARD; "" if not reported.
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
    provisioning_model: str = ""

    @property
    def spec(self) -> str:
        """Hash of its request's body."""
        return self.labels.get(SPEC, "")

    @property
    def stack(self) -> str:
        """Name of the stack that requested it."""
        return self.labels.get(STACK, "")

    @property
    def is_bezels(self) -> bool:
        """Whether any of Bezel's stacks requested it."""
        return self.labels.get(MANAGED_BY) == OWNER and bool(self.labels.get(LEASE))

    def belongs_to(self, stack: str) -> bool:
        """Whether this stack requested it."""
        return self.is_bezels and (self.stack, self.labels.get(LEASE)) == (stack, self.name)

    @property
    def is_live(self) -> bool:
        """Whether it exists or may still be granted; all other states are final."""
        return self.state in {State.WAITING, State.PROVISIONING, State.ACTIVE}

    @property
    def exists(self) -> bool:
        """Whether a resource exists, even one that has ended or is being deleted."""
        return self.state not in {State.ABSENT, State.REFUSED}


class Goal(StrEnum):
    """The final state to reach."""

    STORED = "stored"
    HEALTHY = "healthy"
    GONE = "gone"


@dataclass(frozen=True)
class DesiredState:
    """Desired state of a lease, and the time limit of each step (platform seconds).

    Attributes:
        spec: The lease.
        goal: The final state to reach.
        may_request: Whether a lease may be bought where none is left.
        provisioning_seconds: From PROVISIONING to ACTIVE.
        boot_seconds: From ACTIVE to a server that responds.
        delete_seconds: From the first attempt until it is gone.
        hourly_usd: Zone -> price of an hour, None where unknown.
        current: Id of the lease that serves already, "" without a record.
    """

    spec: LeaseSpec
    goal: Goal
    may_request: bool = True
    provisioning_seconds: float = 1800.0
    boot_seconds: float = 3600.0
    delete_seconds: float = 3600.0
    hourly_usd: Mapping[str, float | None] = field(default_factory=dict)
    current: str = ""


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
    texts = {str(entry.get("key")): str(entry.get("value")) for entry in entries if entry.get("namespace") == NAMESPACE}
    return {name: phase for name in PHASES if name in texts and (phase := _phase(name, texts[name]))}


def _phase(name: str, text: str) -> Phase | None:
    try:
        values = json.loads(text)
        return Phase(name, str(values["state"]), float(values.get("at") or 0), str(values.get("detail") or ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
