"""Alerts and dashboard of leases: one for the end of a lease, one for the gateway's errors, and nothing of a GPU."""

import json
from typing import Any

import pytest

from bezel_components.observability.alerts import LogMatch, Threshold
from bezel_components.observability.budget import StackBudgetArgs
from bezel_components.observability.charts import dashboard
from bezel_components.observability.lease_alerts import accepted_filter, end_filter, lease_alerts, refused_filter
from bezel_components.observability.lease_observability import LeaseObservability, LeaseObservabilityArgs
from bezel_components.runtime_identity import RuntimeIdentity, RuntimeIdentityArgs
from bezel_localcloud.services.logging.filters import parse_filter
from bezel_localcloud.services.monitoring.conditions import check_condition
from tests.support.components.fake_engine import Declarations, declare

POLICY = "monitoring/alertPolicy:AlertPolicy"
CHANNEL = "monitoring/notificationChannel:NotificationChannel"
DASHBOARD = "monitoring/dashboard:Dashboard"
MEMBER = "projects/iAMMember:IAMMember"
ENTRY = {
    "logName": "projects/acme-llm/logs/bezel-lease",
    "resource": {"type": "generic_node"},
    "labels": {"stack": "moe", "lease": "bezel-moe"},
    "jsonPayload": {"event": "lease-ends", "lease": "bezel-moe"},
}


def alerts(*, renews: bool = False) -> Any:
    return lease_alerts("moe", "bezel-moe", "us-east5", project="acme-llm", max_error_share=0.05, renews=renews)


def test_each_alert_is_one_that_google_takes() -> None:
    end, errors = alerts()
    assert isinstance(end.condition, LogMatch)
    check_condition(
        {"conditionMatchedLog": {"filter": end.condition.filter}}, "x", alone=True, rate_limited=True, written=frozenset
    )
    assert isinstance(errors.condition, Threshold)
    assert 'service_name="bezel-moe"' in errors.condition.filter
    assert "5xx" in errors.condition.filter


@pytest.mark.parametrize(
    ("changed", "matches"),
    [
        ({}, True),
        ({"labels": {"stack": "other"}}, False),
        ({"logName": "projects/acme-llm/logs/other"}, False),
        ({"jsonPayload": {"event": "else"}}, False),
        ({"resource": {"type": "global"}}, False),
    ],
)
def test_the_filter_takes_the_notices_of_this_stack_and_no_other_entry(changed: dict[str, Any], matches: bool) -> None:
    assert parse_filter(end_filter("acme-llm", "moe")).holds(ENTRY | changed) is matches


STARTS = ("bezel-moe-start-0", "bezel-moe-1-start-0")
ATTEMPT = {
    "logName": "projects/acme-llm/logs/cloudscheduler.googleapis.com%2Fexecutions",
    "resource": {"type": "cloud_scheduler_job", "labels": {"location": "us-east5", "job_id": "bezel-moe-1-start-0"}},
    "severity": "ERROR",
    "httpRequest": {"status": 403},
}


def test_leases_with_hours_have_an_alert_on_refused_starts() -> None:
    """Leases with hours have an alert on refused starts in place of the end."""
    refused, errors = lease_alerts(
        "moe", "bezel-moe", "us-east5", project="acme-llm", max_error_share=0.05, renews=False, starts=STARTS
    )
    assert (refused.id, errors.id) == ("start-refused", "errors")
    assert isinstance(refused.condition, LogMatch)
    check_condition(
        {"conditionMatchedLog": {"filter": refused.condition.filter}},
        "x",
        alone=True,
        rate_limited=True,
        written=frozenset,
    )
    assert [alert.id for alert in alerts()] == ["lease-ends", "errors"]


@pytest.mark.parametrize(
    ("changed", "matches"),
    [
        ({}, True),
        ({"httpRequest": {}}, True),  # no response at all
        ({"httpRequest": {"status": 409}}, False),  # the lease is there already
        ({"severity": "INFO", "httpRequest": {"status": 200}}, False),
        ({"resource": ATTEMPT["resource"] | {"labels": {"location": "us-east5", "job_id": "bezel-moe-end-0"}}}, False),
        ({"resource": ATTEMPT["resource"] | {"labels": {"location": "us-east1", "job_id": STARTS[0]}}}, False),
    ],
)
def test_the_filter_takes_failed_starts_of_this_stack_only(changed: dict[str, Any], matches: bool) -> None:
    """The filter takes failed starts of this stack but none of a lease that is there."""
    assert parse_filter(refused_filter("us-east5", STARTS)).holds(ATTEMPT | changed) is matches


AGAIN = "bezel-moe-again-0"
ACCEPTED = {
    **ATTEMPT, "severity": "INFO", "httpRequest": {"status": 200},
    "resource": {"type": "cloud_scheduler_job", "labels": {"location": "us-east5", "job_id": AGAIN}},
}  # fmt: skip


def test_leases_that_are_tried_again_alert_on_a_lack_of_capacity() -> None:
    """Leases that are tried again have an alert for a start without capacity."""
    refused, missing, errors = lease_alerts(
        "moe", "bezel-moe", "us-east5", project="acme-llm", max_error_share=0.05, renews=False, starts=STARTS,
        agains=(AGAIN,),
    )  # fmt: skip
    assert (refused.id, missing.id, errors.id) == ("start-refused", "not-leased", "errors")
    assert isinstance(missing.condition, LogMatch)
    check_condition(
        {"conditionMatchedLog": {"filter": missing.condition.filter}},
        "x",
        alone=True,
        rate_limited=True,
        written=frozenset,
    )
    assert isinstance(refused.condition, LogMatch)
    assert AGAIN in refused.condition.filter
    assert "no capacity within its patience" in missing.repair


@pytest.mark.parametrize(
    ("changed", "matches"),
    [
        ({}, True),
        ({"severity": "ERROR", "httpRequest": {"status": 409}}, False),  # the lease is there
        ({"severity": "ERROR", "httpRequest": {"status": 429}}, False),  # refused: the other alert's
        ({"httpRequest": {}}, False),  # an attempt that has begun
        ({"resource": ATTEMPT["resource"]}, False),  # a start is accepted each day
    ],
)
def test_the_filter_takes_a_try_that_was_accepted(changed: dict[str, Any], matches: bool) -> None:
    assert parse_filter(accepted_filter("us-east5", (AGAIN,))).holds(ACCEPTED | changed) is matches


def test_the_alert_says_what_to_do_with_and_without_renewal() -> None:
    without, _ = alerts()
    assert "set `bezel:lease.renew` to true" in without.repair
    renewed, _ = alerts(renews=True)
    assert "lease.renew" not in renewed.repair
    for alert in (without, renewed):
        assert "`bezel status moe`" in alert.repair
        assert "`pulumi up`" in alert.repair


def test_the_gateway_has_charts_of_requests_and_none_of_a_gpu() -> None:
    whole, gateway = (
        [tile["widget"]["title"] for tile in dashboard("t", "s", "us-east5", gpu=gpu)["mosaicLayout"]["tiles"]]
        for gpu in (True, False)
    )
    assert set(whole) - set(gateway) == {"Use of the GPU", "Use of the GPU's memory"}
    assert "Requests per second, by response" in gateway


def declarations_of(**changed: Any) -> Declarations:
    args = LeaseObservabilityArgs(project="acme-llm", stack="moe", gateway="bezel-moe", location="us-east5", **changed)
    return declare(lambda: LeaseObservability("observability", args) and {})


def test_each_lease_of_a_fleet_notifies_by_its_name() -> None:
    end = declarations_of().by_name("observability-lease-ends").inputs
    (condition,) = end["conditions"]
    assert condition["conditionMatchedLog"]["labelExtractors"] == {"lease": "EXTRACT(jsonPayload.lease)"}
    assert "${log.extracted_label.lease}" in end["documentation"]["content"]
    assert end["alertStrategy"]["notificationRateLimit"] == {"period": "3600s"}
    errors = declarations_of().by_name("observability-errors").inputs
    assert "notificationRateLimit" not in errors["alertStrategy"]


def test_alerts_dashboard_and_budget_are_made_each_by_itself() -> None:
    """Alerts, dashboard and budget are made each by itself and mailed to the address."""
    budget = StackBudgetArgs(number="12", stack="moe", billing_account="A", amount=300, currency="USD")
    only = declarations_of(alerts=False, dashboard=False, budget=budget, email="team@example.com")
    assert (len(only.of(POLICY)), len(only.of(DASHBOARD)), len(only.of(CHANNEL))) == (0, 0, 1)
    assert only.one("billing/budget:Budget").inputs["budgetFilter"]["labels"] == {"stack": "moe"}
    quiet = declarations_of(dashboard=False)
    assert (len(quiet.of(POLICY)), quiet.of(CHANNEL), quiet.of(DASHBOARD)) == (2, [], [])
    shown = declarations_of(alerts=False)
    assert json.loads(shown.one(DASHBOARD).inputs["dashboardJson"])["displayName"] == "bezel-moe (us-east5)"
    assert shown.of(POLICY) == []


def identity(**changed: Any) -> Declarations:
    args = RuntimeIdentityArgs(project="acme-llm", account_id="bezel-moe", **changed)
    return declare(lambda: RuntimeIdentity("runtime", args) and {})


def test_only_an_account_that_writes_logs_has_a_role_on_the_project() -> None:
    made = identity(writes_logs=True)
    assert made.one(MEMBER).inputs["role"] == "roles/logging.logWriter"
    assert made.one(MEMBER).inputs["member"] == "serviceAccount:bezel-moe@acme-llm.iam.gserviceaccount.com"
    assert made.waits_for(made.one(MEMBER), made.one("serviceaccount/account:Account"))
    assert identity().of(MEMBER) == []
