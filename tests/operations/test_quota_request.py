"""Requests for quotas in two steps: in things, once for each quota and place, with the state that Google gives them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bezel.operations.changes.basis import ChangedError
from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.quota.quota import QuotaArguments, quota
from bezel.operations.quota.request import QuotaRequestArguments, apply_request, plan_request
from bezel.rest.quota_preferences import QuotaPreference
from bezel_base.errors import UserError
from bezel_localcloud.services.cloud_quotas.decisions import DECIDED_AFTER
from tests.support.operations.project_cloud import OneProject, one_project
from tests.support.rest.fake_google import Answer

pytestmark = pytest.mark.slow  # a cloud behind a socket each
L4 = "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion"
RTX = "NvidiaRtxPro6000GpuAllocNoZonalRedundancyPerProjectRegion"
MEMORY = "MemAllocPerProjectRegion"
V6E = "TPUV6EPerProjectPerZoneForTPUAPI"
FAMILY = "TPUS-PER-TPU-FAMILY-per-project-region"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProject]:
    with one_project(tmp_path, monkeypatch) as project_cloud:
        yield project_cloud


def plan(cloud: OneProject, name: str = L4, amount: float = 5, **arguments: Any) -> Plan:
    place = arguments or {"region": "us-east4"}
    with cloud.context() as context:
        return plan_request(context, QuotaRequestArguments(quota=name, amount=amount, **place))


def apply(cloud: OneProject, planned: Plan) -> Outcome:
    with cloud.context() as context:
        return apply_request(context, planned)


def requests_of_project(cloud: OneProject) -> list[tuple[str, str, float | None, str]]:
    with cloud.context() as context:
        made = quota(context, QuotaArguments()).requests
    return [(each.quota, each.place, each.preferred, each.state) for each in made]


def test_a_plan_requests_nothing_and_its_confirmation_requests_once(cloud: OneProject) -> None:
    """The list of quotas shows the request's state afterwards, pending and then granted."""
    planned = plan(cloud, email="a@example.com", region="us-east4")
    assert "request 5 GPUs, now 3 GPUs" in planned.summary
    assert (planned.is_empty, planned.refusals, planned.warnings) == (False, (), ())
    assert cloud.changing_calls == []
    outcome = apply(cloud, planned)
    assert (outcome.verdict, len(cloud.changing_calls)) == ("done", 1)
    assert "pending, 3 in force" in outcome.text()
    assert requests_of_project(cloud) == [(L4, "us-east4", 5, "pending")]
    assert plan(cloud).is_empty
    cloud.project.clock.time += DECIDED_AFTER
    assert requests_of_project(cloud) == [(L4, "us-east4", 5, "granted")]
    assert "already" in plan(cloud).summary


def test_a_plan_is_worth_nothing_after_the_limit_or_a_request_has_changed(cloud: OneProject) -> None:
    first, second = plan(cloud, amount=5), plan(cloud, amount=6)
    apply(cloud, first)
    with pytest.raises(ChangedError, match="an earlier request"):
        apply(cloud, second)
    third = plan(cloud, amount=7)
    cloud.project.clock.time += DECIDED_AFTER
    with pytest.raises(ChangedError, match="the limit"):
        apply(cloud, third)
    assert len(cloud.changing_calls) == 1


def test_a_second_request_changes_the_first_and_warns_of_a_denial(cloud: OneProject) -> None:
    """The warning has the reason of the denial."""
    apply(cloud, plan(cloud, amount=100))
    cloud.project.clock.time += DECIDED_AFTER
    assert requests_of_project(cloud) == [(L4, "us-east4", 100, "denied")]
    planned = plan(cloud, amount=5)
    assert any("was denied (localcloud denied it" in text for text in planned.warnings)
    assert [change.op for change in planned.changes] == ["update"]
    apply(cloud, planned)
    assert [line.split()[0] for line in cloud.changing_calls] == ["POST", "PATCH"]
    assert requests_of_project(cloud) == [(L4, "us-east4", 5, "pending")]


@pytest.mark.parametrize(
    ("name", "amount", "place", "raw"),
    [
        (RTX, 4, {"region": "us-central1"}, "4000"),
        (RTX, 3.5, {"region": "us-central1"}, "3500"),
        (MEMORY, 800, {"region": "us-east4"}, str(800 << 30)),
        (V6E, 16, {"zone": "us-east5-a"}, "16"),
        (FAMILY, 64, {"region": "us-east5"}, "64"),
    ],
)
def test_an_amount_in_things_is_sent_in_the_unit_of_the_quota(
    cloud: OneProject, name: str, amount: float, place: dict[str, str], raw: str
) -> None:
    apply(cloud, plan(cloud, name, amount, **place))
    (call,) = (call for call in cloud.server.calls if call.method == "POST")
    assert call.json["quotaConfig"] == {"preferredValue": raw}
    more = {"tpu_family": "CT6E"} if name == FAMILY else {}
    assert call.json["dimensions"] == {**place, **more}


@pytest.mark.parametrize(
    ("name", "amount", "place", "says"),
    [
        ("RequestsPerMinute", 5, {"region": "us-east4"}, "none of those"),
        (L4, 5, {"region": "us-west1"}, "states no value"),
        (L4, 5, {"zone": "us-east4-a"}, "for each region"),
        (V6E, 16, {"region": "us-east5"}, "for each zone"),
        (L4, 4.5, {"region": "us-east4"}, "whole GPUs"),
    ],
)
def test_what_cannot_be_requested_says_why(
    cloud: OneProject, name: str, amount: float, place: dict[str, str], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        plan(cloud, name, amount, **place)
    assert cloud.changing_calls == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"isFixed": True}, "is fixed"),
        ({"quotaIncreaseEligibility": {"ineligibilityReason": "NO_VALID_BILLING_ACCOUNT"}}, "NO_VALID_BILLING_ACCOUNT"),
    ],
)
def test_a_request_that_google_takes_from_nobody_is_refused(cloud: OneProject, more: dict[str, Any], says: str) -> None:
    info = {"applicableLocations": ["us-east4"], "details": {"value": "1"}}
    cloud.answers[f"quotaInfos/{L4}"] = Answer(json={"dimensionsInfos": [info], **more})
    assert says in plan(cloud).refusals[0]


def test_a_request_that_is_denied_at_once_is_a_failure(cloud: OneProject) -> None:
    planned = plan(cloud)
    denied = {
        "name": "projects/1/locations/global/quotaPreferences/x",
        "service": "run.googleapis.com",
        "quotaId": L4,
        "dimensions": {"region": "us-east4"},
        "quotaConfig": {"preferredValue": "5", "grantedValue": "3", "stateDetail": "no billing account"},
    }
    cloud.server.routes.insert(0, lambda call: Answer(json=denied) if call.method == "POST" else None)
    outcome = apply(cloud, planned)
    assert (outcome.verdict, outcome.exit_code) == ("failed", 1)
    assert "no billing account" in outcome.text()


@pytest.mark.parametrize(
    ("config", "reconciling", "state"),
    [
        ({"preferredValue": "5", "grantedValue": "3"}, True, "pending"),
        ({"preferredValue": "5", "grantedValue": "5"}, False, "granted"),
        ({"preferredValue": "5", "grantedValue": "4"}, False, "denied"),
        ({"preferredValue": "5"}, False, "unknown"),
        ({"grantedValue": "0"}, False, "granted"),
        ({"preferredValue": "-1", "grantedValue": "-1"}, False, "granted"),
    ],
)
def test_the_state_of_a_request_follows_from_what_is_granted(
    config: dict[str, str], state: str, *, reconciling: bool
) -> None:
    row = {"name": "n", "service": "s", "quotaId": "q", "quotaConfig": config, "reconciling": reconciling}
    assert QuotaPreference.of(row).state == state


@pytest.mark.parametrize(
    "wrong",
    [
        {"quota": "../x"},
        {"amount": 0},
        {"amount": -1},
        {"amount": float("inf")},
        {"email": "no address"},
        {"zone": "x"},
    ],
)
def test_arguments_that_would_become_another_address_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        QuotaRequestArguments.model_validate({"quota": L4, "amount": 5, "region": "us-east4", **wrong})
