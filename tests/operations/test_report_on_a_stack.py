"""Report on a stack: sums by day, cost and gaps, each with its source, as a text and as a page without scripts."""

import resource
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.report.report import StackReportArguments, report
from bezel.operations.report.result import Report
from bezel_base.errors import UserError
from bezel_door.key_file import Key, write_keys
from bezel_door.usage_file import KeyUsage
from tests.support.operations.deployed import NOW, SERVICE, Deployed, live_service, service_resource, state_of
from tests.support.operations.door_cloud import door_cloud
from tests.support.operations.prometheus_server import Prometheus, with_collector
from tests.support.rest.fake_google import Answer, Call

TEXT = (Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm" / "metrics.txt").read_text()
DAY = 86_400.0


class Page(HTMLParser):
    """What a page has: tags, ids, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        values = dict(attrs)
        self.ids |= {str(values["id"])} if "id" in values else set()
        self.links += [str(values[name]) for name in ("href", "src") if name in values]


@pytest.fixture
def prometheus(cloud: Deployed) -> Prometheus:
    """The series of a deployed stack that keeps them; Monitoring has two hours of billed time and 30 requests."""
    server = Prometheus()
    cloud.keep("dev", state_of(with_collector(), url="https://llm.example", model="gemma"))
    cloud.live[SERVICE] = live_service()
    cloud.server.routes[:0] = [server.answer, monitoring]
    return server


def monitoring(call: Call) -> Answer | None:
    """Cloud Monitoring's billed time and number of requests."""
    if not call.path.endswith("/timeSeries"):
        return None
    interval = {"startTime": call.query["interval.startTime"], "endTime": call.query["interval.endTime"]}
    if "billable_instance_time" in call.query["filter"]:
        return Answer(json={"timeSeries": [{"points": [{"interval": interval, "value": {"doubleValue": 7200.0}}]}]})
    if "request_count" in call.query["filter"]:
        return Answer(json={"timeSeries": [{"points": [{"interval": interval, "value": {"int64Value": "30"}}]}]})
    return Answer(json={})


def report_of(cloud: Deployed, **arguments: Any) -> Report:
    return report(cloud.context, StackReportArguments(stack="dev", **arguments))


def test_a_page_that_cannot_be_written_is_an_error_with_its_repair(cloud: Deployed, prometheus: Prometheus) -> None:
    prometheus.scrape(TEXT, NOW - DAY)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(
            UserError, match=r"(?s)--html = page\.html.*not written: File too large.*Repair: free space"
        ):
            report_of(cloud, html="page.html")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert report_of(cloud, html="page.html").written == "page.html"


def test_a_report_has_traffic_latency_failures_cost_and_hours(cloud: Deployed, prometheus: Prometheus) -> None:
    prometheus.scrape(TEXT, NOW - 3 * DAY)
    prometheus.scrape(TEXT, NOW - DAY, instance="b2")
    prometheus.scrape(TEXT, NOW - DAY, instance="c3")
    result = report_of(cloud)
    assert (result.requests, result.failed, result.reached, result.starts) == (36, 0, 30, 3)
    assert (result.prompt_tokens, result.generated_tokens) == (3 * 196, 3 * 64)
    by_day = {f"{day.day}": (day.requests, day.prompt_tokens, day.servers) for day in result.days}
    assert by_day["2026-09-18"] == (12, 196, 1)
    assert by_day["2026-09-20"] == (24, 392, 2)
    assert by_day["2026-09-19"] == (0, 0, 0)
    assert sum(day.requests or 0 for day in result.days) == result.requests
    assert (result.hours, result.usd) == (2.0, result.spent[0].usd)
    assert 2 < float(result.usd or 0) < 2.5
    text = result.text()
    for part in (
        "36, 0 of them failed (0.0%)",
        "2026-09-20",
        "http 4xx",
        "hours served",
        "2.00 h",
        "series until 2026-09-20",
    ):
        assert part in text
    assert "note: cost is that of instances or machines, without door" in text


def test_a_page_is_self_contained_and_its_links_lead_somewhere(cloud: Deployed, prometheus: Prometheus) -> None:
    prometheus.scrape(TEXT.replace("tiny-gemma4", "<script>x</script>"), NOW - DAY)
    result = report_of(cloud, html="week.html")
    assert result.written == "week.html"
    text = (cloud.folder / "week.html").read_text()
    page = Page(text)
    assert {"html", "svg", "table", "style"} <= page.tags
    assert not {"script", "img", "iframe", "form"} & page.tags
    assert [link for link in page.links if not link.startswith("#") and link != "data:,"] == []
    assert {link[1:] for link in page.links if link.startswith("#")} <= page.ids
    for part in ("Stack dev", "By day", "Percentiles", "Sources and gaps", "Time to the first token"):
        assert part in text
    with pytest.raises(UserError, match="would be overwritten"):
        report_of(cloud, html="week.html")


def test_a_report_without_series_has_cost_alone_and_names_the_gap(cloud: Deployed, prometheus: Prometheus) -> None:
    cloud.keep("dev", state_of(service_resource(), url="https://llm.example", model="gemma"))
    result = report_of(cloud, html="cost.html")
    assert (result.requests, result.prompt_tokens, result.starts, result.days) == (None, None, None, ())
    assert (result.hours, result.reached) == (2.0, 30)
    assert "traffic and latency: no figures are kept over time" in result.text()
    assert "No series of this time." in (cloud.folder / "cost.html").read_text()
    assert prometheus.calls == []


def test_what_cannot_be_read_is_a_gap_and_never_zero(cloud: Deployed, prometheus: Prometheus) -> None:
    denied = Answer(403, json={"error": {"code": 403, "message": "denied", "status": "PERMISSION_DENIED"}})
    prometheus.refusal = denied
    cloud.server.routes.insert(0, lambda call: denied if call.path.endswith("/timeSeries") else None)
    result = report_of(cloud)
    assert (result.requests, result.reached, result.hours, result.usd) == (None, None, None, None)
    assert sum("denied" in gap for gap in result.gaps) == 3
    assert "cost                 unknown" in result.text()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"since": "0"}, "--since"),
        ({"since": "-1d"}, "--since"),
        ({"since": "400d"}, "six weeks"),
        ({"since": "2030-01-01"}, "in the future"),
        ({"html": "week.txt"}, r"\.html"),
        ({"html": "../week.html"}, "--html"),
        ({"html": "no/week.html"}, "folder does not exist"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_is_read(
    cloud: Deployed, prometheus: Prometheus, arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UserError, match=problem):
        report_of(cloud, **arguments)
    assert prometheus.calls == []


@pytest.mark.slow
def test_a_report_of_a_stack_with_a_door_has_the_use_by_team(tmp_path: Path) -> None:
    with door_cloud(tmp_path) as stack:
        stack.put("keys.json", write_keys({"aaaaaaaa": Key("0" * 64, "search", stack.time())}))
        with stack.context() as context:
            assert "No key was used." in report(context, StackReportArguments(stack="dev")).text()
        stack.use("2026-09-20", aaaaaaaa=KeyUsage(requests=30, prompt_tokens=1000, completion_tokens=100))
        stack.use("2026-09-01", aaaaaaaa=KeyUsage(requests=5))  # before the time
        with stack.context() as context:
            result = report(context, StackReportArguments(stack="dev", html="door.html"))
        assert result.teams is not None
        assert [(team.team, team.requests, team.tokens) for team in result.teams] == [("search", 30, 1100)]
        assert "search  30 requests, 1,100 tokens" in result.text()
        assert "whole days UTC" in result.text()
        assert ">search<" in (stack.deployed.folder / "door.html").read_text()
