"""Controller of a lease: look, decide by `reconcile`, act once, repeat, with a bound on time.

Leaves out the decisions, the two APIs, and the inputs and outputs of Pulumi's engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bezel.errors import UserError
from bezel.leases import messages
from bezel.leases.backend import CONFLICT, not_yet_deletable, passes, refusal
from bezel.leases.names import SPEC, labels, request_id
from bezel.leases.observation import Observation, Phase, State
from bezel.leases.reconcile import (
    SETTLING_SECONDS,
    STORING,
    Ask,
    Delete,
    Done,
    Failed,
    Memory,
    Wait,
    next_step,
    select_lease,
)
from bezel.leases.wanted import Goal, Wanted
from bezel.rest import ApiError, RestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from bezel.leases.backend import BackEnd
    from bezel.leases.clock import PlatformClock
    from bezel.leases.requests import ZoneChoice

FULL_LOOK_SECONDS = 600.0
"""Interval of looks into zones where nothing is expected: a request may be stored late."""
TROUBLE_SECONDS = 15.0
TROUBLES = 8
"""Consecutive failures of Google's API that are tolerated."""
TAKEN_SECONDS = 10.0


class LeaseError(UserError):
    """The lease is not in the desired state; the text gives the repair."""


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
    _seen: dict[str, Observation] = field(default_factory=dict)
    _operations: dict[str, tuple[str, float]] = field(default_factory=dict)
    _taken_since: dict[str, float] = field(default_factory=dict)
    _looked: float | None = None
    _troubles: int = 0

    def run(self, wanted: Wanted) -> Observation | None:
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
                step, line = self._step(wanted, memory)
            except RestError as error:
                self._trouble(error)
                continue
            self._troubles = 0
            if isinstance(step, Failed):
                raise LeaseError(step.text)
            if isinstance(step, Done):
                return step.seen
            self.show(line)
            if isinstance(step, Wait):
                self.clock.sleep(step.seconds)

    def _step(self, wanted: Wanted, memory: Memory) -> tuple[Ask | Delete | Wait | Done | Failed, str]:
        """Look, decide and act once; a decision that is final or costs money requires a look into every zone."""
        zones = wanted.spec.everywhere
        looked = zones if self._is_stale() else tuple(zone for zone in zones if self._is_expected(zone, memory))
        self._look(looked, wanted)
        phases = self._phases(wanted, memory)
        step = next_step(self._seen, wanted, memory, self.clock, phases)
        if isinstance(step, Ask | Done) and looked != zones:
            self._look([zone for zone in zones if zone not in looked], wanted)
            step = next_step(self._seen, wanted, memory, self.clock, phases)
        if len(looked) == len(zones) or isinstance(step, Ask | Done):
            self._looked = self.clock.now()
        if isinstance(step, Ask):
            self._ask(step.choice, wanted, memory)
            return step, f"{step.choice.zone}: asked for {wanted.spec.name}"
        if isinstance(step, Delete):
            self._delete(step.zone, wanted, memory)
            return step, step.line
        return step, step.line if isinstance(step, Wait) else ""

    def _is_stale(self) -> bool:
        return self._looked is None or self.clock.since(self._looked) > FULL_LOOK_SECONDS

    def _look(self, zones: Iterable[str], wanted: Wanted) -> None:
        for zone in zones:
            self._seen[zone] = self._settled(self.back_end.look(zone, wanted.spec.name), wanted)

    def _is_expected(self, zone: str, memory: Memory) -> bool:
        there = zone in self._seen and self._seen[zone].there
        return there or zone in memory.hoped or zone in memory.clearing

    def _settled(self, one: Observation, wanted: Wanted) -> Observation:
        """The observation of a request sent a moment ago, by its operation while the request itself is not visible."""
        if one.state is not State.ABSENT or one.zone not in self._operations:
            return one
        operation, sent = self._operations[one.zone]
        over, why = self.back_end.outcome(one.zone, operation) if operation else (True, "")
        if why:
            del self._operations[one.zone]
            return replace(one, state=State.REFUSED, reason=why)
        before = self._seen.get(one.zone)
        was_seen = before is not None and before.there and before.word != STORING
        if was_seen or (over and self.clock.since(sent) > SETTLING_SECONDS):
            del self._operations[one.zone]
            return one
        spec = wanted.spec
        ours = {**labels(spec.name, spec.stack), SPEC: spec.hash}
        return replace(one, state=State.WAITING, word=STORING, labels=ours, created_at=sent, id=STORING)

    def _phases(self, wanted: Wanted, memory: Memory) -> Mapping[str, Phase]:
        """Boot phases of the selected lease's node; empty unless the goal is a healthy one."""
        if wanted.goal is not Goal.HEALTHY:
            return {}
        one = select_lease([one for one in self._seen.values() if one.belongs(wanted.spec.stack)], wanted, memory)
        active = one is not None and one.state is State.ACTIVE
        return self.back_end.phases(one.zone, one.name) if one is not None and active else {}

    def _ask(self, choice: ZoneChoice, wanted: Wanted, memory: Memory) -> None:
        spec, zone, now = wanted.spec, choice.zone, self.clock.now()
        memory.hoped.add(zone)
        try:
            operation = self.back_end.ask(
                zone, spec.name, spec.request(choice), request_id(spec.name, zone, spec.hash, now)
            )
        except ApiError as error:
            if error.status == CONFLICT:
                # It exists, or its deletion has not ended: the next step looks, and requests it again if it is absent.
                memory.hoped.discard(zone)
                self._taken(zone, wanted, memory, error)
                return
            why = refusal(error)
            if why is None:
                memory.hoped.discard(zone)
                raise
            memory.tried[zone] = why
            return
        except RestError:
            memory.hoped.discard(zone)
            raise
        self._operations[zone] = (operation, now)

    def _taken(self, zone: str, wanted: Wanted, memory: Memory, error: ApiError) -> None:
        since = self._taken_since.setdefault(zone, self.clock.now())
        if self.clock.since(since) > wanted.delete_seconds:
            memory.tried[zone] = f"the name is taken, and nothing of it is to be seen: {error.message}"
        self.clock.sleep(TAKEN_SECONDS)

    def _delete(self, zone: str, wanted: Wanted, memory: Memory) -> None:
        memory.deleted[zone] = self.clock.now()
        self._operations.pop(zone, None)
        try:
            self.back_end.delete(zone, wanted.spec.name)
        except ApiError as error:
            if not not_yet_deletable(error):
                raise

    def _trouble(self, error: RestError) -> None:
        """Wait after a failure that may pass.

        Raises:
            RestError: It will not pass.
            LeaseError: It has not passed.
        """
        if not passes(error):
            raise error
        self._troubles += 1
        if self._troubles > TROUBLES:
            raise LeaseError(messages.unanswered("the lease was being asked for or looked at", str(error)))
        self.show(f"Google does not answer as it should, attempt {self._troubles} of {TROUBLES}: {error}")
        self.clock.sleep(TROUBLE_SECONDS)
