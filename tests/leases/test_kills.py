"""Killed at every REST call of every operation: the next `up` leaves one lease, and destroy or sweep none."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bezel.leases.inventory import LeaseInventory, new_client, sweep_plan
from bezel_components.base.dynamic import DeployError
from tests.support.leases.fake_lease_api import FakeLeaseApi, Zone, lease_api_serving
from tests.support.leases.harness import STACK, ZONES, LeaseHarness, become, point_at
from tests.support.leases.stack import KilledError, Stack
from tests.support.record_results import check_results

pytestmark = pytest.mark.slow  # each boundary is a run of its own, and there are hundreds
FIRST, SECOND = ZONES
QUICK: dict[str, Any] = {"queue_seconds": 3.0, "provision_seconds": 3.0, "boot_seconds": 3.0, "delete_seconds": 3.0}


def quick(**more: Any) -> Zone:
    return Zone(**(QUICK | more))


def empty(_stack: Stack) -> None:
    """Nothing is there yet."""


def healthy(stack: Stack) -> None:
    stack.up()


def over(stack: Stack) -> None:
    stack.up()
    stack.world.advance(15000)


def up(stack: Stack) -> None:
    stack.up()


def replace_lease(stack: Stack) -> None:
    stack.up(image="vllm@sha256:2")


def renew_lease(stack: Stack) -> None:
    stack.up(renew=True)


def down(stack: Stack) -> None:
    stack.down()


Action = Callable[[Stack], None]
SCENARIOS: dict[str, tuple[dict[str, Zone], Action, Action]] = {
    "create and wait": ({}, empty, up),
    "move on after a stock-out": ({FIRST: quick(queue_error="no capacity")}, empty, up),
    "replace": ({}, healthy, replace_lease),
    "renew": ({}, over, renew_lease),
    "delete": ({}, healthy, down),
}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLeaseApi]:
    with lease_api_serving() as world:
        point_at(world, monkeypatch)
        yield world


class Table:
    """Runs a scenario with a kill at each boundary, from one recorded start."""

    def __init__(self, world: FakeLeaseApi, kind: str, name: str) -> None:
        self.world, self.kind, self.name = world, kind, name
        scripts, before, self.action = SCENARIOS[name]
        world.__init__(world.server)  # type: ignore[misc]
        world.zones = {FIRST: quick(), SECOND: quick()} | copy.deepcopy(scripts)
        self.runs = 0
        stack = self._stack()
        before(stack)
        self._start = copy.deepcopy((world.now, world.zones, world.leases, stack.request, stack.node))

    def row(self) -> list[Any]:
        """Back end, scenario, calls, kill points, how often one lease was left, and how often none."""
        undisturbed = self._begin()
        self.action(undisturbed)
        calls = len(self.world.calls_of(undisturbed.token))
        one = none = 0
        for number in range(1, calls + 1):
            for when in ("before", "after"):
                one += self._kill(number, when)
                none += self._empty(sweep=when == "after")
        return [self.kind, self.name, calls, 2 * calls, one, none]

    def _kill(self, number: int, when: str) -> bool:
        """Kill the action, deploy again in another process, and see whether exactly one lease is there."""
        stack = self._begin()
        self.world.kill = (stack.token, number, when)
        with pytest.raises((KilledError, DeployError)):
            self.action(stack)
        assert stack.token in self.world.dead, (self.name, number, when)
        self.world.advance(1)
        self.stack = self._stack(stack)
        (down if self.action is down else self.action)(self.stack)
        left = LeaseHarness(self.world, self.kind).remaining()  # type: ignore[arg-type]
        if self.action is down:
            return not left
        assert self.stack.node is not None
        return [self.world.phase_of(lease)[0] for lease in left] == ["active"] and (
            self.stack.node["zone"] == left[0].zone
        )

    def _empty(self, *, sweep: bool) -> bool:
        if sweep:
            with new_client(self.world.clock) as client:
                fleet = LeaseInventory(client, self.world.clock, "acme", ZONES)
                plan = sweep_plan(fleet.list(), now=self.world.now, of_stacks={STACK})
                assert fleet.sweep(plan) == {}
        else:
            self.stack.down()
        return not LeaseHarness(self.world, self.kind).remaining()  # type: ignore[arg-type]

    def _begin(self) -> Stack:
        world = self.world
        now, zones, leases, request, node = copy.deepcopy(self._start)
        world.__init__(world.server)  # type: ignore[misc]
        world.now, world.zones, world.leases = now, zones, leases
        stack = self._stack()
        stack.request, stack.node = request, node
        return stack

    def _stack(self, before: Stack | None = None) -> Stack:
        """Another process, with what the one before had recorded."""
        self.runs += 1
        stack = Stack(self.world, self.kind, token=f"planted-process-{self.runs}")
        become(stack.token)
        if before is not None:
            stack.request, stack.node = before.request, before.node
        return stack


def table_of(rows: list[list[Any]]) -> dict[str, Any]:
    return {
        "title": "Kills of leases, over their wire",
        "document": "reliability",
        "provider": "none: requests over REST alone",
        "order": 23,
        "about": "Each operation of a lease is run once undisturbed and its HTTP calls are counted; then its process "
        "is killed at each call, once before the call is handled and once after it with the answer withheld, and "
        "nothing that it found is recorded. Another process runs the same command: exactly one lease has to be there, "
        "active (after a destroy: none). Then everything is destroyed, or swept by its labels, and nothing may be left "
        "in any zone. What is left is read from the zones themselves, not from the program.",
        "command": ".venv/bin/pytest -q tests/leases/test_kills.py",
        "checked": "make test-long",
        "stamp": None,
        "columns": ["back end", "operation", "calls", "kill points", "one lease left", "none left in the end"],
        "rows": rows,
        "notes": [],
    }


@pytest.mark.long
def test_killed_at_any_call_the_next_run_leaves_exactly_one_lease_or_none(world: FakeLeaseApi) -> None:
    rows = [Table(world, kind, name).row() for kind in ("queued_resource", "flex_start_vm") for name in SCENARIOS]
    assert [row for row in rows if not row[3] == row[4] == row[5]] == []
    assert all(row[2] for row in rows)
    check_results("kills-leases", table_of(rows))


def test_a_lease_that_the_next_run_does_not_look_for_is_noticed(world: FakeLeaseApi) -> None:
    """The check itself: a second lease in another zone is more than one."""
    table = Table(world, "queued_resource", "create and wait")
    stack = table._begin()
    up(stack)
    twin = copy.deepcopy(world.leases[0])
    twin.zone = SECOND
    world.take(twin)
    assert len(LeaseHarness(world, "queued_resource").remaining()) == 2
