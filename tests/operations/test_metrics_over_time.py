"""Metrics of the past, from series at the wire: what ended servers did, and from which source each figure is."""

import re
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.advise.advise import AdviseArguments, advise
from bezel.operations.metrics.metrics import MetricsArguments, metrics
from bezel.operations.metrics.result import Metrics
from bezel.operations.status.status import StatusArguments, status
from bezel.operations.watch.page import WatchArguments, watch
from bezel.rest import RestError
from bezel_base.errors import UserError
from tests.support.operations.deployed import NOW, SERVICE, Deployed, live_service, service_resource, state_of
from tests.support.operations.prometheus_server import Prometheus, with_collector
from tests.support.rest.fake_google import ACCESS_TOKEN, Answer, Call

TEXT = (Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm" / "metrics.txt").read_text()
MODEL = 'model_name="tiny-gemma4"'
HOUR = 3600.0


def with_count(name: str, value: float, text: str = TEXT) -> str:
    """The text with another value of each series of a name."""
    return re.sub(rf"(?m)^({re.escape(name)}(?:{{.*}})?) .*$", rf"\1 {value}", text)


@pytest.fixture
def prometheus(cloud: Deployed) -> Prometheus:
    """The series of a deployed stack that keeps them, whose service has no instance now."""
    server = Prometheus()
    cloud.keep("dev", state_of(with_collector(), url="https://llm.example", model="gemma"))
    cloud.live[SERVICE] = live_service()
    cloud.server.routes[:0] = [server.answer]
    return server


def read(cloud: Deployed, **arguments: Any) -> Metrics:
    return metrics(cloud.context, MetricsArguments(stack="dev", **arguments))


def value(report: Metrics, name: str) -> float | None:
    return next(figure.value for figure in report.figures if figure.name == name)


def count_of(report: Metrics, outcome: str) -> int:
    return sum(each.requests for each in report.outcomes if each.outcome == outcome)


def total(report: Metrics, name: str) -> int:
    return sum(getattr(window, name) or 0 for window in report.course)


def test_figures_are_of_every_server_that_ran(cloud: Deployed, prometheus: Prometheus) -> None:
    prometheus.scrape(TEXT, NOW - 5 * HOUR)
    prometheus.scrape(TEXT, NOW - 2 * HOUR, instance="b2")
    prometheus.scrape(TEXT, NOW - 2 * HOUR, instance="c3", namespace="another-service")
    report = read(cloud, since="24h")
    assert (report.source, report.is_read, report.exit_code, report.starts) == ("series", False, 0, 2)
    assert (total(report, "prompt_tokens"), total(report, "generated_tokens")) == (2 * 196, 2 * 64)
    assert (total(report, "requests"), count_of(report, "2xx"), count_of(report, "length")) == (2 * 12, 24, 26)
    assert value(report, "ttft") == pytest.approx(16.19 / 13, rel=1e-3)
    assert {figure.source for figure in report.figures} == {"series until 2026-09-21 12:13 UTC"}
    ttft = next(each for each in report.latencies if each.name == "ttft")
    assert (ttft.observations, ttft.mean) == (26, pytest.approx(16.19 / 13, rel=1e-3))
    assert 0.005 < (ttft.p50 or 0) < 0.01
    assert max(map(len, report.text().partition("each column")[2].splitlines()[1:])) <= 80
    selector = '{project_id=~"acme",namespace=~"llm",location=~"us-east4"}['
    assert all(selector in call.query["query"] for call in prometheus.calls)


def test_what_was_counted_before_the_time_is_left_out(cloud: Deployed, prometheus: Prometheus) -> None:
    begin = NOW // 1800 * 1800 - 24 * HOUR
    later = with_count("vllm:prompt_tokens_total", 296)
    for at, text in ((begin - 60, TEXT), (begin, TEXT), (begin + 60, later), (NOW - 30, later)):
        prometheus.scrape(text, at)
    report = read(cloud, since="24h")
    assert (total(report, "prompt_tokens"), total(report, "generated_tokens"), report.starts) == (100, 0, 0)
    assert value(report, "ttft") is None  # no request came
    assert next(each for each in report.latencies if each.name == "ttft").p50 is None


def test_what_was_counted_before_a_gap_of_the_collector_is_left_out(cloud: Deployed, prometheus: Prometheus) -> None:
    """The server runs since before the time, and its last sample before it is hours old."""
    begin = NOW // 1800 * 1800 - 24 * HOUR
    before = with_count("process_start_time_seconds", begin - 9 * HOUR)
    prometheus.scrape(before, begin - 5 * HOUR)
    prometheus.scrape(with_count("vllm:prompt_tokens_total", 296, before), begin + 5 * HOUR)
    assert total(read(cloud, since="24h"), "prompt_tokens") == 100
    prometheus.scrape(with_count("process_start_time_seconds", begin + HOUR), begin + 6 * HOUR, instance="b2")
    report = read(cloud, since="24h")
    assert total(report, "prompt_tokens") == 100 + 196
    assert not any("before this time" in note for note in report.notes)
    unsampled = with_count("process_start_time_seconds", begin - HOUR)
    prometheus.scrape(unsampled, begin + 6 * HOUR, instance="c3")
    report = read(cloud, since="24h")
    assert total(report, "prompt_tokens") == 100 + 2 * 196
    assert report.notes[0].startswith("1 server began before this time, without a sample of then")


def test_a_restart_between_two_samples_loses_nothing(cloud: Deployed, prometheus: Prometheus) -> None:
    """The next process has counted more at its first sample than the one before at its last."""
    begin = NOW // 1800 * 1800 - HOUR
    restarted = with_count("process_start_time_seconds", begin)
    for at, text in (
        (begin - 7200, TEXT),
        (begin + 60, with_count("vllm:prompt_tokens_total", 220)),
        (begin + 120, with_count("vllm:prompt_tokens_total", 500, restarted)),
        (begin + 150, with_count("vllm:prompt_tokens_total", 510, restarted)),
    ):
        prometheus.scrape(text, at)
    report = read(cloud, since="24h")
    assert (total(report, "prompt_tokens"), total(report, "generated_tokens"), report.starts) == (220 + 510, 2 * 64, 2)
    assert count_of(report, "length") == 2 * 13
    assert next(each.observations for each in report.latencies if each.name == "e2e") == 2 * 13
    assert "1 restart of a server" in report.notes[0]


def test_a_counter_of_the_next_process_may_appear_later(cloud: Deployed, prometheus: Prometheus) -> None:
    """Calls over HTTP have no series before the first one; then both processes have counted the same."""
    begin = NOW // 1800 * 1800 - 3 * HOUR
    restarted = with_count("process_start_time_seconds", begin + 100)
    prometheus.scrape(with_count("process_start_time_seconds", begin + 30), begin + 60)
    prometheus.scrape(re.sub(r"(?m)^http_requests_total.*$", "", restarted), begin + 120)
    prometheus.scrape(restarted, begin + 5000)
    assert count_of(read(cloud, since="24h"), "2xx") == 2 * 12


@pytest.mark.parametrize(("cluster", "notes"), [("__lease__", 1), ("__run__", 0)])
def test_responses_that_a_machine_s_collector_leaves_out_are_named(
    cloud: Deployed, prometheus: Prometheus, cluster: str, notes: int
) -> None:
    prometheus.scrape(TEXT, NOW - 5 * HOUR, cluster=cluster)
    assert sum("of leased machines, the first responses" in note for note in read(cloud, since="24h").notes) == notes


CALLS = re.compile(r"(?m)^http_requests_total.*\n")


def test_a_count_of_a_process_that_ended_before_the_time_is_no_begin(cloud: Deployed, prometheus: Prometheus) -> None:
    """Both processes ran in the window before the time; calls have no series before the first one."""
    begin = NOW // 1800 * 1800 - 24 * HOUR
    restarted = with_count("process_start_time_seconds", begin - 600)
    prometheus.scrape(with_count("process_start_time_seconds", begin - 900), begin - 800)
    prometheus.scrape(CALLS.sub("", restarted), begin - 500)
    prometheus.scrape(restarted, begin + 60)
    report = read(cloud, since="24h")
    assert (count_of(report, "2xx"), total(report, "prompt_tokens"), report.starts) == (12, 0, 0)
    begun = with_count("process_start_time_seconds", begin - 900)  # without a restart nothing grew
    prometheus.scrape(begun, begin - 800, instance="b2")
    prometheus.scrape(begun, begin + 60, instance="b2")
    assert count_of(read(cloud, since="24h"), "2xx") == 12


@pytest.mark.parametrize(("ends_with_calls", "calls"), [(False, 12), (True, 24)])
def test_a_short_last_window_has_no_sample_of_the_one_before(
    cloud: Deployed, prometheus: Prometheus, ends_with_calls: bool, calls: int
) -> None:
    """The last window is one of 13 minutes; another process begins just before it, and has answered nothing yet."""
    begin = NOW // 1800 * 1800
    restarted = with_count("process_start_time_seconds", begin - 60)
    prometheus.scrape(with_count("process_start_time_seconds", begin - 900), begin - 90)
    prometheus.scrape(CALLS.sub("", restarted), begin - 30)
    prometheus.scrape(restarted if ends_with_calls else CALLS.sub("", restarted), begin + 60)
    report = read(cloud, since="24h")
    assert (count_of(report, "2xx"), total(report, "requests"), report.starts) == (calls, calls, 2)


def test_answers_of_one_token_have_no_time_per_further_token(cloud: Deployed, prometheus: Prometheus) -> None:
    lengths = f'generation_tokens_bucket{{engine="0",le="1.0",{MODEL}}}'
    prometheus.scrape(TEXT.replace(f"{lengths} 0.0", f"{lengths} 3.0"), NOW - HOUR)
    tpot = next(each for each in read(cloud, since="24h").latencies if each.name == "tpot")
    total_seconds = float(re.search(r"per_output_token_seconds_sum{.*} (\S+)", TEXT)[1])  # type: ignore[index]
    assert (tpot.observations, tpot.mean) == (10, pytest.approx(total_seconds / 10))


def test_a_sleeping_service_is_told_of_by_its_series(cloud: Deployed, prometheus: Prometheus) -> None:
    prometheus.scrape(TEXT, NOW - 5 * HOUR)
    report = read(cloud)
    assert (report.source, report.exit_code) == ("series", 0)
    assert "--wake" in report.notes[0]
    assert "series until 2026-09-21 09:13 UTC" in report.text()


@pytest.mark.parametrize("since", [None, "1h"])
def test_figures_without_a_series_are_unknown_and_never_zero(
    cloud: Deployed, prometheus: Prometheus, since: str | None
) -> None:
    prometheus.scrape(TEXT, NOW - 60 * HOUR)
    report = read(cloud, since=since)
    assert (report.source, report.figures, report.latencies, report.course) == (None, (), (), ())
    assert (report.starts, report.exit_code) == (None, 1)
    assert "no series of 2026-09-2" in report.text()
    assert len(prometheus.calls) <= 2


def test_a_stack_without_series_is_asked_nothing_and_told_how_to_keep_them(
    cloud: Deployed, prometheus: Prometheus
) -> None:
    cloud.keep("dev", state_of(service_resource(), url="https://llm.example", model="gemma"))
    with pytest.raises(UserError, match=r"bezel:observability: \{metrics: true\}.*`bezel deploy dev`"):
        read(cloud, since="24h")
    assert read(cloud).source is None
    assert prometheus.calls == []


def test_a_refused_query_is_an_error_in_the_server_s_own_text(cloud: Deployed, prometheus: Prometheus) -> None:
    refusal = {"error": {"code": 403, "message": "Permission monitoring.timeSeries.list denied", "status": "DENIED"}}
    prometheus.refusal = Answer(403, json=refusal)
    with pytest.raises(RestError, match=r"monitoring\.timeSeries\.list") as refused:
        read(cloud, since="24h")
    assert ACCESS_TOKEN not in str(refused.value)
    prometheus.refusal = Answer(json={"status": "success", "data": {"result": [{"values": 7}]}})
    with pytest.raises(UserError, match="another form"):
        read(cloud, since="24h")


@pytest.mark.parametrize("others", [{"seconds": 5.0}, {"wake": True}, {"seconds": 5.0, "wake": True}])
def test_a_question_about_the_past_asks_no_server(
    cloud: Deployed, prometheus: Prometheus, others: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match=" and ".join(f"--{name}" for name in others)):
        read(cloud, since="24h", **others)
    assert prometheus.calls == []


def test_a_page_of_a_sleeping_service_reads_its_series_once_a_minute(cloud: Deployed, prometheus: Prometheus) -> None:
    prometheus.scrape(TEXT, NOW - 5 * HOUR)
    view = watch(cloud.context, WatchArguments(stack="dev"))
    text = view.text()
    assert "of 2026-09-20 14:00 UTC and later, series until 2026-09-21 09:13 UTC" in text
    assert "TTFT               1.25 s" in text
    assert max(map(len, text.splitlines())) <= 80
    before = len(prometheus.calls)
    again = watch(cloud.context, WatchArguments(stack="dev"), view)
    assert again.metrics == view.metrics
    assert len(prometheus.calls) == before > 0


def test_a_status_without_an_instance_tells_what_was_served(cloud: Deployed, prometheus: Prometheus) -> None:
    prometheus.scrape(TEXT, NOW - 5 * HOUR)
    (stack,) = status(cloud.context, StatusArguments(stack="dev")).stacks
    assert stack.last_served is not None
    assert (stack.last_served.requests, stack.last_served.prompt_tokens) == (12, 196)
    summary = (
        "requests 12, 0 of them failed; tokens 196 in, 64 out; TTFT p50 6.2 ms, p99 18.70 s (since 2026-09-20 14:00"
    )
    assert stack.last_served.summary.startswith(summary)
    assert "series until 2026-09-21 09:13 UTC" in status(cloud.context, StatusArguments(stack="dev")).text()
    prometheus.refusal = Answer(403, json={"error": {"code": 403, "message": "denied", "status": "DENIED"}})
    (refused,) = status(cloud.context, StatusArguments(stack="dev")).stacks
    assert refused.last_served is not None
    assert (refused.last_served.requests, refused.last_served.summary) == (None, "unknown (Cloud Monitoring: denied)")
    cloud.keep("dev", state_of(service_resource(), url="https://llm.example", model="gemma"))
    assert status(cloud.context, StatusArguments(stack="dev")).stacks[0].last_served is None


def test_revisions_that_wrote_no_series_make_every_sum_a_part(cloud: Deployed, prometheus: Prometheus) -> None:
    """Figures were kept from the second revision on; the first one ran two hours."""
    seconds = {"llm-00001-abc": 7200.0, "llm-00002-abc": 60.0, "llm-00003-abc": 0.5}

    def answer_billed_time(call: Call) -> Answer | None:
        if "billable_instance_time" not in call.query.get("filter", ""):
            return None
        end = {"endTime": call.query["interval.endTime"]}
        series = [
            {
                "resource": {"labels": {"revision_name": name}},
                "points": [{"interval": end, "value": {"doubleValue": n}}],
            }
            for name, n in seconds.items()
        ]
        return Answer(json={"timeSeries": series})

    cloud.server.routes.insert(0, answer_billed_time)
    prometheus.scrape(TEXT, NOW - 5 * HOUR, revision_name="llm-00002-abc")
    part = "llm-00001-abc ran 2.00 h and wrote no figures: the sums leave out what was served then"
    report = read(cloud, since="24h")
    assert (report.notes, total(report, "requests")) == ((part,), 12)
    assert {(each.servers, each.requests, each.prompt_tokens) for each in report.course} == {
        (1, 12, 196),
        (0, None, None),
    }
    assert "requests 12, 0 of them failed; tokens 196 in" in report.text()
    (stack,) = status(cloud.context, StatusArguments(stack="dev")).stacks
    assert stack.last_served is not None
    assert stack.last_served.summary.endswith("UTC, without what wrote none)")
    del seconds["llm-00001-abc"]
    report = read(cloud, since="24h")
    assert (report.notes, {each.requests for each in report.course}) == ((), {12, 0})
    (stack,) = status(cloud.context, StatusArguments(stack="dev")).stacks
    assert stack.last_served is not None
    assert stack.last_served.summary.endswith("09:13 UTC)")


def test_advice_about_a_sleeping_service_is_of_its_series(cloud: Deployed, prometheus: Prometheus) -> None:
    preempted = with_count("vllm:num_preemptions_total", 7)
    prometheus.scrape(preempted, NOW - 5 * HOUR)
    analysis = advise(cloud.context, AdviseArguments(stack="dev"))
    finding = next(each for each in analysis.findings if each.kind == "preemptions")
    assert finding.evidence == "preemptions 7 requests, in the interval, series until 2026-09-21 09:13 UTC"
    cloud.keep("dev", state_of(service_resource(), url="https://llm.example", model="gemma"))
    assert all(each.source != "metrics" for each in advise(cloud.context, AdviseArguments(stack="dev")).findings)
