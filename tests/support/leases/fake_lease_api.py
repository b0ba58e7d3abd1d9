"""Zones that grant leases, on a real socket and a clock that only moves when somebody waits.

What happens in a zone is a script; the two APIs that show it are `lease_tpu_api` and `lease_compute_api`. Every call is
in the log. A caller is known by its token: once killed, nothing that it still sends is acted on.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bezel.leases.clock import PlatformClock
from bezel.leases.state.container import ATTRIBUTE
from tests.support.leases.fake_machine import FakeMachine
from tests.support.rest.fake_google import Answer, Call, Server, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START = 1_790_000_000.0
PHASES = ("network", "image", "weights", "compile", "healthy")


@dataclass
class Zone:
    """What a zone does with a request.

    Attributes:
        refusal: Status and message with which it refuses every request.
        operation_error: What the operation of a request fails with.
        store_seconds: How long a request stays out of sight; inf: its operation never ends.
        queue_seconds: How long it waits for capacity.
        queue_error: What it fails with instead of being granted.
        provision_seconds: From granted to active.
        boot_seconds: From active to healthy.
        broken_phase: The phase that fails, with the boot's time.
        preempted_seconds: From active to taken away.
        delete_seconds: From asked for to gone.
        late_seconds: The next request is not answered, and stored that much later.
        deletable_early: Whether it can be deleted while it is provisioned.
        machine: What its machines do with requests for their containers.
    """

    refusal: tuple[int, str] | None = None
    operation_error: str = ""
    store_seconds: float = 0.0
    queue_seconds: float = 10.0
    queue_error: str = ""
    provision_seconds: float = 10.0
    boot_seconds: float = 20.0
    broken_phase: str = ""
    preempted_seconds: float = math.inf
    delete_seconds: float = 5.0
    late_seconds: float | None = None
    deletable_early: bool = False
    machine: FakeMachine = field(default_factory=FakeMachine)
    hardware: tuple[str, ...] = ("v6e-4", "ct6e-standard-4t")


@dataclass
class Lease:
    """A request that a zone took.

    Attributes:
        attributes: Metadata of its machine that was set later.
        requests: Requests for its container: when each came, and what it says.
    """

    zone: str
    name: str
    body: dict[str, Any]
    request_id: str
    created: float
    number: int
    patience: float
    run_seconds: float
    labels: dict[str, str]
    operation: str
    deleted: float | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[float, str]] = field(default_factory=list)

    def set_attributes(self, now: float, attributes: dict[str, str]) -> None:
        """Replace the machine's metadata; it takes another request from it."""
        asked = attributes.get(ATTRIBUTE, "")
        if asked != self.attributes.get(ATTRIBUTE, ""):
            self.requests.append((now, asked))
        self.attributes = attributes


@dataclass
class FakeLeaseApi:
    """All zones of one project."""

    server: Server
    now: float = START
    zones: dict[str, Zone] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    lone_nodes: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)
    kill: tuple[str, int, str] | None = None
    faults: list[Callable[[Call], Answer | None]] = field(default_factory=list)

    @property
    def clock(self) -> PlatformClock:
        """The clock of this world: to wait is to move it."""
        return PlatformClock(now=lambda: self.now, pause=self.advance)

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def zone(self, name: str) -> Zone:
        return self.zones.setdefault(name, Zone())

    def stored_leases(self, zone: str | None = None, name: str | None = None) -> list[Lease]:
        """What is there at this moment, in whatever state."""
        return [
            one for one in self.leases if zone in {None, one.zone} and name in {None, one.name} and self.is_there(one)
        ]

    def pending(self) -> list[Lease]:
        """What is there, or is going to be stored later."""
        return [one for one in self.leases if self.is_there(one) or one.created > self.now]

    def is_there(self, one: Lease) -> bool:
        script = self.zone(one.zone)
        if self.now < one.created + script.store_seconds:
            return False
        return one.deleted is None or self.now < one.deleted + script.delete_seconds

    def phase_of(self, one: Lease) -> tuple[str, float]:
        """waiting, provisioning, active, ending, ended or failed, and since when."""
        script = self.zone(one.zone)
        granted = one.created + script.queue_seconds
        if script.queue_error and self.now >= min(granted, one.created + one.patience):
            return "failed", min(granted, one.created + one.patience)
        if script.queue_seconds > one.patience:
            over = one.created + one.patience
            return ("failed", over) if self.now >= over else ("waiting", one.created)
        if self.now < granted:
            return "waiting", one.created
        active = granted + script.provision_seconds
        if self.now < active:
            return "provisioning", granted
        end = active + min(one.run_seconds, script.preempted_seconds)
        if self.now >= end + 60:
            return "ended", end
        return ("ending", end) if self.now >= end else ("active", active)

    def active_at(self, one: Lease) -> float:
        script = self.zone(one.zone)
        return one.created + script.queue_seconds + script.provision_seconds

    def guest_attributes(self, one: Lease) -> list[dict[str, str]]:
        """What its node has reported by now."""
        import json

        script = self.zone(one.zone)
        elapsed = self.now - self.active_at(one)
        step = script.boot_seconds / len(PHASES)
        attributes = []
        for number, name in enumerate(PHASES):
            if elapsed < number * step:
                break
            done = elapsed >= (number + 1) * step
            state = "failed" if done and name == script.broken_phase else "done" if done else "running"
            detail = "it broke" if state == "failed" else ""
            value = json.dumps({"state": state, "at": self.active_at(one) + number * step, "detail": detail})
            attributes.append({"namespace": "bezel", "key": name, "value": value})
            if state == "failed":
                return attributes
        if elapsed >= script.boot_seconds and (report := script.machine.report(self.now, one.requests)):
            attributes.append({"namespace": "bezel", "key": "container", "value": json.dumps(report)})
        return attributes

    def take(self, lease: Lease) -> None:
        self.leases.append(lease)

    def answer(self, call: Call, route: Callable[[Call], Answer | None]) -> Answer | None:
        """Count a call, kill its caller where that is asked for, and let the API answer."""
        token = call.headers.get("authorization", "").removeprefix("Bearer ")
        if token in self.dead:
            return error(403, "the caller is dead")
        self.log.append((token, f"{call.method} {call.path}"))
        count = sum(1 for other, _ in self.log if other == token)
        stops = self.kill is not None and self.kill[:2] == (token, count)
        if stops and self.kill is not None and self.kill[2] == "before":
            self.dead.add(token)
            return error(403, "the caller is dead")
        reply = next((faulty for fault in self.faults if (faulty := fault(call)) is not None), None) or route(call)
        if stops:
            self.dead.add(token)
            return error(403, "the caller is dead")
        return reply

    def calls_of(self, token: str) -> list[str]:
        return [line for other, line in self.log if other == token]


def error(status: int, message: str, reason: str = "TEST") -> Answer:
    return Answer(status, {"error": {"code": status, "message": message, "status": reason}})


def stamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds(text: str | None) -> float:
    return float(text[:-1]) if text else math.inf


def answers(times: int, answer: Answer, *, method: str = "", path: str = "") -> Callable[[Call], Answer | None]:
    """A fault: that many calls of a method and a part of the path are answered so, and not acted on."""
    left = [times]

    def fault(call: Call) -> Answer | None:
        if left[0] <= 0 or method not in {"", call.method} or path not in call.path:
            return None
        left[0] -= 1
        return answer

    return fault


@contextmanager
def lease_api_serving() -> Iterator[FakeLeaseApi]:
    """A world whose both APIs listen."""
    from tests.support.leases.fake_compute_api import compute_route
    from tests.support.leases.fake_tpu_api import tpu_route

    with serving() as server:
        world = FakeLeaseApi(server)
        routes = (tpu_route(world), compute_route(world))

        def route(call: Call) -> Answer | None:
            return next((answer for one in routes if (answer := one(call)) is not None), None)

        server.routes[:] = [lambda call: world.answer(call, route)]
        yield world
