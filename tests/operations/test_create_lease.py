"""A lease requested by hand against localcloud's own APIs: what is planned is requested, once, and nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bezel.leases.names import BY_HAND
from bezel.operations.changes.basis import ChangedError
from bezel.operations.changes.stack_lock import CancelledError
from bezel.operations.tpu.lease_request import CreateArguments
from bezel_base.errors import UserError
from tests.support.cli.tpu_cloud import EMPTY, OTHER, ZONE, running
from tests.support.operations.lease_cloud import ACCOUNT, LeaseCloud
from tests.support.rest.fake_google import Answer, Call

pytestmark = pytest.mark.slow  # a whole cloud each


@pytest.fixture
def leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[LeaseCloud]:
    with running(tmp_path, monkeypatch, capsys) as cloud:
        yield LeaseCloud(cloud)


def test_a_plan_shows_lease_zones_and_price_and_requests_nothing(leases: LeaseCloud) -> None:
    plan = leases.plan(duration="2h")
    assert plan.summary == f"one v6e-1 in {ZONE}, then {OTHER}"
    assert [change.line for change in plan.changes] == ["+  dev-one (tpu.googleapis.com/QueuedResource)"]
    assert plan.price_after is not None
    hourly, until_end = plan.price_after.usd_per_hour, plan.price_after.usd_per_month
    assert hourly is not None
    assert hourly > 0
    assert until_end == hourly * 2
    assert (plan.refusals, plan.confirm_name) == ((), None)
    assert leases.cloud.changing_calls == []


def test_what_was_planned_is_requested_once_and_is_ended_by_the_platform(leases: LeaseCloud) -> None:
    done = leases.create(leases.plan(duration="2h", patience="30m"))
    assert (done.verdict, done.problems) == ("done", ())
    assert done.details[0].startswith(f"{ZONE}: ")
    leases.cloud.wait_until_settled("dev-one", ZONE)
    body = leases.cloud.project.ok(
        "GET", f"/tpu/v2alpha1/projects/bezel-local/locations/{ZONE}/queuedResources/dev-one"
    )
    assert (body["provisioningModel"], body["runDuration"]) == ("FLEX_START", {"maxRunDuration": "7200s"})
    node = body["tpu"]["nodeSpec"][0]["node"]
    assert node["serviceAccount"]["email"] == ACCOUNT
    assert node["networkConfig"]["enableExternalIps"] is False
    (lease,) = leases.list().leases
    assert (lease.name, lease.stack, lease.state, lease.max_run_seconds) == ("dev-one", BY_HAND, "active", 7200)
    assert lease.usd_per_hour is not None
    again = leases.plan(duration="2h", patience="30m")
    assert (again.is_empty, again.changes) == (True, ())
    assert leases.create(again).verdict == "unchanged"


def test_a_machine_with_gpus_is_requested_of_compute_engine(leases: LeaseCloud) -> None:
    plan = leases.plan(hardware="g2-standard-96", zone=(OTHER,))
    assert [change.type for change in plan.changes] == ["compute.googleapis.com/Instance"]


def refusing(leases: LeaseCloud, zone: str) -> None:
    error = {"error": {"code": 403, "message": "no flex-start in this zone", "status": "PERMISSION_DENIED"}}
    leases.cloud.server.routes.insert(
        0, lambda call: Answer(403, error) if call.method == "POST" and zone in call.path else None
    )


def test_the_next_zone_has_it_where_the_first_one_refuses(leases: LeaseCloud) -> None:
    refusing(leases, ZONE)
    assert leases.create(leases.plan()).details[0].startswith(f"{OTHER}: ")


def test_a_request_that_every_zone_refuses_leaves_nothing(leases: LeaseCloud) -> None:
    refusing(leases, "")
    with pytest.raises(UserError, match="none of 2 zones granted it"):
        leases.create(leases.plan())
    assert leases.cloud.remaining_names() == set()


def test_every_problem_is_reported_at_once(leases: LeaseCloud) -> None:
    with pytest.raises(UserError) as refused:
        leases.plan(hardware="v9", duration="soon", network="none", zone=(EMPTY, ZONE))
    keys = [problem.key for problem in refused.value.problems]
    assert keys == ["--hardware", "--duration", "--network", "--network"]
    assert leases.cloud.changing_calls == []


@pytest.mark.parametrize("duration", ["5m", "8d"])
def test_a_duration_that_google_refuses_is_refused(leases: LeaseCloud, duration: str) -> None:
    with pytest.raises(UserError, match="Choose between 10 minutes and 7 days"):
        leases.plan(duration=duration)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "../x"},
        {"name": "a" * 64},
        {"zone": ()},
        {"zone": ("us-east5",)},
        {"service_account": "a b@c"},
        {"network": "n/../m"},
        {"subnetwork": "A"},
    ],
)
def test_only_names_become_parts_of_addresses(wrong: dict[str, Any]) -> None:
    right = {"name": "a", "hardware": "v6e-1", "zone": (ZONE,), "network": "net", "service_account": ACCOUNT}
    assert CreateArguments.model_validate(right)
    with pytest.raises(ValidationError):
        CreateArguments.model_validate({**right, **wrong})


def test_a_name_that_another_lease_has_cannot_be_confirmed(leases: LeaseCloud) -> None:
    leases.cloud.lease("dev-one", stack="demo")
    (refusal,) = leases.plan().refusals
    assert refusal.startswith(f"{ZONE} has another dev-one")


def test_a_plan_is_worth_nothing_once_the_name_is_taken(leases: LeaseCloud) -> None:
    plan = leases.plan()
    leases.cloud.lease("dev-one", stack="demo")
    before = leases.cloud.remaining_names()
    with pytest.raises(ChangedError, match="leases of that name"):
        leases.create(plan)
    assert leases.cloud.remaining_names() == before


def test_a_caller_that_gives_up_first_requests_nothing(leases: LeaseCloud) -> None:
    plan = leases.plan()
    leases.cancelled.set()
    with pytest.raises(CancelledError, match="nothing was changed"):
        leases.create(plan)
    assert leases.cloud.remaining_names() == set()


def test_a_caller_that_gives_up_learns_that_the_request_may_be_stored(leases: LeaseCloud) -> None:
    plan = leases.plan()

    def give_up(call: Call) -> Answer | None:
        if call.method == "POST":
            leases.cancelled.set()
        return None

    leases.cloud.server.routes.insert(0, give_up)
    done = leases.create(plan)
    assert (done.verdict, done.exit_code) == ("cancelled", 130)
    assert "`bezel tpu list` shows it" in done.problems[0]
    assert leases.cloud.remaining_names() == {"dev-one"}
    assert len(leases.cloud.changing_calls) == 1  # no other zone was asked
