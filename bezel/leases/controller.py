"""Controller of a lease: observe, decide by `reconcile`, act once, repeat, with a bound on time.

Leaves out the decisions, the two APIs, and the inputs and outputs of Pulumi's engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bezel.leases import messages, reconcile
from bezel.leases.backends.interface import CONFLICT, is_transient, not_yet_deletable, refusal
from bezel.leases.names import SPEC, labels, request_id
from bezel.leases.reconcile import Memory
from bezel.leases.state.observation import DesiredState, Goal, Observation, Phase, State
from bezel.rest import ApiError, RestError
from bezel_base.errors import UserError, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bezel.leases.backends.interface import BackEnd
    from bezel.leases.clock import PlatformClock
    from bezel.leases.requests import LeaseSpec, ZoneChoice

FULL_OBSERVATION_SECONDS = 600.0
"""Interval of observations of zones where nothing is expected: a request may be stored late."""
FAILURE_SECONDS = 15.0
MAX_FAILURES = 8
"""Consecutive failures of Google's API that are tolerated."""
CONFLICT_SECONDS = 10.0


class LeaseError(UserError):
    """The lease is not in the desired state."""


class LeaseRefusedError(LeaseError):
    """No zone grants the lease, and nothing of it is left."""


@dataclass
class LeaseController:
    """Control loop of one lease.

    Attributes:
        back_end: The API.
        clock: The time.
        show: Called with each line of progress.
    """

    back_end: BackEnd
    clock: PlatformClock
    show: Callable[[str], None] = lambda _line: None
    _observations: dict[str, Observation] = field(default_factory=dict)
    _operations: dict[str, tuple[str, float]] = field(default_factory=dict)
    _conflict_since: dict[str, float] = field(default_factory=dict)
    _observed_at: float | None = None
    _failures: int = 0

    def run(self, desired: DesiredState) -> Observation | None:
        """Act until the goal is reached.

        Returns:
            The lease; None where the goal is none, or where none is left and none may be bought.

        Raises:
            LeaseError: The goal cannot be reached, or not in time.
            RestError: Google refused a request.
        """
        memory = Memory()
        while True:
            try:
                step, line = self._step(desired, memory)
            except RestError as error:
                self._wait_after(error, desired.spec.name)
                continue
            self._failures = 0
            if isinstance(step, reconcile.Failed):
                raise (LeaseRefusedError if step.is_refused else LeaseError)(step.problem)
            if isinstance(step, reconcile.Done):
                return step.lease
            self.show(line)
            if isinstance(step, reconcile.Wait):
                self.clock.sleep(step.seconds)

    def _step(self, desired: DesiredState, memory: Memory) -> tuple[reconcile.Step, str]:
        """Observe, decide and act once; a step that is final or costs money requires an observation of all zones."""
        zones = desired.spec.all_zones
        is_stale = self._observed_at is None or self.clock.since(self._observed_at) > FULL_OBSERVATION_SECONDS
        observed = [zone for zone in zones if is_stale or self._is_expected(zone, memory)]
        self._observe(observed, desired)
        phases = self._phases(desired, memory)
        step = reconcile.next_step(self._observations, desired, memory, self.clock, phases)
        final = isinstance(step, reconcile.Request | reconcile.Done)
        if final and len(observed) < len(zones):
            self._observe([zone for zone in zones if zone not in observed], desired)
            step = reconcile.next_step(self._observations, desired, memory, self.clock, phases)
        if len(observed) == len(zones) or isinstance(step, reconcile.Request | reconcile.Done):
            self._observed_at = self.clock.now()
        match step:
            case reconcile.Request(choice):
                self._request(choice, desired, memory)
                return step, f"{choice.zone}: requested {desired.spec.name}"
            case reconcile.Delete(zone, line):
                self._delete(zone, desired, memory)
                return step, line
        return step, step.line if isinstance(step, reconcile.Wait) else ""

    def _observe(self, zones: Iterable[str], desired: DesiredState) -> None:
        for zone in zones:
            self._observations[zone] = self._settled_observation(
                self.back_end.observe(zone, desired.spec.name), desired.spec
            )

    def _is_expected(self, zone: str, memory: Memory) -> bool:
        exists = zone in self._observations and self._observations[zone].exists
        return exists or zone in memory.expected or zone in memory.clearing

    def _settled_observation(self, lease: Observation, spec: LeaseSpec) -> Observation:
        """The observation of a request sent a moment ago, by its operation while the request itself is not visible."""
        if lease.state is not State.ABSENT or lease.zone not in self._operations:
            return lease
        operation, sent = self._operations[lease.zone]
        over, reason = self.back_end.operation_result(lease.zone, operation) if operation else (True, "")
        if reason:
            del self._operations[lease.zone]
            return replace(lease, state=State.REFUSED, reason=reason)
        before = self._observations.get(lease.zone)
        was_visible = before is not None and before.exists and before.word != reconcile.STORING
        if was_visible or (over and self.clock.since(sent) > reconcile.SETTLING_SECONDS):
            del self._operations[lease.zone]
            return lease
        own_labels = {**labels(spec.name, spec.stack), SPEC: spec.hash}
        word = reconcile.STORING
        return replace(lease, state=State.WAITING, word=word, labels=own_labels, created_at=sent, id=word)

    def _phases(self, desired: DesiredState, memory: Memory) -> Mapping[str, Phase]:
        """Boot phases of the selected lease's node; empty unless the goal is a healthy one."""
        if desired.goal is not Goal.HEALTHY:
            return {}
        own_leases = [lease for lease in self._observations.values() if lease.belongs_to(desired.spec.stack)]
        lease = reconcile.select_lease(own_leases, desired, memory)
        active = lease is not None and lease.state is State.ACTIVE
        return self.back_end.phases(lease.zone, lease.name) if lease is not None and active else {}

    def _request(self, choice: ZoneChoice, desired: DesiredState, memory: Memory) -> None:
        spec, zone, now = desired.spec, choice.zone, self.clock.now()
        identity = request_id(spec.name, zone, spec.hash, now)
        memory.expected.add(zone)
        try:
            operation = self.back_end.request(zone, spec.name, spec.body_in(choice), identity)
        except RestError as error:
            if reason := refusal(error):
                memory.tried[zone] = reason
                return
            memory.expected.discard(zone)
            if not isinstance(error, ApiError) or error.status != CONFLICT:
                raise
            # It exists, or its deletion has not ended: the next step observes, and requests it again if it is absent.
            self._wait_after_conflict(zone, desired, memory, error)
            return
        self._operations[zone] = (operation, now)

    def _wait_after_conflict(self, zone: str, desired: DesiredState, memory: Memory, error: ApiError) -> None:
        since = self._conflict_since.setdefault(zone, self.clock.now())
        if self.clock.since(since) > desired.delete_seconds + self.clock.slack:
            memory.tried[zone] = f"the name is in use by a resource that is not visible: {error.message}"
        self.clock.sleep(CONFLICT_SECONDS)

    def _delete(self, zone: str, desired: DesiredState, memory: Memory) -> None:
        memory.deleted[zone] = self.clock.now()
        self._operations.pop(zone, None)
        try:
            self.back_end.delete(zone, desired.spec.name)
        except ApiError as error:
            if not not_yet_deletable(error):
                raise

    def _wait_after(self, error: RestError, name: str) -> None:
        """Wait after a failure that may pass.

        Raises:
            RestError: It will not pass.
            LeaseError: It has not passed.
        """
        if not is_transient(error):
            raise error
        self._failures += 1
        if self._failures > MAX_FAILURES:
            raise LeaseError(messages.no_response(name, str(error)))
        self.show(f"Google's API failed, attempt {self._failures} of {MAX_FAILURES}: {one_line(error)}")
        self.clock.sleep(FAILURE_SECONDS)
