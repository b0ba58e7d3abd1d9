"""Hours of leases under the real engine: jobs lease and return the machine, and no deploy takes that for a change."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from localcloud_support.client import until
from tests.support.e2e.rehearsal import Rehearsal, Run
from tests.support.e2e.scheduler_jobs import ran

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STACK, NAME = "v6e1-12b", "bezel-v6e1-12b"
JOBS = "/cloudscheduler/v1/projects/bezel-local/locations/us-east5/jobs"
SECONDS = 90.0


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Rehearsal]:
    made = Rehearsal.new(tmp_path / "checkout", tmp_path / "cloud")
    made.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32}, STACK)
    made.set("cost", None, STACK)
    made.set("lease", {"zones": [{"zone": "us-east5-a"}], "duration": "7d", "hours": OUTSIDE}, STACK)
    yield made
    made.stop_cloud()


def hours(first: int, last: int) -> list[dict[str, str]]:
    """Hours of each year from so many days after today on, until others."""
    at = [datetime.now(UTC) + timedelta(days=days) for days in (first, last)]
    start, end = (f"0 0 {day.day} {day.month} *" for day in at)
    return [{"start": start, "end": end}]


# In a hundred days; and since yesterday, for five days more.
OUTSIDE, INSIDE = hours(100, 106), hours(-1, 5)


def up(stage: Rehearsal, *options: str) -> Run:
    run = stage.local("up", STACK, *options)
    assert run.code == 0, run.text
    return run


def check_unchanged(stage: Rehearsal) -> None:
    run = stage.local("preview", STACK, "--", "--expect-no-changes")
    assert run.code == 0, run.text


def request_statuses(stage: Rehearsal) -> list[int]:
    """How the cloud answered each request for a lease so far."""
    lines = (stage.cloud / "logs" / "wire.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines if "queuedResources" in line]
    return [call["status"] for call in calls if (call["method"], call["path"][-16:]) == ("POST", "/queuedResources")]


def leases(stage: Rehearsal) -> int:
    return len(stage.exists().get("queuedResources", []))


def subnetworks(stage: Rehearsal) -> list[str]:
    return sorted(name.rpartition("/")[2] for name in stage.exists()["subnetworks"] if NAME in name)


def jobs(stage: Rehearsal) -> list[Any]:
    with stage.api() as api:
        return list(api.get(JOBS).json().get("jobs", []))


def status(stage: Rehearsal) -> Run:
    return stage.bezel("status", STACK, **stage.variables())


def nothing_left(stage: Rehearsal) -> None:
    """The stack is destroyed, whether its machine was there or not, and nothing of it exists."""
    gone = stage.local("down", STACK)
    assert gone.code == 0, gone.text
    stage.start_cloud()
    left = {kind: [one for one in names if NAME in str(one)] for kind, names in stage.exists().items()}
    kinds = {"queuedResources", "nodes", "jobs", "accounts", "services", "networks", "subnetworks"}
    assert not {kind: names for kind, names in left.items() if names and kind in kinds}, left
    assert jobs(stage) == []


@pytest.mark.wide
@pytest.mark.slow
def test_jobs_lease_and_return_the_machine_and_a_deploy_takes_it_as_it_is(stage: Rehearsal) -> None:
    # Outside its hours a lease is there for the checks, and returned after them.
    first = up(stage)
    assert "outside its hours, and the next lease is requested at" in first.text
    outputs = stage.outputs(STACK)
    assert outputs["smoke"]["verdict"]["ok"] is True
    assert outputs["leases"][NAME]["state"] == "scheduled"
    assert leases(stage) == 0
    assert (status(stage).code, "off-hours" in status(stage).text) == (0, True)
    check_unchanged(stage)
    assert leases(stage) == 0

    # The job of a start leases the same machine, at whichever address: the gateway serves without a deploy.
    assert ran(stage, "us-east5", f"{NAME}-start-0")["status"] in ({}, {"code": 0})
    headers = {"Authorization": f"Bearer {stage.token(outputs['url'])}"}
    with httpx.Client(base_url=outputs["url"], headers=headers, timeout=60) as caller:
        until(lambda: caller.get("/v1/models").status_code == 200, SECONDS)
        status_run = status(stage)
        assert (status_run.code, "off-hours" in status_run.text) == (0, False), status_run.text
        check_unchanged(stage)
        refreshed = stage.local("refresh", STACK)
        assert refreshed.code == 0, refreshed.text
        check_unchanged(stage)
        # A second start finds the name taken.
        ran(stage, "us-east5", f"{NAME}-start-0")
        until(lambda: request_statuses(stage)[-1] == 409, SECONDS)
        assert leases(stage) == 1
        # A later try deletes none that is there, and requests none beside it.
        for verb in ("clear", "again"):
            assert ran(stage, "us-east5", f"{NAME}-{verb}-0")["status"].get("code"), verb
        assert (leases(stage), request_statuses(stage)[-1]) == (1, 409)

        # The job of an end returns it.
        assert ran(stage, "us-east5", f"{NAME}-end-0")["status"] in ({}, {"code": 0})
        until(lambda: leases(stage) == 0, SECONDS)
        until(lambda: caller.get("/v1/models").status_code == 503, SECONDS)
    nothing_left(stage)


@pytest.mark.long
def test_a_deploy_leases_for_a_check_and_keeps_the_machine_without_hours(
    stage: Rehearsal,
) -> None:
    up(stage)
    # A change of what is checked is checked with a lease, which is returned.
    stage.set("smoke.requests", 3, STACK)
    assert "health" in up(stage).text
    assert leases(stage) == 0

    # In its hours a deploy leases what is not there, and keeps it.
    stage.set("lease.hours", INSIDE, STACK)
    up(stage)
    assert leases(stage) == 1
    check_unchanged(stage)
    assert ran(stage, "us-east5", f"{NAME}-end-0")["status"] in ({}, {"code": 0})
    until(lambda: leases(stage) == 0, SECONDS)
    assert status(stage).code == 1
    again = up(stage)
    assert "is not there in its hours" in again.text
    assert leases(stage) == 1

    # More machines have another subnetwork, and so have those without hours again; each is leased once.
    stage.set("lease.count", 3, STACK)
    up(stage)
    assert (leases(stage), subnetworks(stage)) == (3, [f"{NAME}-12-addresses", f"{NAME}-gateway"])
    stage.set("lease.count", None, STACK)
    up(stage)
    assert (leases(stage), subnetworks(stage)) == (1, [f"{NAME}-4-addresses", f"{NAME}-gateway"])

    # Without hours again, the machine moves to another subnetwork, and is leased once.
    stage.set("lease.hours", None, STACK)
    up(stage)
    assert (stage.outputs(STACK)["leases"][NAME]["state"], leases(stage)) == ("active", 1)
    assert subnetworks(stage) == [f"{NAME}-gateway", f"{NAME}-us-east5"]
    assert jobs(stage) == []
    nothing_left(stage)
