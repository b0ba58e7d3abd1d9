"""Availability probe: a bounded test of whether a zone has capacity for a lease.

A probe is a real request with a short validity that is deleted at once, granted or not, and checked to be gone: Google
offers no other way. A granted one costs at most a few minutes of the lease until it is gone. Leaves out the choice of
zones, and printing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.leases.clock import format_duration
from bezel.leases.controller import LeaseController, LeaseError
from bezel.leases.state.observation import DesiredState, Goal, State
from bezel_base.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel.leases.backends.interface import BackEnd
    from bezel.leases.clock import PlatformClock
    from bezel.leases.requests import LeaseSpec

PROBE_STACK = "bezel-probe"
"""Stack in a probe's labels, so that a sweep finds the request of a killed probe."""
_POLL_SECONDS = 5.0


@dataclass(frozen=True)
class AvailabilityProbe:
    """Result of a probe of one zone.

    Attributes:
        granted: Whether capacity was granted; None where the zone refused the request before that.
        result: The result, in words.
    """

    granted: bool | None
    result: str


def probe(
    back_end: BackEnd,
    spec: LeaseSpec,
    clock: PlatformClock,
    seconds: float,
    show: Callable[[str], None] = lambda _line: None,
) -> AvailabilityProbe:
    """Request a lease in the one zone of `spec`, wait for a time, and delete it, granted or not.

    Args:
        back_end: The API.
        spec: A lease of `PROBE_STACK`; its patience is the time that it may wait.
        clock: The time.
        seconds: How long to wait for capacity, platform seconds.
        show: Called with each line of progress.

    Raises:
        LeaseError: It could not be deleted, or its name belongs to something else.
        RestError: A request to Google failed.
    """
    zone, begun = spec.zones[0].zone, clock.now()
    try:
        lease = LeaseController(back_end, clock, show).run(DesiredState(spec, Goal.STORED))
        while lease is not None and lease.state is State.WAITING and clock.since(begun) < seconds:
            clock.sleep(_POLL_SECONDS)
            lease = back_end.observe(zone, spec.name)
        elapsed = clock.since(begun)
    except LeaseError as error:
        return AvailabilityProbe(None, _reason(error, zone))
    finally:
        LeaseController(back_end, clock, show).run(DesiredState(spec, Goal.GONE))
    if lease is not None and lease.state in {State.PROVISIONING, State.ACTIVE}:
        return AvailabilityProbe(True, f"granted after {format_duration(elapsed)}, and deleted")
    # After the time is over, the platform may have ended the request before this loop did: no refusal.
    if lease is not None and lease.state is State.FAILED and elapsed < seconds:
        return AvailabilityProbe(False, lease.reason or "FAILED")
    return AvailabilityProbe(False, f"not granted within {format_duration(elapsed)}")


def _reason(error: LeaseError, zone: str) -> str:
    """The line of a zone among the reasons why none granted the lease; else the whole error."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line.removeprefix(f"{zone}: ") for line in lines if line.startswith(f"{zone}: ")), one_line(error))
