"""Status of a stack's door: its own row, and a verdict that it lowers where callers by key get no answer."""

from typing import Any

import pytest

from bezel.operations.doctor.access_checks import access_jobs
from bezel.operations.status.door_log import MEANINGS
from bezel.operations.status.status import StackStatus, StatusArguments, status
from bezel_door.archive import door_archive
from tests.support.operations.deployed import (
    DOOR,
    SERVICE,
    Deployed,
    door_resource,
    live_service,
    logged_line,
    logged_request,
    service_resource,
    state_of,
)
from tests.support.rest.fake_google import Answer

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


def door_line(text: str, ago: float, **fields: Any) -> dict[str, Any]:
    """A line of a door's log, as Cloud Logging keeps it: with fields beside its text, or the text alone."""
    entry = logged_line(text, ago, "i", log="stdout")
    entry["resource"]["labels"]["service_name"] = "llm-door"
    if fields:
        del entry["textPayload"]
        entry["jsonPayload"] = {"message": text, **fields}
    return entry


def served_line(ago: float, status: int = 200) -> dict[str, Any]:
    return door_line(f"/v1/messages {status}", ago, key="abcd1234", path="/v1/messages", status=status)


NO_KEYS = "the keys cannot be read: Cloud Storage answered HTTP 403 for keys.json"
REFUSED = "the platform in front of the server answered HTTP 403"
NO_COUNTS = "counts cannot be exchanged: Cloud Storage answered HTTP 403 to the write of usage/x.json"
NO_INSTANCE = "the platform in front of the server answered HTTP 503"


@pytest.mark.parametrize(
    ("lines", "verdict", "reason"),
    [
        ([door_line(NO_KEYS, 60)], "failing", "it cannot read its keys; after 5 minutes callers get 503"),
        ([door_line(NO_KEYS, 60), served_line(58)], "failing", "HTTP 403 for keys.json"),
        ([door_line(REFUSED, 9), served_line(9, 502)], "failing", "the server refuses it: callers get 502"),
        ([door_line(NO_COUNTS, 60), served_line(60)], "degraded", "it cannot exchange the use of keys"),
        ([door_line("the server cannot be reached: gaierror", 9)], "failing", "it does not reach the server"),
        ([door_line("the metadata server answered HTTP 500", 1)], "failing", "it gets no identity"),
        ([door_line(NO_KEYS, 60), served_line(30)], "ready", ""),
        ([door_line(REFUSED, 60), served_line(30, 502)], "failing", "the server refuses it"),
        ([door_line(NO_KEYS, 1000)], "ready", ""),
        ([door_line(NO_INSTANCE, 9), door_line("/v1/messages 401 invalid_api_key", 3, status=401)], "ready", ""),
    ],
)
def test_door_is_judged_by_its_newest_lines(
    cloud: Deployed, lines: list[dict[str, Any]], verdict: str, reason: str
) -> None:
    cloud.requests = [logged_request(200), *lines]
    shown = of(cloud, {})
    assert shown.door is not None
    assert (shown.door.verdict, shown.verdict) == (verdict, "ready" if verdict == "ready" else "degraded")
    assert reason in " ".join(shown.door.reasons)


def test_door_whose_log_is_not_readable_stays_ready_with_the_reason(cloud: Deployed) -> None:
    cloud.requests = Answer(403, json={"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}})
    shown = of(cloud, {}).door
    assert shown is not None
    assert (shown.verdict, "its log could not be read" in shown.reasons[0]) == ("ready", True)


def test_lines_that_are_judged_are_those_that_the_shipped_door_writes() -> None:
    program = door_archive()
    assert [begin for begin in MEANINGS if begin.removesuffix("40").encode() not in program] == []


def test_doctor_names_a_door_that_does_not_serve(cloud: Deployed) -> None:
    def checks() -> list[tuple[str, str]]:
        (job,) = access_jobs(cloud.context, ["dev"], 5.0)
        return [(each.state, each.subject) for each in job.run() if "door of dev" in each.subject]

    of(cloud, {})
    assert checks() == [("ok", "door of dev")]
    cloud.requests = [door_line(REFUSED, 5)]
    assert checks() == [("problem", "door of dev")]
    cloud.requests = Answer(403, json={"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}})
    assert checks() == [("unknown", "door of dev")]
    cloud.requests = []
    of(cloud, FAILED)
    assert checks() == [("problem", "door of dev")]
