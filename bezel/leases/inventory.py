"""Inventory of a project's leases: list, describe and give back single ones, and sweep those that are left over.

Touches only resources with Bezel's labels. A sweep is a plan first, and does exactly what the plan contains. Leaves out
the list of zones, and printing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bezel.leases import messages
from bezel.leases.backends.compute_engine import ComputeBackEnd
from bezel.leases.backends.interface import no_such_zone, not_enabled
from bezel.leases.backends.tpu import TpuBackEnd
from bezel.leases.controller import LeaseController, LeaseError
from bezel.leases.names import BY_HAND
from bezel.leases.requests import LeaseSpec, ZoneChoice
from bezel.leases.state.observation import DesiredState, Goal, Observation, State
from bezel.rest import ApiError, GoogleClient, RestError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from bezel.leases.backends.interface import BackEnd
    from bezel.leases.clock import PlatformClock
    from bezel.leases.requests import BackEndName
    from bezel.leases.state.observation import Phase

_REQUEST_SECONDS = 60.0
# Real time for a response of an embedded cloud with accelerated time, where the minute above may pass at once.
_MIN_SECONDS = 5.0
_CONSOLE_LINES = 40


def new_client(clock: PlatformClock, *, seconds: float = _REQUEST_SECONDS) -> GoogleClient:
    """A client whose waits between attempts are in platform time.

    Args:
        clock: The time.
        seconds: Time limit of one request with all its attempts.
    """
    return GoogleClient(
        timeout_seconds=min(30.0, seconds),
        min_timeout_seconds=_MIN_SECONDS if clock.speed > 1 else 0.1,
        deadline_seconds=seconds,
        clock=clock.reading,
        sleep=clock.sleep,
    )


def back_end_of(name: str, client: GoogleClient, project: str) -> BackEnd:
    """The back end of that name."""
    return TpuBackEnd(client, project) if name == "queued_resource" else ComputeBackEnd(client, project)


@dataclass(frozen=True)
class Leftover:
    """A lease that a sweep would delete, and the reason."""

    lease: Observation
    why: str


class LeaseInventory:
    """The leases of a project in some zones.

    Args:
        client: Client for Google's APIs.
        clock: The time.
        project: The project's id.
        zones: Zones to look into.
        show: Called with each line of progress.
        named: Whether the user named the zones: then each has to exist.
    """

    def __init__(
        self,
        client: GoogleClient,
        clock: PlatformClock,
        project: str,
        zones: Iterable[str],
        show: Callable[[str], None] = lambda _line: None,
        *,
        named: bool = False,
    ) -> None:
        self._client = client
        self._named = named
        self._clock = clock
        self._project = project
        self._zones = tuple(zones)
        self._show = show

    def list(self, back_ends: Iterable[BackEndName] = ("queued_resource", "flex_start_vm")) -> list[Observation]:
        """Every lease of any of Bezel's stacks; an API that is not enabled has none, and is reported.

        Raises:
            LeaseError: No API knows a zone that the user named.
            RestError: A zone could not be read: a list without it would look complete.
        """
        leases: list[Observation] = []
        known_zones: set[str] = set()
        answered = False
        for name in back_ends:
            back_end = back_end_of(name, self._client, self._project)
            try:
                for zone in self._zones:
                    listed = self._list(back_end, zone)
                    known_zones |= set() if listed is None else {zone}
                    leases += listed or ()
                answered = True
            except ApiError as error:
                if not not_enabled(error):
                    raise
                self._show(f"{self._project} has not enabled the API of {name}, so it has no leases there")
        if self._named and answered and (unknown := [zone for zone in self._zones if zone not in known_zones]):
            raise LeaseError(messages.no_such_zones(unknown, self._project))
        return [lease for lease in leases if lease.is_bezels]

    @staticmethod
    def _list(back_end: BackEnd, zone: str) -> Sequence[Observation] | None:
        """All leases in a zone; None where the API knows no such zone."""
        try:
            return back_end.list(zone)
        except ApiError as error:
            if no_such_zone(error):
                return None
            raise

    def boot(self, lease: Observation) -> tuple[Mapping[str, Phase], Sequence[str]]:
        """Boot phases by name, and the last lines of the console; both empty unless the lease is active."""
        if lease.state is not State.ACTIVE:
            return {}, []
        back_end = self._back_end(lease)
        phases = back_end.phases(lease.zone, lease.name)
        return phases, back_end.serial_output(lease.zone, lease.name).splitlines()[-_CONSOLE_LINES:]

    def delete(self, lease: Observation) -> None:
        """Delete a lease, and check that it is gone.

        Raises:
            LeaseError: It is not Bezel's, has changed since it was observed, or is not gone in time.
            RestError: Google refused.
        """
        back_end = self._back_end(lease)
        if not lease.stack or not lease.belongs_to(lease.stack):
            raise LeaseError(messages.labels_contradict(lease, self._project))
        # A stack's leases share their names: since the user confirmed the deletion it may have been leased again.
        now = back_end.observe(lease.zone, lease.name)
        if now.exists and (now.id != lease.id or (now.is_live and not lease.is_live)):
            raise LeaseError(messages.replaced_lease(lease, now))
        spec = LeaseSpec(
            project=self._project,
            name=lease.name,
            stack=lease.stack,
            back_end=_back_end_name(lease),
            zones=(ZoneChoice(lease.zone, 0.0),),
            subnetworks={},
            body={},
        )
        LeaseController(back_end, self._clock, self._show).run(DesiredState(spec, Goal.GONE))
        # Only an observation shows that it is gone, whatever the deletion returned.
        if (left := back_end.observe(lease.zone, lease.name)).exists and left.id == lease.id:
            raise LeaseError(messages.still_there(left))

    def sweep(self, plan: Iterable[Leftover]) -> dict[str, str]:
        """Delete what a plan lists; returns the failures, as zone/name -> reason."""
        failed = {}
        for leftover in plan:
            try:
                self.delete(leftover.lease)
            except (LeaseError, RestError) as error:
                failed[f"{leftover.lease.zone}/{leftover.lease.name}"] = str(error)
        return failed

    def _back_end(self, lease: Observation) -> BackEnd:
        return back_end_of(_back_end_name(lease), self._client, self._project)


def sweep_plan(
    leases: Iterable[Observation],
    *,
    now: float,
    of_stacks: Collection[str] = (),
    known_stacks: Collection[str] | None = None,
) -> list[Leftover]:
    """Leases that a sweep would delete, in the order of `leases`. Pure.

    Args:
        leases: Observed leases; those that are not Bezel's are ignored.
        now: The time, unix seconds.
        of_stacks: Stacks whose leases are all to be deleted.
        known_stacks: Stacks that exist; leases of other stacks are to be deleted. None: unknown, and not a reason.
    """
    bezel_leases = [lease for lease in leases if lease.is_bezels]
    return [Leftover(lease, why) for lease in bezel_leases if (why := _why(lease, now, of_stacks, known_stacks))]


def _why(lease: Observation, now: float, of_stacks: Collection[str], known_stacks: Collection[str] | None) -> str:
    if lease.kind == "node":
        return "a node whose request is gone"
    over: Mapping[State, str] = {State.FAILED: lease.reason or "FAILED", State.ENDED: f"ended ({lease.word})"}
    if lease.state in over:
        return f"{over[lease.state]}; it uses quota until it is deleted"
    if lease.ends_at is not None and lease.ends_at < now:
        return "its run duration is over"
    if lease.stack in of_stacks:
        return f"of the stack {lease.stack}"
    if known_stacks is not None and lease.stack not in {*known_stacks, BY_HAND}:
        return f"its stack {lease.stack or '(none)'} does not exist"
    return ""


def _back_end_name(lease: Observation) -> Literal["queued_resource", "flex_start_vm"]:
    return "flex_start_vm" if lease.kind == "flex_start_vm" else "queued_resource"
