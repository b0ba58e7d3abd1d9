"""Alerts and charts on vLLM's own figures: they read series that are kept, by labels that these have."""

import json
import re
from collections.abc import Iterator
from typing import Any

from bezel.planner.team.series_labels import series_matchers
from bezel_catalog.vllm.kept_series import KEPT_SERIES
from bezel_components.observability.alerts import Alert, Query
from bezel_components.observability.figures import ServerFigures
from bezel_components.observability.lease_observability import LeaseObservability, LeaseObservabilityArgs
from bezel_components.observability.service_observability import ServiceObservability, ServiceObservabilityArgs
from bezel_localcloud.services.monitoring.conditions import check_condition
from tests.support.components.fake_engine import Declarations, declare

MATCHERS = series_matchers("chat", leased=False, location="us-east4")
FIGURES = ServerFigures(matchers=MATCHERS, max_ttft_seconds=2, max_tpot_seconds=0.05, drafts=True)
POLICY, DASHBOARD = "monitoring/alertPolicy:AlertPolicy", "monitoring/dashboard:Dashboard"
_ENDS = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket",)}
LABELS = {f"{each.name}{end}": {*each.labels, "le"} for each in KEPT_SERIES for end in _ENDS[each.kind]}
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
