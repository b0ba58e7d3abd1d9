"""Where a lease could be had: by a bounded probe whether a zone has capacity now.

A probe is a real request with a short validity that is deleted at once, granted or not, and seen gone; it is what
Google offers nothing else for. What a granted one costs until it is gone is a few minutes of the lease at most. Leaves
out which zones to look at, and printing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.leases.clock import format_duration
from bezel.leases.controller import LeaseController, LeaseError
from bezel.leases.observation import State
from bezel.leases.wanted import Goal, Wanted

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel.leases.backend import BackEnd
    from bezel.leases.clock import PlatformClock
    from bezel.leases.requests import LeaseSpec

PROBE_STACK = "bezel-probe"
"""The stack that a probe's labels name, so that a sweep finds one that was killed."""
_LOOK_SECONDS = 5.0


@dataclass(frozen=True)
class AvailabilityProbe:
    """What a probe of one zone said.

    Attributes:
        granted: Whether capacity came; None where the zone refused before it came to that.
        told: What happened, in words.
    """

    granted: bool | None
    told: str


def probe(
    back_end: BackEnd,
    spec: LeaseSpec,
    clock: PlatformClock,
    seconds: float,
    show: Callable[[str], None] = lambda _line: None,
) -> AvailabilityProbe:
    """Ask for a lease in the one zone of `spec`, wait a little, and give it back, granted or not.

    Args:
        back_end: The API.
        spec: A lease of `PROBE_STACK`, its patience the time it may wait.
        clock: The time.
        seconds: How long to wait for capacity, platform seconds.
        show: Takes each line that says what is waited for.

    Raises:
        LeaseError: It could not be given back, or its name belongs to something else.
        RestError: Google refused to say.
    """
    zone, begun = spec.zones[0].zone, clock.now()
    engine = LeaseController(back_end, clock, show)
    try:
        seen = engine.run(Wanted(spec, Goal.STORED))
        while seen is not None and seen.state is State.WAITING and clock.since(begun) < seconds:
            clock.sleep(_LOOK_SECONDS)
            seen = back_end.look(zone, spec.name)
        took = clock.since(begun)
    except LeaseError as error:
        return AvailabilityProbe(None, _first_reason(str(error), zone))
    finally:
        LeaseController(back_end, clock, show).run(Wanted(spec, Goal.GONE))
    if seen is not None and seen.state in {State.PROVISIONING, State.ACTIVE}:
        return AvailabilityProbe(True, f"granted after {format_duration(took)}, and given back")
    # Once the time is over, the platform may have been quicker than this to say so.
    if seen is not None and seen.state is State.FAILED and took < seconds:
        return AvailabilityProbe(False, seen.reason or "FAILED")
    return AvailabilityProbe(False, f"nothing granted in {format_duration(took)}")


def _first_reason(text: str, zone: str) -> str:
    """The line of a zone among those that say why none granted anything."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line.removeprefix(f"{zone}: ") for line in lines if line.startswith(f"{zone}: ")), lines[0])
