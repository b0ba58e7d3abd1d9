"""Time left of a lease in each state of both APIs: what is over has none, and what ended says how and what follows."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel.leases.clock import rfc3339
from bezel.leases.inventory import back_end_of
from bezel.operations.status.status import StackStatus, Status, StatusArguments, status
from bezel.operations.tpu.records import record_of
from bezel.operations.watch.page import Watch
from tests.support.leases.state_cloud import INSTANCES, NAME, NODES, REQUESTS, RUN, ZONE, Cloud
from tests.support.operations.deployed import NOW, Deployed, deployed_stack, state_of

KIND = "pulumi-python:dynamic/components"
# Minutes of the run duration that have passed: none is recorded, just begun, and over.
PASSED = {"unknown": None, "begun": 1, "over": 300}
CASES = [
    *(("queued_resource", state, "READY", serves) for state, serves in REQUESTS.items() if state != "ACTIVE"),
    *(("queued_resource", "ACTIVE", state, serves) for state, serves in NODES.items()),
    *(("flex_start_vm", state, "", serves) for state, serves in INSTANCES.items()),
]


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Cloud, Deployed]]:
    with deployed_stack(tmp_path) as here:
        for api in ("TPU_V2ALPHA1", "COMPUTE", "RESOURCE_MANAGER", "CLOUD_SCHEDULER", "IAM_BETA", "STORAGE"):
            here.context.environ[f"GOOGLE_{api}_CUSTOM_ENDPOINT"] = f"{here.server.url}/"  # type: ignore[index]
            monkeypatch.setenv(f"GOOGLE_{api}_CUSTOM_ENDPOINT", f"{here.server.url}/")
        yield Cloud(here.server), here


def read(clouds: tuple[Cloud, Deployed], kind: str, request: str, node: str, passed: int | None) -> StackStatus:
    cloud, here = clouds
    cloud.request, cloud.node, cloud.instance = (
        ("(none)", "READY", request) if node == "" else (request, node, "(none)")
    )
    started = None if passed is None else NOW - 60 * passed
    cloud.started = started
    node_outputs: dict[str, Any] = {"name": NAME, "project": "acme", "zones": [{"zone": ZONE, "patience_seconds": 300}]}
    node_outputs |= {"back_end": kind, "hourly_usd": {ZONE: 10.8}, "zone": ZONE}
    times = {"active_at": rfc3339(started), "ends_at": rfc3339(None if started is None else started + RUN)}
    entries = [
        {"urn": f"urn:{name}", "type": f"{KIND}:{name}", "custom": True, "id": name, "inputs": {}, "outputs": outputs}
        for name, outputs in (("TpuRequest", node_outputs), ("TpuNode", {**node_outputs, **times}))
    ]
    here.keep("v6e4", state_of(*entries))
    (stack,) = status(here.context, StatusArguments(stack="v6e4")).stacks
    return stack


@pytest.mark.slow
def test_what_is_over_has_no_time_left_in_any_state_and_says_how_it_ended(clouds: tuple[Cloud, Deployed]) -> None:
    count = 0
    for (kind, request, node, serves), (moment, passed) in itertools.product(CASES, PASSED.items()):
        stack = read(clouds, kind, request, node, passed)
        (lease,) = stack.leases
        text, case = Status(stacks=(stack,)).text(), (kind, request, node, moment)
        count += 1
        if serves:
            assert lease.ending is None, case
            continue
        assert lease.left_seconds is None, case
        assert lease.ending, case
        assert not re.search(r"\d (h|min|s) left", text), case
        assert "no time left" in text, case
        assert f"lease {NAME} is {lease.state} ({lease.ending})" in stack.reasons[0], case
        assert "`bezel deploy v6e4`" in stack.reasons[0], case
        assert lease.ends_at is None or lease.ends_at.timestamp() <= NOW, case
        page = Watch(stack="v6e4", at=stack.created_at or "2026-09-21T14:13:20Z", status=stack, metrics=None, notes=())
        assert " left" not in page.text().replace("no time left", ""), case
        if node == "PREEMPTED":
            assert lease.state == "preempted", case
    assert count == 3 * 39  # ACTIVE has the states of its node


def test_a_lease_that_runs_has_its_time_left(clouds: tuple[Cloud, Deployed]) -> None:
    for kind, request, node in (("queued_resource", "ACTIVE", "READY"), ("flex_start_vm", "RUNNING", "")):
        stack = read(clouds, kind, request, node, 1)
        assert stack.leases[0].left_seconds == RUN - 60
        assert "3 h 59 min left" in Status(stacks=(stack,)).text()


def test_a_lease_that_is_awaited_has_no_end_of_an_earlier_machine(clouds: tuple[Cloud, Deployed]) -> None:
    (lease,) = read(clouds, "queued_resource", "WAITING_FOR_RESOURCES", "READY", 1).leases
    assert (lease.ends_at, lease.left_seconds, lease.ending) == (None, None, None)


def test_a_preempted_lease_says_so_with_an_unknown_cost(clouds: tuple[Cloud, Deployed]) -> None:
    stack = read(clouds, "queued_resource", "ACTIVE", "PREEMPTED", 1)
    (lease,) = stack.leases
    assert (stack.verdict, lease.state, lease.usd_so_far) == ("ended", "preempted", None)
    assert "Google took its machine back (PREEMPTED), before its planned end" in stack.reasons[0]
    assert "lease.renew: true" in stack.reasons[0]
    listed = back_end_of("queued_resource", clouds[1].context.google, "acme").observe(ZONE, NAME)
    assert record_of(listed).ends_at is None


def test_only_a_spot_machine_that_stops_early_may_be_preempted(
    clouds: tuple[Cloud, Deployed],
) -> None:
    clouds[0].model = "SPOT"
    (early,) = read(clouds, "flex_start_vm", "TERMINATED", "", 1).leases
    (late,) = read(clouds, "flex_start_vm", "TERMINATED", "", 300).leases
    assert early.ending == "TERMINATED, before its planned end: a Spot machine is preempted so"
    assert late.ending == "TERMINATED, its run duration is over"
    clouds[0].model = "FLEX_START"
    (other,) = read(clouds, "flex_start_vm", "TERMINATED", "", 1).leases
    assert other.ending == "TERMINATED, before its planned end"


def test_a_fleet_s_table_has_the_time_of_those_that_run(clouds: tuple[Cloud, Deployed]) -> None:
    over = read(clouds, "queued_resource", "ACTIVE", "PREEMPTED", 1)
    runs = read(clouds, "queued_resource", "ACTIVE", "READY", 1)
    rows = Status(stacks=(over, runs)).text().splitlines()
    assert "3 h 59 min" not in rows[1]
    assert "3 h 59 min" in rows[2]
