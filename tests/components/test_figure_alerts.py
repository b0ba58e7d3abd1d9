"""Alerts and charts on vLLM's own figures: they read series that are kept, by labels that these have."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bezel.planner.team.series_labels import series_matchers
from bezel_catalog.vllm.kept_series import KEPT_SERIES
from bezel_components.observability.alerts import Alert, Query
from bezel_components.observability.figures import ServerFigures
from bezel_components.observability.lease_observability import LeaseObservability, LeaseObservabilityArgs
from bezel_components.observability.service_observability import ServiceObservability, ServiceObservabilityArgs
from bezel_localcloud.core.store import Store
from bezel_localcloud.core.work import Work
from bezel_localcloud.services.monitoring.conditions import check_condition
from bezel_localcloud.services.monitoring.prometheus_series import Buckets, PrometheusSeries, ScrapedSample
from bezel_localcloud.services.monitoring.promql.evaluation import Evaluation
from bezel_localcloud.services.monitoring.promql.parser import parse
from tests.support.components.fake_engine import Declarations, declare

MATCHERS = series_matchers("chat", leased=False, location="us-east4")
FIGURES = ServerFigures(matchers=MATCHERS, max_ttft_seconds=2, max_tpot_seconds=0.05, drafts=True)
POLICY, DASHBOARD = "monitoring/alertPolicy:AlertPolicy", "monitoring/dashboard:Dashboard"
_ENDS = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket",)}
LABELS = {f"{each.name}{end}": {*each.labels, "le"} for each in KEPT_SERIES for end in _ENDS[each.kind]}
TARGET = {"project_id": "acme-llm", "location": "us-east4", "cluster": "__run__", "namespace": "chat", "job": "vllm"}
TARGET |= {"instance": "a1:8080"}
OF_TARGET = {"cluster", "namespace", "location", "instance"}


def queries() -> Iterator[str]:
    """Each query of an alert or of a chart."""
    for alert in FIGURES.alerts("chat", 0.05):
        assert isinstance(alert.condition, Query)
        yield alert.condition.query
    for widget in FIGURES.charts():
        for data in widget["xyChart"]["dataSets"]:
            yield data["timeSeriesQuery"]["prometheusQuery"]


def test_a_query_reads_kept_series_of_this_server_by_labels_that_they_have() -> None:
    for query in queries():
        selectors = re.findall(r"([a-z_]+(?::[a-z0-9_]+)?)\{([^}]*)\}", query)
        assert selectors, query
        for name, matchers in selectors:
            assert matchers.startswith(MATCHERS), query
            labels = {*re.findall(r'(\w+)(?:=~|=)"', matchers), *re.findall(r"by \((\w+)\)", query)}
            assert labels <= LABELS[name] | OF_TARGET, query
        assert query.count("(") == query.count(")"), query


def test_each_alert_may_be_made_before_anything_is_written() -> None:
    made = declare_observed(figures=FIGURES)
    for alert in FIGURES.alerts("chat", 0.05):
        (condition,) = made.by_name(f"observability-{alert.id}").inputs["conditions"]
        query = condition["conditionPrometheusQueryLanguage"]
        assert query["disableMetricValidation"] is True
        check_condition(
            {"conditionPrometheusQueryLanguage": query}, "x", alone=True, rate_limited=False, written=frozenset
        )
    (condition,) = declare_observed(max_cold_starts=9).by_name("observability-cold-starts").inputs["conditions"]
    assert "disableMetricValidation" not in condition["conditionPrometheusQueryLanguage"]


def declare_observed(**changed: Any) -> Declarations:
    args = ServiceObservabilityArgs(project="acme-llm", service="chat", location="us-east4", **changed)
    return declare(lambda: ServiceObservability("observability", args) and {})


def ids(made: Declarations) -> set[str]:
    return {one.name.removeprefix("observability-") for one in made.of(POLICY)}


def test_the_alert_on_a_log_gives_way_to_the_one_on_figures() -> None:
    plain, kept = ids(declare_observed()), ids(declare_observed(figures=FIGURES))
    assert plain - kept == {"cache-full"}
    assert kept - plain == {"kv-cache-full", "queue", "engine-errors", "drafts", "ttft", "tpot"}


def test_latency_and_drafts_are_watched_only_where_they_are_given() -> None:
    named: tuple[Alert, ...] = ServerFigures(matchers=MATCHERS).alerts("chat", 0.05)
    assert [alert.id for alert in named] == ["kv-cache-full", "queue", "engine-errors"]
    titles = [widget["title"] for widget in ServerFigures(matchers=MATCHERS).charts()]
    assert set(titles) ^ {widget["title"] for widget in FIGURES.charts()} == {"Accepted share of drafted tokens"}


def test_charts_of_figures_follow_those_of_the_platform() -> None:
    plain, kept = (
        json.loads(declare_observed(figures=figures).one(DASHBOARD).inputs["dashboardJson"])["mosaicLayout"]["tiles"]
        for figures in (None, FIGURES)
    )
    assert kept[: len(plain)] == plain
    assert len(kept) == len(plain) + len(FIGURES.charts())
    assert len({(tile["xPos"], tile["yPos"]) for tile in kept}) == len(kept)


def test_leases_have_alerts_and_charts_of_their_machines() -> None:
    def declare_leases(figures: ServerFigures | None) -> Declarations:
        args = LeaseObservabilityArgs(
            project="acme-llm", stack="moe", gateway="moe-gw", location="us-east5", figures=figures
        )
        return declare(lambda: LeaseObservability("observability", args) and {})

    with_figures = declare_leases(ServerFigures(matchers=series_matchers("moe-gw", leased=True)))
    assert ids(with_figures) - ids(declare_leases(None)) == {"kv-cache-full", "queue", "engine-errors"}
    text = with_figures.one(DASHBOARD).inputs["dashboardJson"]
    assert 'cluster=\\"__lease__\\",namespace=\\"moe-gw\\"' in text
    assert "prometheusQuery" not in declare_leases(None).one(DASHBOARD).inputs["dashboardJson"]


def scrape(number: int, **changed: float) -> list[ScrapedSample]:
    """What a server says at a scrape: each request takes 0.5 s to its first token, all drafts are accepted."""
    slow, failed = changed.get("slow", 0) * number, changed.get("failed", 0) * number
    total, drafted = 100.0 * number, 1000.0 * number
    accepted = 0.0 if changed.get("useless") else drafted
    first, further = "vllm:time_to_first_token_seconds", "vllm:request_time_per_output_token_seconds"
    ends = "vllm:request_success_total"
    return [
        ScrapedSample("vllm:num_requests_waiting", "gauge", {}, changed.get("waiting", 0)),
        ScrapedSample("vllm:kv_cache_usage_perc", "gauge", {}, changed.get("usage", 0.5)),
        ScrapedSample(ends, "counter", {"finished_reason": "stop"}, total - failed),
        ScrapedSample(ends, "counter", {"finished_reason": "error"}, failed),
        ScrapedSample("vllm:spec_decode_num_draft_tokens_total", "counter", {}, drafted),
        ScrapedSample("vllm:spec_decode_num_accepted_tokens_total", "counter", {}, accepted),
        ScrapedSample(first, "histogram", {}, Buckets((1.0, 2.5), (total - slow, total, total), total)),
        ScrapedSample(further, "histogram", {}, Buckets((0.04, 0.1), (total, total, total), total)),
    ]


@pytest.mark.parametrize(
    ("changed", "open_alerts"),
    [
        ({}, set()),
        ({"slow": 20}, {"ttft"}),
        ({"slow": 2}, set()),
        ({"waiting": 3}, {"queue"}),
        ({"waiting": 3, "usage": 0.97}, {"kv-cache-full"}),
        ({"usage": 0.97}, set()),
        ({"failed": 10}, {"engine-errors"}),
        ({"failed": 3}, set()),
        ({"useless": 1}, {"drafts"}),
    ],
)
def test_an_alert_opens_at_what_it_is_named_after(
    changed: dict[str, float], open_alerts: set[str], tmp_path: Path
) -> None:
    with closing(Store(tmp_path / "state")) as store:
        series = PrometheusSeries(store)
        other = TARGET | {"namespace": "other"}
        for number in range(1, 42):
            series.write(30.0 * number, TARGET, scrape(number, **changed), since=0.0)
            series.write(30.0 * number, other, scrape(number, slow=50, waiting=9, failed=50, useless=1), since=0.0)

        def value(alert: Alert, time: float) -> Any:
            assert isinstance(alert.condition, Query)
            return Evaluation(parse(alert.condition.query), series.series, Work(100_000)).value(time)

        alerts = FIGURES.alerts("chat", 0.05)
        assert {alert.id for alert in alerts if value(alert, 1230.0)} == open_alerts
        # An hour and a half later nothing was asked any more.
        assert {alert.id for alert in alerts if value(alert, 6600.0)} == set()
