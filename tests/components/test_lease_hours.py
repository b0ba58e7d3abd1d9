"""A lease with hours: requested and returned by jobs, and by a deploy only where its hours or a check ask for it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pulumi
import pytest

from bezel.leases.requests import LeaseSpec, ZoneChoice
from bezel.leases.state.observation import Goal
from bezel.planner.base.hours import Window
from bezel_components import scheduling_identity
from bezel_components.base.explained_errors import REFUSED, explaining
from bezel_components.lease_hours import LeaseHours, LeaseHoursArgs, again_jobs
from bezel_components.scheduling_identity import SchedulingIdentity, SchedulingIdentityArgs
from tests.support.components.fake_engine import Declarations, declare
from tests.support.leases.fake_lease_api import lease_api_serving
from tests.support.leases.harness import NAME, PATIENCE, STACK, SUBNETWORKS, LeaseHarness, body_of, point_at
from tests.support.leases.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

ZONE = "us-east5-a"
# The world begins on a Monday at 14:13 UTC.
INSIDE, OUTSIDE = [["0 14 * * *", "0 18 * * *", "UTC"]], [["0 18 * * *", "0 14 * * *", "UTC"]]
JOB = "cloudscheduler/job:Job"
WINDOWS = (Window("0 8 * * 1-5", "0 18 * * 1-5", "Europe/Berlin"), Window("0 10 * * 6", "0 14 * * 6", "UTC"))
ACCOUNT = "hours@acme.iam.gserviceaccount.com"


@pytest.fixture(params=["queued_resource", "flex_start_vm"])
def stack(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    with lease_api_serving() as world:
        point_at(world, monkeypatch)
        yield Stack(world, request.param)


def remaining(stack: Stack) -> list[Any]:
    return LeaseHarness(stack.world, stack.kind).remaining()  # type: ignore[arg-type]


def up(stack: Stack, hours: list[list[str]], **more: Any) -> list[str]:
    """Deploy, and what that did."""
    stack.did.clear()
    stack.up(hours=hours, zones=(ZONE,), **more)
    return [*stack.did]


def job_runs(stack: Stack, goal: Goal) -> None:
    """What the job of a start or an end does: the same request without a deploy."""
    harness = LeaseHarness(stack.world, stack.kind)  # type: ignore[arg-type]
    harness.run(goal, harness.spec(zones=(ZONE,)))


@pytest.mark.slow
def test_in_its_hours_a_lease_stays_after_the_checks(stack: Stack) -> None:
    assert up(stack, INSIDE) == ["request create", "node create", "after checks create"]
    assert len(remaining(stack)) == 1
    assert up(stack, INSIDE) == ["node diff", "after checks diff"]
    stack.down()
    assert remaining(stack) == []


@pytest.mark.slow
def test_outside_its_hours_a_lease_is_returned_after_the_checks(stack: Stack) -> None:
    """Outside its hours a lease is returned after the checks and not requested again."""
    assert up(stack, OUTSIDE) == ["request create", "node create", "after checks create"]
    assert remaining(stack) == []
    assert up(stack, OUTSIDE) == ["node diff", "after checks diff"]
    assert remaining(stack) == []
    stack.down()


@pytest.mark.slow
@pytest.mark.parametrize("hours", [INSIDE, OUTSIDE])
def test_the_lease_of_a_job_is_no_change_for_a_deploy_or_a_refresh(stack: Stack, hours: list[list[str]]) -> None:
    up(stack, hours)
    recorded = stack.request, stack.node
    job_runs(stack, Goal.GONE)
    job_runs(stack, Goal.HEALTHY)
    assert len(remaining(stack)) == 1
    assert up(stack, hours) == ["node diff", "after checks diff"]
    stack.refresh()
    assert (stack.request, stack.node) == recorded
    assert len(remaining(stack)) == 1
    stack.down()
    assert remaining(stack) == []


@pytest.mark.slow
def test_a_lease_that_is_not_there_is_requested_in_its_hours_only(
    stack: Stack, capfd: pytest.CaptureFixture[str]
) -> None:
    up(stack, INSIDE)
    job_runs(stack, Goal.GONE)
    capfd.readouterr()
    assert up(stack, INSIDE) == ["node diff", "node update", "after checks diff"]
    assert "is not there in its hours: nothing serves; another one costs 21.60 USD" in capfd.readouterr().err
    assert len(remaining(stack)) == 1

    # Four hours later the hours are over, and the job has come.
    job_runs(stack, Goal.GONE)
    stack.world.advance(4 * 3600)
    assert up(stack, INSIDE) == ["node diff", "after checks diff"]
    assert remaining(stack) == []
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_check_outside_the_hours_gets_a_lease_and_returns_it(stack: Stack) -> None:
    """A check outside the hours gets a lease that is returned afterwards."""
    up(stack, OUTSIDE, checked="1")
    asked = len(stack.world.leases)
    assert up(stack, OUTSIDE, checked="2") == ["node diff", "node update", "after checks diff", "after checks update"]
    assert len(stack.world.leases) == asked + 1
    assert remaining(stack) == []


@pytest.mark.slow
def test_other_hours_alone_buy_nothing_outside_of_them(stack: Stack) -> None:
    up(stack, OUTSIDE)
    asked = len(stack.world.leases)
    other = [["0 19 * * *", "0 13 * * *", "UTC"]]
    assert "after checks update" in up(stack, other)
    assert (len(stack.world.leases), remaining(stack)) == (asked, [])


@pytest.mark.slow
def test_what_is_recorded_of_a_lease_with_hours_ignores_the_time(stack: Stack) -> None:
    """Nothing that is recorded of a lease with hours depends on the time."""
    up(stack, INSIDE)
    assert stack.node is not None
    assert stack.request is not None
    assert (stack.node["state"], stack.node["address"], stack.node["zone"]) == ("scheduled", "", ZONE)
    assert stack.node["lease"] == stack.request["asked"]
    assert "ends_at" not in stack.node
    assert (stack.node["cost"]["so_far_usd"], stack.node["cost"]["at_end_usd"]) == ("unknown", 21.6)


@pytest.mark.slow
def test_without_hours_the_end_of_a_lease_is_recorded(stack: Stack) -> None:
    stack.up(zones=(ZONE,))
    job_runs(stack, Goal.GONE)
    stack.did.clear()
    stack.up(zones=(ZONE,))
    assert stack.node is not None
    assert stack.did == ["node diff", "node update"]
    assert stack.node["state"] == "gone"
    assert remaining(stack) == []


def jobs(kind: Any) -> tuple[Declarations, dict[str, dict[str, Any]]]:
    args = LeaseHoursArgs(
        project="acme", location="us-east5", name=NAME, stack=STACK, back_end=kind, zone=ZoneChoice(ZONE, PATIENCE),
        subnetwork=SUBNETWORKS["us-east5"], body=body_of(kind), account=ACCOUNT, request="r", checked="1",
        windows=WINDOWS,
    )  # fmt: skip
    declared = declare(lambda: LeaseHours("hours", args) and {})
    return declared, {job.inputs["name"]: job.inputs for job in declared.of(JOB)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["queued_resource", "flex_start_vm"])
def test_a_start_sends_a_deploy_s_request_and_an_end_deletes_it(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start sends the request of a deploy and an end deletes that lease alone."""
    _, by_name = jobs(kind)
    verbs = ("start", "end", "again", *(["clear"] if kind == "queued_resource" else []))
    assert set(by_name) == {f"{NAME}-{verb}-{number}" for verb in verbs for number in (0, 1)}
    assert by_name[f"{NAME}-again-0"]["httpTarget"] == by_name[f"{NAME}-start-0"]["httpTarget"]
    assert again_jobs(NAME, WINDOWS, PATIENCE) == (f"{NAME}-again-0", f"{NAME}-again-1")
    assert again_jobs(NAME, WINDOWS, 9 * 3600) == ()
    for name, job in by_name.items():
        # An attempt of a later try must not come after the hours.
        assert job["retryConfig"]["retryCount"] == (0 if "again" in name or "clear" in name else 5)
    if kind == "queued_resource":
        clear = by_name[f"{NAME}-clear-0"]["httpTarget"]
        assert (clear["httpMethod"], "force" in clear["uri"]) == ("DELETE", False)
        assert by_name[f"{NAME}-end-0"]["httpTarget"]["uri"] == f"{clear['uri']}?force=true"
    start, end = by_name[f"{NAME}-start-0"], by_name[f"{NAME}-end-0"]
    assert (start["schedule"], end["schedule"], start["timeZone"]) == ("0 8 * * 1-5", "0 18 * * 1-5", "Europe/Berlin")
    assert by_name[f"{NAME}-end-1"]["schedule"] == "0 14 * * 6"
    sent = json.loads(base64.b64decode(start["httpTarget"]["body"]))
    spec = LeaseSpec("acme", NAME, STACK, kind, (ZoneChoice(ZONE, PATIENCE),), SUBNETWORKS, body_of(kind))
    assert sent == json.loads(json.dumps(spec.body_in(spec.zones[0])))

    # The addresses are those of a deploy's calls, below Google's own.
    with lease_api_serving() as world:
        point_at(world, monkeypatch)
        harness = LeaseHarness(world, kind)
        harness.run(Goal.STORED, harness.spec(zones=(ZONE,)))
        harness.run(Goal.GONE, harness.spec(zones=(ZONE,)))
        calls = {call.method: call for call in world.server.calls if call.method in ("POST", "DELETE")}
    host, prefix = {
        "queued_resource": ("tpu.googleapis.com", "/v2alpha1"),
        "flex_start_vm": ("compute.googleapis.com", "/compute/v1"),
    }[kind]
    for job, method in ((start, "POST"), (end, "DELETE")):
        target, call = job["httpTarget"], calls[method]
        parts = urlsplit(target["uri"])
        assert (target["httpMethod"], parts.hostname) == (method, host)
        assert call.path.endswith(parts.path.removeprefix(prefix))
        query = {key: value for key, (value,) in parse_qs(parts.query).items()}
        assert query == {key: value for key, value in call.query.items() if key != "requestId"}
        assert target["oauthToken"]["serviceAccountEmail"] == ACCOUNT


@pytest.mark.parametrize(
    ("error", "explained"),
    [("googleapi: Error 403: Policy update access denied.", True), ("googleapi: Error 409: concurrent changes", False)],
)
def test_a_refused_role_of_the_jobs_is_explained(caplog: pytest.LogCaptureFixture, error: str, explained: bool) -> None:
    """A refused role of the jobs is explained with what the deploying account needs."""
    args = SchedulingIdentityArgs(
        project="acme", account_id="chat-hours", runtime_account="v@acme.iam.gserviceaccount.com", stack="chat",
        back_end="queued_resource",
    )  # fmt: skip

    def program() -> bool:
        (hook,) = explaining("x", REFUSED, scheduling_identity._refusal("roles/tpu.admin", args)).on_error
        return hook(pulumi.ErrorHookArgs(urn="u", id="", name="n", type="t", errors=[error]))

    assert declare(program).result is False
    assert ("remove `bezel:lease.hours`" in caplog.text) is explained
    members = declare(lambda: SchedulingIdentity("own", args) and {}).of("projects/iAMMember:IAMMember")
    assert all(member.hooks for member in members)


@pytest.mark.parametrize(
    ("kind", "roles"),
    [
        ("queued_resource", {"roles/tpu.admin", "roles/compute.networkUser"}),
        ("flex_start_vm", {"roles/compute.instanceAdmin.v1"}),
    ],
)
def test_the_account_of_the_jobs_leases_and_runs_machines(kind: Any, roles: set[str]) -> None:
    """The account of the jobs leases machines and runs them as one account."""
    args = SchedulingIdentityArgs(
        project="acme", account_id="chat-hours", runtime_account="vllm@acme.iam.gserviceaccount.com", back_end=kind,
        stack="chat",
    )  # fmt: skip
    declared = declare(lambda: SchedulingIdentity("scheduling", args) and {})
    grants = {grant.inputs["role"]: grant.inputs for grant in declared.all if "role" in grant.inputs}
    assert set(grants) == roles | {"roles/iam.serviceAccountUser"}
    assert {grant["member"] for grant in grants.values()} == {"serviceAccount:chat-hours@acme.iam.gserviceaccount.com"}
    assert grants["roles/iam.serviceAccountUser"]["serviceAccountId"].endswith("/vllm@acme.iam.gserviceaccount.com")
