"""Next step of a lease, decided by the observations of all zones.

Nothing that matters is stored outside the zones: a run that starts after a kill reads them and reaches the same end.
Exactly one lease is the goal, or none; resources of other owners are never touched. Leaves out acting (`controller`)
and wording (`messages`). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel.leases import messages
from bezel.leases.state.observation import DesiredState, Goal, Observation, Phase, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bezel.leases.clock import PlatformClock
    from bezel.leases.requests import ZoneChoice
    from bezel_base.errors import Problem

STORING = "STORING"
"""Bezel's word for a request that was sent, and is neither visible nor refused yet."""
GRACE_SECONDS = 120.0
"""Added to the patience, which Google enforces itself."""
STORING_SECONDS = 600.0
SETTLING_SECONDS = 30.0
"""How long an accepted request may stay invisible."""
RETRY_DELETE_SECONDS = 60.0
"""Delay after which a deletion without effect is requested again."""


@dataclass
class Memory:
    """Memory of one run of the controller: only times, and the zones tried.

    Attributes:
        tried: Zone -> why it grants no lease.
        expected: Zones in which this run sent or observed a request.
        reached: Observation's id and state -> when this run first observed it.
        clearing: Zone -> since when it is being emptied.
        deleted: Zone -> when its deletion was last requested.
    """

    tried: dict[str, str] = field(default_factory=dict)
    expected: set[str] = field(default_factory=set)
    reached: dict[tuple[str, str], float] = field(default_factory=dict)
    clearing: dict[str, float] = field(default_factory=dict)
    deleted: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """Request the lease in a zone."""

    choice: ZoneChoice


@dataclass(frozen=True)
class Delete:
    """Delete the lease in a zone."""

    zone: str
    line: str


@dataclass(frozen=True)
class Wait:
    """Observe again after a number of platform seconds; the line describes the wait."""

    seconds: float
    line: str


@dataclass(frozen=True)
class Done:
    """The goal is reached; None where there is no lease."""

    lease: Observation | None


@dataclass(frozen=True)
class Failed:
    """The goal cannot be reached; `is_refused` where no zone grants the lease, and nothing of it is left."""

    problem: Problem
    is_refused: bool = False


Step = Request | Delete | Wait | Done | Failed


def next_step(
    observations: Mapping[str, Observation],
    desired: DesiredState,
    memory: Memory,
    clock: PlatformClock,
    phases: Mapping[str, Phase],
) -> Step:
    """The next step.

    Args:
        observations: Observation of every zone in which the lease may be.
        desired: The desired state.
        memory: Memory of this run; updated.
        clock: The time.
        phases: Boot phases that the lease's node reports.
    """
    spec = desired.spec
    existing = [lease for zone in spec.all_zones if (lease := observations[zone]).exists]
    if desired.goal is Goal.GONE:
        own_leases = [lease for lease in existing if lease.belongs_to(spec.stack)]
        return _clear(own_leases, desired, memory, clock) or Done(None)
    if foreign := [lease for lease in existing if not lease.belongs_to(spec.stack)]:
        return Failed(messages.not_ours(foreign[0], spec))
    _note(observations, desired, memory, clock)
    selected = select_lease(existing, desired, memory)
    if selected is None and not desired.may_request:
        return Done(None)
    clearing = _clear([lease for lease in existing if lease is not selected], desired, memory, clock)
    if isinstance(clearing, Delete | Failed):
        return clearing
    if selected is None:
        return clearing or _request(desired, memory)
    step = _await(selected, desired, memory, clock, phases)
    return clearing if clearing is not None and isinstance(step, Done) else step


def _note(observations: Mapping[str, Observation], desired: DesiredState, memory: Memory, clock: PlatformClock) -> None:
    """Record zones that refused, zones with a live request, and zones whose request failed or waited too long."""
    for zone, lease in observations.items():
        if lease.state is State.REFUSED:
            memory.tried.setdefault(zone, lease.reason)
        elif lease.is_live and desired.spec.describes(lease.spec):
            memory.expected.add(zone)
            choice = desired.spec.choice(zone)
            queues = lease.state is State.WAITING and lease.word != STORING
            if queues and _waited_seconds(lease, clock) > choice.patience_seconds + GRACE_SECONDS + clock.slack:
                memory.tried.setdefault(zone, messages.out_of_patience(choice))
        elif zone in memory.expected and lease.state in {State.FAILED, State.ENDING, State.ENDED}:
            memory.tried.setdefault(zone, messages.request_failed(lease))
        elif zone in memory.expected and lease.state is State.ABSENT and zone not in memory.clearing:
            memory.tried.setdefault(zone, messages.VANISHED)


def select_lease(existing: Sequence[Observation], desired: DesiredState, memory: Memory) -> Observation | None:
    """The one lease to keep: the serving one, then the furthest state, then the oldest; none that waited too long."""
    order = (State.WAITING, State.PROVISIONING, State.ACTIVE)
    live = [lease for lease in existing if lease.is_live and desired.spec.describes(lease.spec)]
    return max(
        (lease for lease in live if lease.state is not State.WAITING or lease.zone not in memory.tried),
        key=lambda lease: (lease.id == desired.current, order.index(lease.state), -(lease.created_at or 0.0)),
        default=None,
    )


def _clear(rest: list[Observation], desired: DesiredState, memory: Memory, clock: PlatformClock) -> Step | None:
    """The step that removes what is left; None where nothing is left."""
    for zone in memory.clearing.keys() - {lease.zone for lease in rest}:
        del memory.clearing[zone]
        memory.expected.discard(zone)
        memory.deleted.pop(zone, None)
    for lease in rest:
        since = memory.clearing.setdefault(lease.zone, clock.now())
        if clock.since(since) > desired.delete_seconds + clock.slack:
            return Failed(messages.not_gone(lease, clock.since(since), desired))
    for lease in rest:
        last = memory.deleted.get(lease.zone)
        if last is None or clock.since(last) > RETRY_DELETE_SECONDS:
            return Delete(lease.zone, messages.deleting(lease, desired))
    if not rest:
        return None
    elapsed = clock.since(min(memory.clearing.values()))
    return Wait(_interval(elapsed), messages.clearing(rest, elapsed, desired.delete_seconds))


def _request(desired: DesiredState, memory: Memory) -> Step:
    untried = [choice for choice in desired.spec.zones if choice.zone not in memory.tried]
    return (
        Request(untried[0])
        if untried
        else Failed(messages.zones_exhausted(desired.spec, memory.tried), is_refused=True)
    )


def _await(
    lease: Observation, desired: DesiredState, memory: Memory, clock: PlatformClock, phases: Mapping[str, Phase]
) -> Step:
    if lease.state is State.WAITING:
        return _queue(lease, desired, clock)
    elapsed = clock.since(memory.reached.setdefault((lease.id, lease.state), clock.now()))
    if desired.goal is Goal.STORED:
        return Done(lease)
    if lease.state is State.PROVISIONING:
        if elapsed > desired.provisioning_seconds + clock.slack:
            return Failed(messages.not_provisioned(lease, elapsed, desired))
        return Wait(_interval(elapsed), messages.provisioning(lease, elapsed, desired))
    if failed := [phase for phase in phases.values() if phase.state == "failed"]:
        return Failed(messages.boot_failed(lease, failed[0], desired))
    if "healthy" in phases and phases["healthy"].state == "done":
        return Done(lease)
    if elapsed > desired.boot_seconds + clock.slack:
        return Failed(messages.never_healthy(lease, phases, elapsed, desired))
    return Wait(_interval(elapsed), messages.booting(lease, phases, elapsed, desired))


def _queue(lease: Observation, desired: DesiredState, clock: PlatformClock) -> Step:
    elapsed = _waited_seconds(lease, clock)
    if lease.word == STORING and elapsed > STORING_SECONDS:
        return Failed(messages.never_stored(lease, elapsed))
    if desired.goal is Goal.STORED and (lease.word != STORING or elapsed > SETTLING_SECONDS):
        return Done(lease)
    if lease.word == STORING:
        return Wait(_interval(elapsed), messages.storing(lease, elapsed))
    return Wait(_interval(elapsed), messages.queue_text(lease, elapsed, desired.spec))


def _waited_seconds(lease: Observation, clock: PlatformClock) -> float:
    return clock.since(lease.created_at) if lease.created_at is not None else 0.0


def _interval(elapsed: float) -> float:
    """Wait before the next observation, growing with the time elapsed."""
    return min(60.0, max(5.0, elapsed / 8))
