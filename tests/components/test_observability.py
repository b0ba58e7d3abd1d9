"""Alerts and dashboard of a service: every metric exists, and its points can be aligned as they are."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pulumi
import pytest

from bezel_catalog.metrics import metrics
from bezel_components.base.explained_errors import REFUSED, explaining
from bezel_components.observability import budget
from bezel_components.observability.alerts import (
    FULL_CACHE,
    Alert,
    LogMatch,
    Query,
    Threshold,
    prometheus_name,
    series_filter,
    service_alerts,
)
from bezel_components.observability.budget import StackBudgetArgs
from bezel_components.observability.charts import dashboard
from bezel_components.observability.service_observability import ServiceObservability, ServiceObservabilityArgs
from bezel_components.observability.uptime import UptimeCheckArgs, results_of
from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.services.monitoring.conditions import check_condition
from tests.support.components.fake_engine import Declarations, declare

ROOT = Path(__file__).parents[2]
UNLIMITED: dict[str, Any] = {"alone": True, "rate_limited": False, "written": frozenset}
POLICY = "monitoring/alertPolicy:AlertPolicy"
CHANNEL = "monitoring/notificationChannel:NotificationChannel"
DASHBOARD = "monitoring/dashboard:Dashboard"
CHECK = "monitoring/uptimeCheckConfig:UptimeCheckConfig"


def alerts(**changed: Any) -> tuple[Alert, ...]:
    options: dict[str, Any] = {"max_error_share": 0.05, "start_seconds": 1830, "max_cold_starts": 9, "idle_hours": 24}
    return service_alerts("chat", "us-east4", **options | changed)


def condition(alert: Threshold) -> dict[str, Any]:
    """A condition in Google's JSON."""
    aggregations = [{"alignmentPeriod": "60s", "perSeriesAligner": alert.aligner, "crossSeriesReducer": "REDUCE_SUM"}]
    body: dict[str, Any] = {"filter": alert.filter, "comparison": "COMPARISON_GT", "duration": f"{alert.seconds}s"}
    body |= {"aggregations": aggregations}
    if alert.denominator:
        body |= {"denominatorFilter": alert.denominator, "denominatorAggregations": aggregations}
    return {"conditionThreshold": body}


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.id)
def test_each_alert_uses_metrics_that_exist_as_they_can_be_used(alert: Alert) -> None:
    if isinstance(alert.condition, Threshold):
        check_condition(condition(alert.condition), "x", **UNLIMITED)
        return
    if isinstance(alert.condition, LogMatch):
        check_condition(
            {"conditionMatchedLog": {"filter": alert.condition.filter}},
            "x",
            alone=True,
            rate_limited=True,
            written=frozenset,
        )
        return
    named = re.findall(r"\b\w+_googleapis_com:\w+", alert.condition.query)
    by_prometheus_name = {prometheus_name(metric): metric for metric in metrics()}
    assert named
    for name in named:
        metric = by_prometheus_name[name.removesuffix("_count") if name not in by_prometheus_name else name]
        assert (metrics()[metric].value == "DISTRIBUTION") == (name not in by_prometheus_name)
    assert alert.condition.query.count("(") == alert.condition.query.count(")")


def test_alerts_of_several_regions_name_theirs_and_count_callers_of_all() -> None:
    """An instance that stands by for another region has no requests of its own: that alone is no waste."""
    for several, watched, place in ((False, "chat", ',location="us-east4"'), (True, "chat (us-east4)", "")):
        made = {alert.id: alert for alert in alerts(several_regions=several)}
        assert {alert.name.partition(":")[0] for alert in made.values()} == {watched}
        idle = made["idle"].condition
        assert isinstance(idle, Query)
        instances, requests = idle.query.split(" and ")
        assert 'service_name="chat",location="us-east4"' in instances
        assert f'service_name="chat"{place}}}' in requests


def test_a_metric_that_no_list_has_cannot_be_used() -> None:
    with pytest.raises(KeyError):
        series_filter("run.googleapis.com/container/gpu/utilization", "chat", "us-east4")
    with pytest.raises(KeyError):
        prometheus_name("vllm:kv_cache_usage_perc")
    with pytest.raises(ValueError, match="not of the resource"):
        series_filter("monitoring.googleapis.com/uptime_check/check_passed", "chat", "us-east4")


def test_each_chart_uses_a_metric_that_exists_as_it_can_be_used() -> None:
    tiles = dashboard("chat", "chat", "us-east4")["mosaicLayout"]["tiles"]
    places = {(tile["xPos"], tile["yPos"]) for tile in tiles}
    assert len(places) == len(tiles)
    for tile in tiles:
        (data,) = tile["widget"]["xyChart"]["dataSets"]
        series = data["timeSeriesQuery"]["timeSeriesFilter"]
        body = {"filter": series["filter"], "comparison": "COMPARISON_GT", "aggregations": [series["aggregation"]]}
        check_condition({"conditionThreshold": body}, "x", **UNLIMITED)
        (metric,) = re.findall(r'metric.type="([^"]+)"', series["filter"])
        split = [label.removeprefix("metric.labels.") for label in series["aggregation"].get("groupByFields", [])]
        assert set(split) <= set(metrics()[metric].labels)


def test_the_list_of_metrics_names_its_source_and_date() -> None:
    assert {(bool(row.source), row.date >= "2026-11") for row in metrics().values()} == {(True, True)}


def test_an_alert_that_has_no_bound_is_left_out() -> None:
    assert [alert.id for alert in alerts()] == ["unhealthy", "errors", "cache-full", "cold-starts", "idle"]
    assert [alert.id for alert in alerts(max_cold_starts=None, idle_hours=None)] == [
        "unhealthy",
        "errors",
        "cache-full",
    ]
    (idle,) = [alert for alert in alerts(idle_hours=3) if alert.id == "idle"]
    assert isinstance(idle.condition, Query)
    assert "[3h]" in idle.condition.query


def declarations_of(**changed: Any) -> Declarations:
    args = ServiceObservabilityArgs(project="acme-llm", service="chat", location="us-east4", **changed)
    return declare(lambda: ServiceObservability("observability", args) and {})


def test_alerts_are_mailed_to_the_address_and_without_one_to_nobody() -> None:
    made = declarations_of(email="team@example.com")
    assert made.one(CHANNEL).inputs["labels"] == {"email_address": "team@example.com"}
    assert all(len(policy.inputs["notificationChannels"]) == 1 for policy in made.of(POLICY))
    quiet = declarations_of()
    assert quiet.of(CHANNEL) == []
    assert all(not policy.inputs.get("notificationChannels") for policy in quiet.of(POLICY))


def test_only_the_alert_on_a_log_limits_its_notifications_as_google_asks() -> None:
    limited = {
        one.name: "notificationRateLimit" in one.inputs["alertStrategy"]
        for one in declarations_of(max_cold_starts=5).of(POLICY)
    }
    assert [name for name, has in limited.items() if has] == ["observability-cache-full"]
    assert len(limited) == 4


def test_alerts_and_dashboard_are_made_each_by_itself() -> None:
    only = declarations_of(alerts=False, email="team@example.com")
    assert (only.of(POLICY), only.of(CHANNEL)) == ([], [])
    content = json.loads(only.one(DASHBOARD).inputs["dashboardJson"])
    assert content["displayName"] == "chat (us-east4)"
    assert declarations_of(dashboard=False).of(DASHBOARD) == []


def uptime(**changed: Any) -> UptimeCheckArgs:
    options = {"project": "acme-llm", "number": "12", "service": "chat", "location": "us-east4", "path": "/health"}
    return UptimeCheckArgs(**{**options, "url": "https://chat-1.a.run.app", **changed})


def test_an_uptime_check_calls_with_an_identity_for_this_service() -> None:
    """An uptime check calls with an identity that may call this service alone."""
    made = declarations_of(uptime=uptime(), email="team@example.com")
    check = made.one(CHECK).inputs
    assert check["monitoredResource"] == {
        "type": "uptime_url",
        "labels": {"project_id": "acme-llm", "host": "chat-1.a.run.app"},
    }
    assert check["httpCheck"]["serviceAgentAuthentication"] == {"type": "OIDC_TOKEN"}
    grant = made.one("cloudrunv2/serviceIamMember:ServiceIamMember").inputs
    assert (grant["role"], grant["name"]) == ("roles/run.invoker", "chat")
    assert grant["member"] == "serviceAccount:service-12@gcp-sa-monitoring-notification.iam.gserviceaccount.com"
    (policy,) = [one.inputs for one in made.of(POLICY) if one.name.endswith("unreachable")]
    assert len(policy["notificationChannels"]) == 1


def test_a_public_service_is_checked_without_an_identity() -> None:
    """A public service is checked without an identity and without alerts no one is told."""
    made = declarations_of(uptime=uptime(public=True), alerts=False)
    assert "serviceAgentAuthentication" not in made.one(CHECK).inputs["httpCheck"]
    assert made.of("cloudrunv2/serviceIamMember:ServiceIamMember") == []
    assert made.of(POLICY) == []
    assert declarations_of().of(CHECK) == []


def test_address_is_checked_beside_its_services_with_their_right() -> None:
    made = declarations_of(uptime=uptime(), domain="llm.acme.example")
    hosts = {one.inputs["displayName"]: one.inputs["monitoredResource"]["labels"]["host"] for one in made.of(CHECK)}
    assert hosts == {"chat (us-east4) answers": "chat-1.a.run.app", "llm.acme.example answers": "llm.acme.example"}
    assert len(made.of("cloudrunv2/serviceIamMember:ServiceIamMember")) == 1
    names = {one.inputs["displayName"] for one in made.of(POLICY) if one.name.endswith("unreachable")}
    assert names == {"chat: checks from outside fail", "llm.acme.example: checks from outside fail"}
    assert len(declarations_of(domain="llm.acme.example").of(CHECK)) == 0, "no check from outside is asked for"


def test_the_condition_on_a_check_s_results_can_be_evaluated() -> None:
    aggregation = {
        "alignmentPeriod": "600s",
        "perSeriesAligner": "ALIGN_FRACTION_TRUE",
        "crossSeriesReducer": "REDUCE_MEAN",
    }
    body = {"filter": results_of("chat-1"), "comparison": "COMPARISON_LT", "aggregations": [aggregation]}
    check_condition({"conditionThreshold": body}, "x", **UNLIMITED)
    wrong = {"conditionThreshold": {**body, "aggregations": [{**aggregation, "perSeriesAligner": "ALIGN_RATE"}]}}
    with pytest.raises(ApiError):
        check_condition(wrong, "x", **UNLIMITED)


@pytest.mark.parametrize(
    ("error", "explained"),
    [
        ("googleapi: Error 403: The caller does not have permission", True),
        ("googleapi: Error 400: Request contains an invalid argument.", False),
    ],
)
def test_a_budget_that_google_refuses_is_explained_with_its_role(
    caplog: pytest.LogCaptureFixture, error: str, explained: bool
) -> None:
    """A budget that Google refuses is explained with the role that is missing."""
    args = StackBudgetArgs(
        number="12", stack="chat", billing_account="012345-6789AB-CDEF01", amount=300, currency="USD"
    )

    def program() -> bool:
        (hook,) = explaining("budget", REFUSED, budget._refusal(args)).on_error
        return hook(pulumi.ErrorHookArgs(urn="u", id="", name="n", type="t", errors=[error]))

    assert declare(program).result is False
    assert ("roles/billing.costsManager" in caplog.text) is explained
    assert declare(lambda: budget.StackBudget("own", args) and {}).one("billing/budget:Budget").hooks


def test_a_budget_counts_what_has_the_stack_s_label() -> None:
    """A budget counts what has the stack's label and mails to the address."""
    args = StackBudgetArgs(
        number="12", stack="chat", billing_account="012345-6789AB-CDEF01", amount=300, currency="EUR"
    )
    made = declarations_of(budget=args, alerts=False, email="team@example.com")
    inputs = made.one("billing/budget:Budget").inputs
    assert inputs["budgetFilter"] == {"projects": ["projects/12"], "labels": {"stack": "chat"}}
    assert inputs["amount"] == {"specifiedAmount": {"currencyCode": "EUR", "units": "300"}}
    assert len(inputs["thresholdRules"]) == 4
    assert len(inputs["allUpdatesRule"]["monitoringNotificationChannels"]) == 1
    assert "allUpdatesRule" not in declarations_of(budget=args).one("billing/budget:Budget").inputs


LINE = tomllib.loads((ROOT / "packages/simulated-vllm/bezel_simulated_vllm/configuration/log_lines.toml").read_text())[
    "statistics"
]["text"]


def log_line(waiting: int, usage: float) -> str:
    return str(LINE).format(read=1.0, written=2.0, running=9, waiting=waiting, usage=usage, hits=0.5)


@pytest.mark.parametrize(
    ("waiting", "usage", "opens"),
    [
        (1, 0.95, True),
        (30, 0.997, True),
        (2, 1.0, True),
        (0, 0.99, False),
        (3, 0.949, False),
        (0, 0.0, False),
        (12, 0.09, False),
    ],
)
def test_a_full_cache_is_told_by_the_line_that_vllm_logs(waiting: int, usage: float, opens: bool) -> None:
    assert bool(re.search(FULL_CACHE, log_line(waiting, usage))) is opens


def test_the_log_of_another_service_opens_no_alert() -> None:
    """The log of another service opens no alert and the pattern is quoted for the filter."""
    (alert,) = [alert for alert in alerts() if alert.id == "cache-full"]
    assert isinstance(alert.condition, LogMatch)
    for part in ('resource.labels.service_name="chat"', 'resource.labels.location="us-east4"'):
        assert part in alert.condition.filter
    quoted = alert.condition.filter.partition('textPayload=~"')[2].removesuffix('"')
    assert quoted.replace("\\\\", "\\") == FULL_CACHE


def test_without_the_line_there_is_no_alert_on_it() -> None:
    assert "cache-full" not in [alert.id for alert in alerts(logs_statistics=False)]
