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


def up(rehearsal: Rehearsal, *arguments: str, code: int = 0) -> str:
    run = rehearsal.local("up", "l4-qat", *arguments)
    assert run.code == code, run.text
    return run.text


def admit_outsider(rehearsal: Rehearsal, *members: str) -> None:
    """Give the service's role of a caller to these outside of the program, and to nobody else."""
    with rehearsal.api() as api:
        policy = api.get(f"{SERVICE}:getIamPolicy", params={"options.requestedPolicyVersion": 3}).json()
        bindings = [each for each in policy.get("bindings", []) if each["role"] != "roles/run.invoker"]
        bindings += [{"role": "roles/run.invoker", "members": list(members)}] if members else []
        body = {"policy": policy | {"bindings": bindings}}
        assert api.post(f"{SERVICE}:setIamPolicy", json=body).is_success


@pytest.mark.wide
def test_what_the_schedule_sets_stays_until_it_sets_another_one(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    rehearsal.set("cost", {"max_hourly_usd": 2, "max_idle_hourly_usd": 2})
    up(rehearsal)
    # A deploy that only adds the schedule checks nothing, and notes what it declares.
    rehearsal.set("scaling", {"schedule": ENTRIES})
    assert "HealthCheck vllm-health updated" in up(rehearsal)
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

    # Without the schedule no instance is kept, and nothing of it is left. A new revision is checked before the deletes,
    # which finds the schedule's own grants no change, and another one a change.
    rehearsal.set("scaling.schedule", None)
    rehearsal.set("vllm.max-num-seqs", 4)
    admit_outsider(rehearsal, "user:mallory@example.com")
    refused = up(rehearsal, code=1)
    assert "the drift check fails" in refused
    assert "--member=user:mallory@example.com" in refused
    assert "roles/run.developer" not in refused
    admit_outsider(rehearsal)
    up(rehearsal)
    assert minimum(rehearsal) == 0
    with rehearsal.api() as api:
        assert api.get(JOBS).json().get("jobs", []) == []
    gone = rehearsal.local("down", "l4-qat")
    assert gone.code == 0, gone.text
