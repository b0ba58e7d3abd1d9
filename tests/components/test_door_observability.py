"""Metrics of a door's log, which its own lines fill, charts of them by team, and the alert on the door."""

import json
from typing import Any

import pytest

from bezel_components.observability.charts import dashboard
from bezel_components.observability.door_figures import ANSWERS, METRICS, PROMPTS, REQUESTS, DoorFigures
from bezel_components.observability.door_observability import DoorObservability, DoorObservabilityArgs
from bezel_door.calls.token_use import Tokens
from bezel_door.request_log import RequestLog
from bezel_localcloud.services.logging.filters import parse_filter
from bezel_localcloud.services.logging.log_metrics import labels_of, value_of
from bezel_localcloud.services.monitoring.promql.parser import parse
from bezel_localcloud.services.monitoring.promql.signatures import selectors_of
from bezel_localcloud.services.monitoring.written_metrics.queried_series import prometheus_name
from tests.support.components.fake_engine import Declarations, declare

DOOR = DoorFigures(service="chat-door", location="us-east4")
PLACE = {"service_name": "chat-door", "location": "us-east4"}


def lines() -> list[dict[str, Any]]:
    """Entries of a request, a failed one and a refused one, as the door writes them."""
    texts: list[str] = []
    log = RequestLog(texts.append)
    log.request("/v1/messages", 200, 12.3, "abcd2345", "search", Tokens(7, 21))
    log.request("/v1/messages", 503, 12.3, "abcd2345", "", Tokens(0, 0))
    log.refusal("/v1/messages", 429, "rate_limit_exceeded", "abcd2345")
    return [{"resource": {"type": "cloud_run_revision", "labels": PLACE}, "jsonPayload": json.loads(t)} for t in texts]


def declare_watched(**changed: Any) -> Declarations:
    return declare(lambda: DoorObservability("door", DoorObservabilityArgs(project="acme", figures=DOOR, **changed)))


def metrics_of(declarations: Declarations) -> dict[str, dict[str, Any]]:
    return {each.inputs["name"]: each.inputs for each in declarations.of("logging/metric:Metric")}


def test_metrics_take_the_lines_of_requests_and_no_other_entry() -> None:
    chosen = parse_filter(DOOR.filter)
    request, failure, refusal = lines()
    assert chosen.holds(request)
    assert chosen.holds(failure)
    assert not chosen.holds(refusal)
    for label in PLACE:
        other = {"resource": {"type": "cloud_run_revision", "labels": PLACE | {label: "other"}}}
        assert not chosen.holds(request | other)


def test_each_metric_reads_what_the_door_writes() -> None:
    made = metrics_of(declare_watched(alerts=False))
    request, failure, _ = lines()
    assert {labels_of(made["chat-door-requests"], each)["status"] for each in (request, failure)} == {"200", "503"}
    assert [value_of(made[DOOR.name_of(each)], request) for each in (REQUESTS, PROMPTS, ANSWERS)] == [1, 7, 21]
    for metric in made.values():
        assert [labels_of(metric, each)["team"] for each in (request, failure)] == ["search", ""]


def test_each_chart_asks_for_a_metric_that_is_made_by_team() -> None:
    names = {prometheus_name(f"logging.googleapis.com/user/{name}") for name in metrics_of(declare_watched())}
    queries = [each["xyChart"]["dataSets"][0]["timeSeriesQuery"]["prometheusQuery"] for each in DOOR.charts()]
    asked = [selector for text in queries for selector in selectors_of(parse(text.replace("${__interval}", "1m")))]
    assert {selector.name.removesuffix("_sum") for selector in asked} == names
    assert [selector.name.endswith("_sum") for selector in asked] == [False, False, True, True]
    assert all("by (team)" in text and 'service_name="chat-door"' in text for text in queries)
    tiles = dashboard("chat", "chat", "us-east4", more=DOOR.charts())["mosaicLayout"]["tiles"]
    titles = [tile["widget"]["title"] for tile in tiles]
    assert [title for title in titles if "team" in title] == [each["title"] for each in DOOR.charts()]


@pytest.mark.parametrize(("metrics", "alerts"), [(True, False), (False, True)])
def test_metrics_are_made_for_a_dashboard_and_the_alert_on_its_own(metrics: bool, alerts: bool) -> None:
    made = declare_watched(metrics=metrics, alerts=alerts, email="llm@acme.example")
    assert len(made.of("logging/metric:Metric")) == metrics * len(METRICS)
    assert len(made.of("monitoring/notificationChannel:NotificationChannel")) == alerts
    policies = made.of("monitoring/alertPolicy:AlertPolicy")
    assert len(policies) == alerts
    for policy in policies:
        condition = policy.inputs["conditions"][0]["conditionThreshold"]
        assert 'service_name="chat-door"' in condition["filter"]
        assert "5xx" in condition["filter"]
