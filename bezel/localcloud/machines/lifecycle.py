"""The way of a request for machines, from stored to gone: a function of time. Pure.

The states are those of the TPU API's queued resources; Compute Engine tells the same way in other words. Waits of the
platform are given in real seconds here (they go by faster than in truth); the run duration is real time everywhere.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# States in which a machine is kept for a request, or runs.
HOLDING = frozenset({"ACCEPTED", "PROVISIONING", "ACTIVE", "SUSPENDING"})
# Those in which it has a place in a network.
PLACED = frozenset({"PROVISIONING", "ACTIVE", "SUSPENDING"})
GONE = "GONE"
STOCK_OUT, INVALID_NOW, NEVER_READY, NO_ADDRESS = "stock-out", "not valid any more", "never ready", "no address"


@dataclass(frozen=True)
class Life:
    """How far a request is.

    Attributes:
        state: As a queued resource has it, or GONE.
        since: When that state began, Unix seconds.
        created: When it was stored, Unix seconds.
        valid_until: When it stops waiting for capacity, Unix seconds; None for never, 0 where it does not wait.
        run_seconds: Real seconds that its machine runs at most; None for no limit.
        failure: Why it failed: one of the words above.
        lost: Whether the platform took the machine away.
        by_user: Whether somebody asked for the state.
    """

    state: str
    since: float
    created: float
    valid_until: float | None
    run_seconds: float | None
    failure: str = ""
    lost: bool = False
    by_user: bool = False

    @property
    def ends_at(self) -> float | None:
        """When the run duration of an active one is over."""
        return self.since + self.run_seconds if self.state == "ACTIVE" and self.run_seconds is not None else None

    def stored(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Conditions:
    """What the platform does with a request, at this moment.

    Attributes:
        waits: Real seconds of each wait, by its name.
        in_stock: Whether a machine is left for it.
        gives_up: Whether the zone gives up on requests that wait.
        never_ready: Real seconds after which making a machine fails; None if it succeeds.
    """

    waits: Mapping[str, float]
    in_stock: bool
    gives_up: bool = False
    never_ready: float | None = None


def begun(now: float, valid_until: float | None, run_seconds: float | None) -> Life:
    """A request that has just come in."""
    return Life("CREATING", now, now, valid_until, run_seconds)


def advanced(life: Life, now: float, conditions: Conditions) -> Life | None:
    """The next state of a request if it has begun by now, else None: nothing has changed.

    `since` of what is returned is when it began, which may be long ago: nobody had to look for that.
    """
    waits = conditions.waits
    match life.state:
        case "CREATING":
            return _after(life, now, waits["creating"], "ACCEPTED" if conditions.in_stock else "WAITING_FOR_RESOURCES")
        case "ACCEPTED":
            return _after(life, now, waits["accepted"], "PROVISIONING")
        case "WAITING_FOR_RESOURCES":
            return _waited(life, now, conditions)
        case "PROVISIONING":
            if conditions.never_ready is not None:
                failed = _after(life, now, conditions.never_ready, "FAILED")
                return replace(failed, failure=NEVER_READY) if failed else None
            return _after(life, now, waits["provisioning"], "ACTIVE")
        case "ACTIVE":
            return None if life.run_seconds is None else _after(life, now, life.run_seconds, "SUSPENDING")
        case "SUSPENDING":
            return _after(life, now, waits["suspending"], "SUSPENDED")
        case "DELETING":
            return _after(life, now, waits["deleting"], GONE)
        case _:
            return None


def moved(life: Life, state: str, at: float, **changes: Any) -> Life:
    """A request in another state."""
    given: dict[str, Any] = {"by_user": False} | changes
    return replace(life, state=state, since=at, **given)


def _after(life: Life, now: float, seconds: float, state: str) -> Life | None:
    due = life.since + seconds
    return moved(life, state, due) if now >= due else None


def _waited(life: Life, now: float, conditions: Conditions) -> Life | None:
    """What ends a wait for capacity: whichever came first."""
    ends = [(life.since + conditions.waits["stock_out"], STOCK_OUT)] if conditions.gives_up else []
    if life.valid_until is not None:
        # One that does not wait has failed as soon as it is seen that nothing is there.
        ends.append((life.valid_until, INVALID_NOW) if life.valid_until else (life.since, STOCK_OUT))
    at, failure = min(ends, default=(now + 1, ""))
    if now >= at:
        return moved(life, "FAILED", at, failure=failure)
    return moved(life, "PROVISIONING", now) if conditions.in_stock else None
