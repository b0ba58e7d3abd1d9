"""Hours of leases under the real engine: jobs lease and return the machine, and no deploy takes that for a change."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.e2e.rehearsal import Rehearsal, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow
STACK, NAME = "v6e1-12b", "bezel-v6e1-12b"
JOBS = "/cloudscheduler/v1/projects/bezel-local/locations/us-east5/jobs"
SECONDS = 90.0


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    folder = tmp_path_factory.mktemp("hours")
    made = Rehearsal.new(folder / "checkout", folder / "cloud")
    made.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32}, STACK)
    made.set("cost", None, STACK)
    yield made
    made.local("stop")


def hours(first: int, last: int) -> list[dict[str, str]]:
    """Hours of each year from so many days after today on, until others."""
    at = [datetime.now(UTC) + timedelta(days=days) for days in (first, last)]
    start, end = (f"0 0 {day.day} {day.month} *" for day in at)
    return [{"start": start, "end": end}]


def up(stage: Rehearsal, *options: str) -> Run:
    run = stage.local("up", STACK, *options)
    assert run.code == 0, run.text
    return run


def unchanged(stage: Rehearsal) -> None:
    run = stage.local("preview", STACK, "--", "--expect-no-changes")
    assert run.code == 0, run.text


def ran(stage: Rehearsal, job: str) -> dict[str, Any]:
    """A job after it was run out of turn."""
    with stage.api() as api:
        before = api.get(f"{JOBS}/{job}").json().get("lastAttemptTime")
        assert api.post(f"{JOBS}/{job}:run", json={}).is_success
        for _ in range(10_000):
            found: dict[str, Any] = api.get(f"{JOBS}/{job}").json()
            if found.get("lastAttemptTime") != before and "status" in found:
                return found
    raise AssertionError(found)


def requested(stage: Rehearsal) -> list[int]:
    """How the cloud answered each request for a lease so far."""
    lines = (stage.cloud / "logs" / "wire.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines if "queuedResources" in line]
    return [call["status"] for call in calls if (call["method"], call["path"][-16:]) == ("POST", "/queuedResources")]


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end


def leases(stage: Rehearsal) -> int:
    return len(stage.exists().get("queuedResources", []))


def status(stage: Rehearsal) -> Run:
    return stage.bezel("status", STACK, **stage.variables())


def test_jobs_lease_and_return_the_machine_and_a_deploy_keeps_to_the_hours(stage: Rehearsal) -> None:
    # Outside its hours a lease is there for the checks, and returned after them.
    stage.set("lease", {"zones": [{"zone": "us-east5-a"}], "duration": "7d", "hours": hours(100, 106)}, STACK)
    first = up(stage)
    assert "outside its hours, and the next lease is requested at" in first.text
    outputs = stage.outputs(STACK)
    assert outputs["smoke"]["verdict"]["ok"] is True
    assert outputs["leases"][NAME]["state"] == "scheduled"
    assert leases(stage) == 0
    assert (status(stage).code, "off-hours" in status(stage).text) == (0, True)
    unchanged(stage)
    assert leases(stage) == 0

    # The job of a start leases the same machine, at whichever address: the gateway serves without a deploy.
    assert ran(stage, f"{NAME}-start-0")["status"] in ({}, {"code": 0})
    headers = {"Authorization": f"Bearer {stage.token(outputs['url'])}"}
    with httpx.Client(base_url=outputs["url"], headers=headers, timeout=60) as caller:
        until(lambda: caller.get("/v1/models").status_code == 200)
        found = status(stage)
        assert (found.code, "off-hours" in found.text) == (0, False), found.text
        unchanged(stage)
        refreshed = stage.local("refresh", STACK)
        assert refreshed.code == 0, refreshed.text
        unchanged(stage)
        # A second start finds the name taken.
        ran(stage, f"{NAME}-start-0")
        until(lambda: requested(stage)[-1] == 409)
        assert leases(stage) == 1

        # The job of an end returns it, and again nothing has changed.
        assert ran(stage, f"{NAME}-end-0")["status"] in ({}, {"code": 0})
        until(lambda: leases(stage) == 0)
        until(lambda: caller.get("/v1/models").status_code == 503)
        unchanged(stage)
        assert leases(stage) == 0

        # A change of the gateway is checked with a lease, which is returned.
        stage.set("access.ingress", "all", STACK)
        stage.set("smoke.requests", 3, STACK)
        assert "health" in up(stage).text
        assert leases(stage) == 0

        # In its hours a deploy leases what is not there, and keeps it.
        stage.set("lease.hours", hours(-1, 5), STACK)
        up(stage)
        assert leases(stage) == 1
        assert caller.get("/v1/models").status_code == 200
        unchanged(stage)
        assert ran(stage, f"{NAME}-end-0")["status"] in ({}, {"code": 0})
        until(lambda: leases(stage) == 0)
        assert status(stage).code == 1
        again = up(stage)
        assert "is not there in its hours" in again.text
        assert leases(stage) == 1

    # Without hours again, the machine moves to another subnetwork, and is leased once.
    stage.set("lease.hours", None, STACK)
    up(stage)
    assert (stage.outputs(STACK)["leases"][NAME]["state"], leases(stage)) == ("active", 1)
    subnetworks = [name for name in stage.exists()["subnetworks"] if NAME in name]
    assert [name.rpartition("/")[2] for name in sorted(subnetworks)] == [f"{NAME}-gateway", f"{NAME}-us-east5"]
    with stage.api() as api:
        assert api.get(JOBS).json().get("jobs", []) == []

    # Nothing of it is left, whether the machine was there or not.
    gone = stage.local("down", STACK)
    assert gone.code == 0, gone.text
    assert stage.local("start").code == 0
    left = {kind: [one for one in names if NAME in str(one)] for kind, names in stage.exists().items()}
    kinds = {"queuedResources", "nodes", "jobs", "accounts", "services", "networks", "subnetworks"}
    assert not {kind: names for kind, names in left.items() if names and kind in kinds}, left
    with stage.api() as api:
        assert api.get(JOBS).json().get("jobs", []) == []
