"""A schedule of instances under the real engine: its jobs change the minimum alone, and no deploy undoes that."""

from typing import Any

import pytest

from tests.support.e2e.rehearsal import Rehearsal
from tests.support.e2e.scheduler_jobs import ran

JOBS = "/cloudscheduler/v1/projects/bezel-local/locations/us-east4/jobs"
SERVICE = "/run/v2/projects/bezel-local/locations/us-east4/services/bezel-l4-qat"
# On the platform's fast clock a year passes in hours: none of them is due while this runs.
ENTRIES = [
    {"cron": "0 8 1 2 *", "time_zone": "Europe/Berlin", "min_instances": 1},
    {"cron": "0 18 2 1 *", "time_zone": "Europe/Berlin", "min_instances": 0},
]


def service(rehearsal: Rehearsal) -> dict[str, Any]:
    with rehearsal.api() as api:
        answer: dict[str, Any] = api.get(SERVICE).json()
        return answer


def minimum(rehearsal: Rehearsal) -> int:
    return int(service(rehearsal).get("scaling", {}).get("minInstanceCount", 0))


def set_minimum(rehearsal: Rehearsal, number: int) -> None:
    with rehearsal.api() as api:
        body = {"scaling": {"minInstanceCount": number}}
        assert api.patch(SERVICE, params={"updateMask": "scaling.minInstanceCount"}, json=body).is_success


def up(rehearsal: Rehearsal, *arguments: str) -> str:
    run = rehearsal.local("up", "l4-qat", *arguments)
    assert run.code == 0, run.text
    return run.text


@pytest.mark.wide
def test_what_the_schedule_sets_stays_until_it_sets_another_one(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    rehearsal.set("cost", {"max_hourly_usd": 2, "max_idle_hourly_usd": 2})
    rehearsal.set("scaling", {"schedule": ENTRIES})
    up(rehearsal)
    first = service(rehearsal)
    # The last entry that occurred, in February, has set one instance.
    assert minimum(rehearsal) == 1
    up(rehearsal, "--", "--expect-no-changes")

    # A job changes the minimum with its own account, and makes no revision.
    set_minimum(rehearsal, 1)
    job = ran(rehearsal, "us-east4", "bezel-l4-qat-scaling-1")
    assert job["status"] in ({}, {"code": 0}), job
    assert minimum(rehearsal) == 0
    assert service(rehearsal)["latestCreatedRevision"] == first["latestCreatedRevision"]

    # Neither a deploy nor a refresh takes that for a change.
    up(rehearsal, "--", "--expect-no-changes")
    refreshed = rehearsal.local("refresh", "l4-qat")
    assert refreshed.code == 0, refreshed.text
    up(rehearsal, "--", "--expect-no-changes")

    # An update of the service sets what holds at present.
    rehearsal.set("labels.team", "speech")
    up(rehearsal)
    assert minimum(rehearsal) == 1
    assert service(rehearsal)["labels"]["team"] == "speech"

    # A minimum that no entry sets is a difference.
    set_minimum(rehearsal, 3)
    assert "which no entry of the schedule sets" in up(rehearsal)
    assert minimum(rehearsal) == 1

    # Without the schedule no instance is kept, and nothing of it is left.
    rehearsal.set("scaling.schedule", None)
    up(rehearsal)
    assert minimum(rehearsal) == 0
    with rehearsal.api() as api:
        assert api.get(JOBS).json().get("jobs", []) == []
    gone = rehearsal.local("down", "l4-qat")
    assert gone.code == 0, gone.text
