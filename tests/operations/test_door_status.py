"""Status of a stack's door: its own row, and a verdict that it lowers where callers by key get no answer."""

from typing import Any

import pytest

from bezel.operations.doctor.access_checks import access_jobs
from bezel.operations.status.status import StackStatus, StatusArguments, status
from tests.support.operations.deployed import (
    DOOR,
    SERVICE,
    Deployed,
    door_resource,
    live_service,
    service_resource,
    state_of,
)

FAILED = {"terminalCondition": {"state": "CONDITION_FAILED", "message": "The container failed to start."}}


def of(cloud: Deployed, door: dict[str, Any] | None) -> StackStatus:
    cloud.keep("dev", state_of(door_resource(), service_resource(), url="https://llm.example", model="gemma"))
    cloud.live[SERVICE] = live_service()
    if door is not None:
        cloud.live[DOOR] = live_service(name=DOOR, **door)
    return status(cloud.context, StatusArguments(stack="dev")).stacks[0]


def test_door_that_is_ready_is_a_row_beside_the_service(cloud: Deployed) -> None:
    shown = of(cloud, {})
    assert (shown.verdict, shown.service) == ("ready", SERVICE)
    assert shown.door is not None
    assert shown.door.line() == "https://llm-door.example, ready"


@pytest.mark.parametrize(
    ("door", "verdict", "reason"),
    [(FAILED, "failed", "The container failed to start."), (None, "gone", f"Cloud Run has no {DOOR}")],
)
def test_stack_whose_door_does_not_serve_is_degraded(
    cloud: Deployed, door: dict[str, Any] | None, verdict: str, reason: str
) -> None:
    shown = of(cloud, door)
    assert shown.verdict == "degraded"
    assert shown.reasons == (f"the door for callers by key is {verdict}: {reason}",)


def test_doctor_names_a_door_that_does_not_serve(cloud: Deployed) -> None:
    def checks() -> list[tuple[str, str]]:
        (job,) = access_jobs(cloud.context, ["dev"], 5.0)
        return [(each.state, each.subject) for each in job.run() if "door of dev" in each.subject]

    of(cloud, {})
    assert checks() == [("ok", "door of dev")]
    of(cloud, FAILED)
    assert checks() == [("problem", "door of dev")]
