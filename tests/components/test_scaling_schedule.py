"""A schedule's jobs ask for one field with an account of their own, and the minimum of the present time is set."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from bezel.planner.base.schedule import Entry
from bezel.rest import endpoint
from bezel_components.providers.scheduled_minimum import ScheduledMinimumError, ScheduledMinimumProvider
from bezel_components.scaling_schedule import ScalingSchedule, ScalingScheduleArgs
from tests.support.components.fake_engine import declare
from tests.support.rest.fake_google import Answer, Call, Server, serving

NAME = "projects/acme/locations/us-east4/services/chat"
RUNTIME = "chat@acme.iam.gserviceaccount.com"
JOB = "cloudscheduler/job:Job"
# Both occur at the same time, of which the later one counts: two hold at all times, in the first hour of a year too.
ALWAYS_TWO = (Entry("0 0 1 1 *", "UTC", 0), Entry("0 0 1 1 *", "UTC", 2))
PROPS = {
    "service": NAME,
    "entries": [list(entry) for entry in ALWAYS_TWO],
    "service_inputs": "1",
    "deadline_seconds": 5.0,
}


def test_each_entry_is_a_job_that_changes_the_minimum_alone() -> None:
    args = ScalingScheduleArgs(
        project="acme", location="us-east4", service="chat", runtime_account=RUNTIME, account_id="chat-scale",
        entries=ALWAYS_TWO, service_inputs="1",
    )  # fmt: skip
    made = declare(lambda: ScalingSchedule("schedule", args) and {})
    jobs = [job.inputs for job in made.of(JOB)]
    assert [json.loads(base64.b64decode(job["httpTarget"]["body"])) for job in jobs] == [
        {"scaling": {"minInstanceCount": 0}},
        {"scaling": {"minInstanceCount": 2}},
    ]
    assert {job["httpTarget"]["uri"] for job in jobs} == {
        f"https://run.googleapis.com/v2/{NAME}?updateMask=scaling.minInstanceCount"
    }
    account = "chat-scale@acme.iam.gserviceaccount.com"
    assert {job["httpTarget"]["oauthToken"]["serviceAccountEmail"] for job in jobs} == {account}
    grants = {grant.inputs["role"]: grant.inputs for grant in made.all if "role" in grant.inputs}
    assert {inputs["member"] for inputs in grants.values()} == {f"serviceAccount:{account}"}
    assert grants["roles/run.developer"]["name"] == "chat"
    assert grants["roles/iam.serviceAccountUser"]["serviceAccountId"].endswith(RUNTIME)


class Run:
    """One service on a socket."""

    def __init__(self, server: Server) -> None:
        self.minimum: int | None = 0
        self.bodies: list[Any] = []
        self.operation: dict[str, Any] = {"done": True}
        server.routes.append(self.answer)

    def answer(self, call: Call) -> Answer:
        if self.minimum is None:
            return Answer(status=404, json={"error": {"code": 404, "message": "gone", "status": "NOT_FOUND"}})
        if call.method == "PATCH":
            assert call.query == {"updateMask": "scaling.minInstanceCount"}
            self.bodies.append(call.json)
            self.minimum = call.json["scaling"]["minInstanceCount"]
            return Answer(json={"name": "operations/1", **self.operation})
        return Answer(json={"name": NAME, "scaling": {"minInstanceCount": self.minimum}})


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    with serving() as server:
        monkeypatch.setenv("GOOGLE_CLOUD_RUN_V2_CUSTOM_ENDPOINT", f"{server.url}/")
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.token")
        assert endpoint("CLOUD_RUN_V2") == f"{server.url}/"
        yield Run(server)


def test_a_deploy_sets_the_present_minimum_and_an_end_sets_nothing(run: Run) -> None:
    """A deploy sets what holds at present and the end of the schedule sets nothing at all."""
    provider = ScheduledMinimumProvider()
    assert provider.create(dict(PROPS)).outs["minimum"] == 2  # type: ignore[index]
    assert provider.update("id", dict(PROPS), dict(PROPS)).outs["minimum"] == 2  # type: ignore[index]
    provider.delete("id", dict(PROPS))
    assert [body["scaling"]["minInstanceCount"] for body in run.bodies] == [2, 2, 0]


@pytest.mark.parametrize(("minimum", "changes"), [(0, False), (2, False), (1, True), (3, True)])
def test_a_minimum_that_an_entry_sets_is_no_difference(
    run: Run, capsys: pytest.CaptureFixture[str], minimum: int, changes: bool
) -> None:
    run.minimum = minimum
    olds = {**PROPS, "entries": [["0 0 1 1 *", "UTC", 0.0], ["0 0 1 1 *", "UTC", 2.0]]}  # as the engine returns it
    assert ScheduledMinimumProvider().diff("id", olds, dict(PROPS)).changes is changes
    assert ("which no entry of the schedule sets" in capsys.readouterr().err) is changes


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("changed", [{"service_inputs": "2"}, {"entries": [["0 0 1 1 *", "UTC", 1]]}])
def test_another_schedule_or_another_service_is_a_difference(changed: dict[str, Any]) -> None:
    assert ScheduledMinimumProvider().diff("id", dict(PROPS), {**PROPS, **changed}).changes is True


def test_a_service_that_is_gone_has_no_minimum(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """A service that is gone has no minimum and one that cannot be read is reported."""
    run.minimum = None
    provider = ScheduledMinimumProvider()
    provider.delete("id", dict(PROPS))
    assert provider.read("id", dict(PROPS)).id == ""
    assert provider.diff("id", dict(PROPS), dict(PROPS)).changes is False
    assert "it is unknown how many instances are kept running" in capsys.readouterr().err
    with pytest.raises(ScheduledMinimumError, match="its minimum of instances cannot be set to 2"):
        provider.create(dict(PROPS))


def test_an_operation_that_fails_or_never_ends_is_an_error(run: Run) -> None:
    run.operation = {"done": True, "error": {"message": "Internal error encountered."}}
    with pytest.raises(ScheduledMinimumError, match="Internal error encountered"):
        ScheduledMinimumProvider().create(dict(PROPS))
    run.operation = {"done": False}
    with pytest.raises(ScheduledMinimumError, match="not set in time"):
        ScheduledMinimumProvider().create({**PROPS, "deadline_seconds": 0.0})
