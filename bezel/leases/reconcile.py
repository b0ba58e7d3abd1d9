"""Next step of a lease, decided by the observations of all zones.

Nothing that matters is stored outside the zones: a run that starts after a kill reads them and reaches the same end.
Exactly one lease is the goal, or none; resources of other owners are never touched. Leaves out acting (`controller`)
and wording (`messages`). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel.leases import messages
from bezel.leases.observation import Observation, Phase, State
from bezel.leases.wanted import Goal, Wanted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bezel.leases.clock import PlatformClock
    from bezel.leases.requests import ZoneChoice

STORING = "STORING"
"""Bezel's word for a request that was sent, and is neither visible nor refused yet."""
GRACE_SECONDS = 120.0
"""Added to the patience, which Google enforces itself."""
STORING_SECONDS = 600.0
SETTLING_SECONDS = 30.0
"""How long an accepted request may stay invisible."""
AGAIN_SECONDS = 60.0
"""Delay after which a deletion without effect is requested again."""


@dataclass
class Memory:
    """Memory of one run of the controller: only times, and the zones tried.

    Attributes:
        tried: Zone -> why it grants no lease.
        hoped: Zones in which this run sent or observed a request.
        reached: Observation's id and state -> when this run first observed it.
        clearing: Zone -> since when it is being emptied.
        deleted: Zone -> when its deletion was last requested.
    """

    tried: dict[str, str] = field(default_factory=dict)
    hoped: set[str] = field(default_factory=set)
    reached: dict[tuple[str, str], float] = field(default_factory=dict)
    clearing: dict[str, float] = field(default_factory=dict)
    deleted: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Ask:
    """Request the lease in a zone."""

    choice: ZoneChoice


@dataclass(frozen=True)
class Delete:
    """Delete the lease in a zone."""

    zone: str
    line: str


@dataclass(frozen=True)
class Wait:
    """Look again after a number of platform seconds; the line describes the wait."""

    seconds: float
    line: str


@dataclass(frozen=True)
class Done:
    """The goal is reached; without an observation there is no lease."""

    seen: Observation | None


@dataclass(frozen=True)
class Failed:
    """The goal cannot be reached; the text gives the repair."""

    text: str


Step = Ask | Delete | Wait | Done | Failed


def next_step(
    seen: Mapping[str, Observation], wanted: Wanted, memory: Memory, clock: PlatformClock, phases: Mapping[str, Phase]
) -> Step:
    """The next step.

    Args:
        seen: Observation of every zone in which the lease may be.
        wanted: The desired state.
        memory: Memory of this run; updated.
        clock: The time.
        phases: Boot phases that the lease's node reports.
    """
    spec = wanted.spec
    there = [one for zone in spec.everywhere if (one := seen[zone]).there]
    if wanted.goal is Goal.GONE:
        mine = [one for one in there if one.belongs(spec.stack)]
        return _cleared(mine, wanted, memory, clock) or Done(None)
    if strangers := [one for one in there if not one.belongs(spec.stack)]:
        return Failed(messages.not_ours(strangers[0], spec))
    _note(seen, wanted, memory, clock)
    keeper = select_lease(there, wanted, memory)
    rest = [one for one in there if one is not keeper]
    if keeper is None and not wanted.may_ask:
        return Done(None)
    clearing = _cleared(rest, wanted, memory, clock)
    if isinstance(clearing, Delete | Failed):
        return clearing
    if keeper is None:
        return clearing or _asked(wanted, memory)
    step = _kept(keeper, wanted, memory, clock, phases)
    return clearing if clearing is not None and isinstance(step, Done) else step


def _note(seen: Mapping[str, Observation], wanted: Wanted, memory: Memory, clock: PlatformClock) -> None:
    """Record zones that refused, zones with a live request, and zones whose request failed or waited too long."""
    for zone, one in seen.items():
        if one.state is State.REFUSED:
            memory.tried.setdefault(zone, one.reason)
        elif one.live and one.spec == wanted.spec.hash:
            memory.hoped.add(zone)
            choice = wanted.spec.choice(zone)
            queues = one.state is State.WAITING and one.word != STORING
            if queues and _waited(one, clock) > choice.patience_seconds + GRACE_SECONDS + clock.slack:
                memory.tried.setdefault(zone, messages.out_of_patience(choice))
        elif zone in memory.hoped and one.state in {State.FAILED, State.ENDING, State.ENDED}:
            memory.tried.setdefault(zone, messages.request_failed(one))
        elif zone in memory.hoped and one.state is State.ABSENT and zone not in memory.clearing:
            memory.tried.setdefault(zone, messages.vanished())


def select_lease(there: Sequence[Observation], wanted: Wanted, memory: Memory) -> Observation | None:
    """The one lease to keep: the serving one, then the furthest state, then the oldest; none that waited too long."""
    order = (State.WAITING, State.PROVISIONING, State.ACTIVE)
    live = [one for one in there if one.live and one.spec == wanted.spec.hash]
    live = [one for one in live if one.state is not State.WAITING or one.zone not in memory.tried]
    return max(
        live,
        key=lambda one: (one.id == wanted.current, order.index(one.state), -(one.created_at or 0.0)),
        default=None,
    )


def _cleared(rest: list[Observation], wanted: Wanted, memory: Memory, clock: PlatformClock) -> Step | None:
    """The step that removes what is left; None where nothing is left."""
    for zone in memory.clearing.keys() - {one.zone for one in rest}:
        del memory.clearing[zone]
        memory.hoped.discard(zone)
        memory.deleted.pop(zone, None)
    for one in rest:
        since = memory.clearing.setdefault(one.zone, clock.now())
        if clock.since(since) > wanted.delete_seconds + clock.slack:
            return Failed(messages.not_gone(one, clock.since(since), wanted))
    for one in rest:
        last = memory.deleted.get(one.zone)
        if last is None or clock.since(last) > AGAIN_SECONDS:
            return Delete(one.zone, messages.deleting(one))
    if not rest:
        return None
    elapsed = clock.since(min(memory.clearing.values()))
    return Wait(_pace(elapsed), messages.going(rest, elapsed, wanted.delete_seconds))


def _asked(wanted: Wanted, memory: Memory) -> Step:
    for choice in wanted.spec.zones:
        if choice.zone not in memory.tried:
            return Ask(choice)
    return Failed(messages.zones_exhausted(wanted.spec, memory.tried))


def _kept(
    keeper: Observation, wanted: Wanted, memory: Memory, clock: PlatformClock, phases: Mapping[str, Phase]
) -> Step:
    stored = wanted.goal is Goal.STORED
    if keeper.state is State.WAITING:
        return _queued(keeper, wanted, clock)
    reached = memory.reached.setdefault((keeper.id, keeper.state), clock.now())
    elapsed = clock.since(reached)
    if stored:
        return Done(keeper)
    if keeper.state is State.PROVISIONING:
        if elapsed > wanted.provisioning_seconds + clock.slack:
            return Failed(messages.not_provisioned(keeper, elapsed, wanted))
        return Wait(_pace(elapsed), messages.provisioning(keeper, elapsed, wanted))
    if broken := [phase for phase in phases.values() if phase.state == "failed"]:
        return Failed(messages.boot_failed(keeper, broken[0], wanted))
    if "healthy" in phases and phases["healthy"].state == "done":
        return Done(keeper)
    if elapsed > wanted.boot_seconds + clock.slack:
        return Failed(messages.never_healthy(keeper, phases, elapsed, wanted))
    return Wait(_pace(elapsed), messages.booting(keeper, phases, elapsed, wanted))


def _queued(keeper: Observation, wanted: Wanted, clock: PlatformClock) -> Step:
    elapsed = _waited(keeper, clock)
    if keeper.word == STORING:
        if elapsed > STORING_SECONDS:
            return Failed(messages.never_stored(keeper, elapsed))
        if wanted.goal is Goal.STORED and elapsed > SETTLING_SECONDS:
            return Done(keeper)
        return Wait(_pace(elapsed), messages.storing(keeper, elapsed))
    if wanted.goal is Goal.STORED:
        return Done(keeper)
    return Wait(_pace(elapsed), messages.queued(keeper, elapsed, wanted.spec.choice(keeper.zone), wanted.spec))


def _waited(one: Observation, clock: PlatformClock) -> float:
    return clock.since(one.created_at) if one.created_at is not None else 0.0


def _pace(elapsed: float) -> float:
    """Wait before the next look, growing with the time elapsed."""
    return min(60.0, max(5.0, elapsed / 8))
