"""Memory of a server at the wire: its own lines and metrics beside the plan's fit; what nothing reports is unknown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.operations.log_reading.bounds import LogsError
from bezel.operations.log_reading.lines import LogLine
from bezel.operations.memory.comparison import EVERYTHING, another_model, figures_of, findings_of, planned_figures
from bezel.operations.memory.memory import Memory, MemoryArguments, memory
from bezel.operations.memory.reported import Reported, ReportedFigure, reported_by_log, reported_by_metrics
from bezel.planner import make_plan
from tests.support.operations.deployed import Deployed, service_resource, state_of
from tests.support.operations.log_server import LogServer
from tests.support.operations.model_server import ModelServer
from tests.support.planner.l4_stack import with_changes
from tests.support.planner.v6e_stack import V6E4_MOE
from tests.support.rest.fake_google import Answer

VLLM = Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm"
STARTED = "(APIServer pid=1) INFO 11-24 11:17:46 [api_utils.py:286] non-default args: {'max_model_len': 8192}"
GPU = (
    STARTED,
    "(APIServer pid=1) INFO 11-24 11:18:07 [model.py:2152] Using max model len 8192",
    "(EngineCore pid=7) INFO 11-24 11:18:09 [model_runner.py:425] Model loading took 9.10 GiB memory and 31.5 seconds",
    "(EngineCore pid=7) INFO 11-24 11:18:11 [gpu_worker.py:760] Available KV cache memory: 7.25 GiB",
    (
        "(EngineCore pid=7) INFO 11-24 11:18:12 [kv_cache_utils.py:2327] GPU KV cache size: 60,000 tokens, "
        "Maximum concurrency for 8,192 tokens per request: 7.32x"
    ),
)
# As published for a v6e-1, and for a v6e-4.
TPU = (
    "Memory statistics | total_hbm_limit_gb=31.24GiB | total_hbm_limit_cap_gb=28.74GiB | total_hbm_used_gb=24.56GiB | "
    "total_hbm_avail_gb=4.19GiB"
)
TPU_HEADROOM = (
    "Memory statistics | total_hbm_limit_gb=124.97GiB | total_hbm_limit_cap_gb=114.97GiB | total_hbm_used_gb=58.4GiB | "
    "kv_cache_headroom_gb=0.5GiB | total_hbm_avail_gb=56.57GiB"
)


def lines(*texts: str, instance: str | None = None, at: str = "2026-09-21T14:00:00Z") -> list[LogLine]:
    return [
        LogLine(time=at, severity=None, source="container", resource=None, instance=instance, text=text)
        for text in texts
    ]


def values(reported: Reported) -> dict[str, float]:
    fields = {name: getattr(reported, name) for name in Reported.__dataclass_fields__}
    return {name: reading.value for name, reading in fields.items() if isinstance(reading, ReportedFigure)}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (GPU, {"weights": 9.10, "cache": 7.25, "tokens": 60_000, "concurrency": 7.32, "length": 8192}),
        ((TPU,), {"total": 31.24, "cap": 28.74, "used": 24.56, "cache": 4.19}),
        ((TPU_HEADROOM,), {"total": 124.97, "cap": 114.97, "used": 58.4, "cache": 56.57}),
        (("GPU KV cache size: 1,151,744 tokens",), {"tokens": 1_151_744}),
        (("Maximum concurrency for 500,000 tokens per request: 3.37x",), {"concurrency": 3.37, "length": 500_000}),
        (("Available KV cache memory: -1.25 GiB",), {"cache": -1.25}),
        (("Model loading took 8.3215 GiB and 25.3 seconds",), {"weights": 8.3215}),
        (("Engine 000: GPU KV cache usage: 3.1%", "Model loading took long", "KV cache size: many tokens"), {}),
        ((), {}),
    ],
)
def test_the_lines_of_each_platform_are_read(texts: tuple[str, ...], expected: dict[str, float]) -> None:
    assert values(reported_by_log(lines(*texts))) == expected


def test_a_recorded_start_of_vllm_has_its_cache_in_log_and_metrics_alike() -> None:
    log = reported_by_log(lines(*(VLLM / "starts" / "healthy.log").read_text().splitlines()))
    assert values(log) == {"cache": 0.06, "tokens": 199_728, "concurrency": 48.76, "length": 4096}
    labels = {
        "kv_cache_size_tokens": "199728",
        "kv_cache_max_concurrency": "48.76",
        "kv_cache_memory_bytes": "67108864",
    }
    metrics = reported_by_metrics({**labels, "gpu_memory_utilization": "0.92", "sliding_window": "None"})
    assert values(metrics) == {"cache": 0.0625, "tokens": 199_728, "concurrency": 48.76, "utilization": 0.92}


def test_the_last_start_counts_and_its_tightest_worker() -> None:
    first = lines(*GPU, instance="a")
    second = lines(
        STARTED,
        "Model loading took 5.00 GiB memory and 1 seconds",
        "Model loading took 5.10 GiB memory and 1 seconds",
        "Available KV cache memory: 3.00 GiB",
        "Available KV cache memory: 2.90 GiB",
        instance="a",
    )
    assert values(reported_by_log([*first, *second])) == {"weights": 5.10, "cache": 2.90}
    # Another instance that starts later is another server; one that is still starting has no figures yet.
    other = lines(STARTED, "Available KV cache memory: 1.00 GiB", instance="b")
    assert values(reported_by_log([*first, *other])) == {"cache": 1.00}
    assert values(reported_by_log([*first, *lines(STARTED, instance="b")])) == {}


@pytest.mark.slow
@given(st.text(max_size=60), st.sampled_from(["inf", "nan", "None", "", "9" * 400, "1e999"]))
def test_no_text_breaks_the_reading_and_no_infinity_is_a_figure(text: str, number: str) -> None:
    reported_by_log(lines(text, f"Available KV cache memory: {text} GiB", f"KV cache size: {text} tokens"))
    assert reported_by_metrics({"kv_cache_size_tokens": number, "kv_cache_memory_bytes": number}) == Reported()


def fit(**changes: Any) -> dict[str, Any]:
    return make_plan(with_changes(changes), project="acme", stack="l4-qat").fit.as_output()


def as_planned(plan: dict[str, Any]) -> tuple[str, ...]:
    """The lines of a server that is exactly as planned."""
    figures = planned_figures(plan)
    return (
        STARTED,
        f"Using max model len {figures['max_model_len']:.0f}",
        f"Model loading took {figures['weights']:.2f} GiB memory and 1.0 seconds",
        f"Available KV cache memory: {figures['kv_cache']:.2f} GiB",
        (
            f"GPU KV cache size: {figures['kv_tokens']:,.0f} tokens, Maximum concurrency for "
            f"{figures['max_model_len']:,.0f} tokens per request: {figures['concurrency']:.2f}x"
        ),
    )


def test_a_server_that_is_as_planned_shows_no_mistake_of_the_plan() -> None:
    plan = fit()
    figures = figures_of(reported_by_log(lines(*as_planned(plan))), plan, "plan", "unknown")
    assert findings_of(figures) == ()
    compared = {each.name for each in figures if each.is_plan_wrong is False}
    assert compared == {
        "weights", "kv_cache", "kv_tokens", "concurrency", "kv_token", "max_model_len"
    }  # fmt: skip
    unknown = {each.name for each in figures if each.measured is None}
    assert unknown == {"total", "cap", "used_before_cache", "gpu_memory_utilization"}
    assert {each.is_plan_wrong for each in figures if each.name in unknown} == {None}


def test_a_wrong_plan_is_reported_with_both_figures_and_the_consequence() -> None:
    plan = fit()
    texts = [text.replace("Model loading took ", "Model loading took 1") for text in as_planned(plan)]
    findings = findings_of(figures_of(reported_by_log(lines(*texts)), plan, "plan", "unknown"))
    assert len(findings) == 1
    assert f"planned {plan['weights_gib'] + plan['draft_gib']:.2f} GiB, measured 1" in findings[0]
    assert "less is left for the KV cache" in findings[0]


def test_another_setting_is_no_mistake_of_the_plan() -> None:
    reported = reported_by_metrics({"gpu_memory_utilization": "0.5"})
    (finding,) = findings_of(figures_of(reported, fit(), "plan", "unknown"))
    assert "another setting than the plan" in finding


OTHER = STARTED.replace("{", "{'model': '/models/other', ")


def test_nothing_is_compared_where_another_model_is_served() -> None:
    plan = fit()
    tiny = lines(*(text.replace(STARTED, OTHER).replace("7.25", "0.06") for text in GPU))
    reported = reported_by_log(tiny)
    why = another_model(reported, "/mnt/models/planned")
    assert "the server runs /models/other" in why
    figures = figures_of(reported, plan, "plan", "unknown", not_judged=EVERYTHING)
    assert {each.deviation for each in figures} == {each.is_plan_wrong for each in figures} == {None}
    assert findings_of(figures) == ()
    assert next(each for each in figures if each.name == "kv_cache").measured == 0.06


@pytest.mark.parametrize(
    ("served", "planned_model"), [("/models/a", "/models/a"), ("", "/models/a"), ("/models/a", "")]
)
def test_the_planned_model_and_an_unknown_one_are_compared(served: str, planned_model: str) -> None:
    assert another_model(Reported(model=served), planned_model) == ""


def test_no_measured_figure_is_computed_with_a_planned_one() -> None:
    reported = reported_by_log(lines(*GPU))
    small = fit() | {"kv_gib_per_full_context_sequence": 9.0, "vllm_reported_concurrency": 0.1}
    before, after = (figures_of(reported, plan, "plan", "unknown") for plan in (fit(), small))
    assert [each.measured for each in before] == [each.measured for each in after]


def test_the_figures_of_a_slice_are_compared_over_all_its_chips() -> None:
    plan = make_plan(V6E4_MOE, project="acme", stack="moe").fit.as_output()
    reported = reported_by_log(lines(TPU_HEADROOM, f"GPU KV cache size: {plan['kv_tokens']:,} tokens"))
    figures = {each.name: each for each in figures_of(reported, plan, "plan", "unknown")}
    assert figures["total"].is_plan_wrong is False
    assert figures["kv_tokens"].is_plan_wrong is False
    assert figures["used_before_cache"].planned == pytest.approx(plan["weights_gib"] + plan["overhead_gib"])


def test_without_a_plan_nothing_is_judged() -> None:
    figures = figures_of(reported_by_log(lines(*GPU)), {}, "unknown: no file", "unknown")
    assert {each.is_plan_wrong for each in figures} == {None}
    assert {each.planned_origin for each in figures} == {"unknown: no file"}
    assert next(each for each in figures if each.name == "full_context_sequences").measured == 7


@pytest.fixture
def server(cloud: Deployed) -> Iterator[ModelServer]:
    made = ModelServer(cloud)
    cloud.keep("dev", state_of(service_resource(), url=cloud.server.url, model="gemma", plan={"fit": fit()}))
    made.answers["/metrics"] = Answer(text=(VLLM / "metrics.txt").read_text().partition("\n\n")[2])
    return made


@pytest.mark.parametrize("planned", [True, False])
def test_the_plan_of_an_own_program_is_that_of_its_component(server: ModelServer, planned: bool) -> None:
    """Such a program exports what it wants, and has no stack file's settings to plan again."""
    log = LogServer(server.cloud)
    for text in GPU:
        log.add(text, 60)
    record = {"planned_memory": {"fit": {**fit(), "total_gib": 22.35}}} if planned else {}
    outputs = {"url": server.cloud.server.url, "model": "gemma", **record}
    urn = "urn:pulumi:dev::shop::bezel:services:VllmService::chat"
    component = {"urn": urn, "type": "bezel:services:VllmService", "outputs": outputs}
    server.cloud.keep("dev", state_of(service_resource(), component, address="https://shop.example"))
    report = of(server)
    weights = next(each for each in report.figures if each.name == "weights")
    assert (report.plan_origin == "plan of the last deploy") is planned
    assert (weights.planned is not None) is planned
    assert weights.measured == 9.10


def of(server: ModelServer, **arguments: Any) -> Memory:
    return memory(server.cloud.context, MemoryArguments(stack="dev", **arguments))


@pytest.mark.slow
def test_log_and_metrics_are_joined_and_each_figure_says_where_it_is_from(server: ModelServer) -> None:
    log = LogServer(server.cloud)
    for number in range(300):
        log.add(f'INFO: 169.254.1.1:{number} - "GET /health HTTP/1.1" 200 OK', 700)
    for text in GPU:
        log.add(text, 60)
    report = of(server)
    figures = {each.name: each for each in report.figures}
    assert figures["weights"].measured == 9.10
    assert "the server's log, 2026-09-21T14:01:00" in figures["weights"].measured_origin
    assert "/metrics" in figures["kv_tokens"].measured_origin
    assert figures["total"].measured_origin.startswith("unknown")
    assert (report.is_read, report.exit_code, report.plan_origin) == (True, 0, "plan of the last deploy")
    assert "two starts or two instances" in " ".join(report.notes)
    assert "WRONG" in report.text()
    assert all(len(line) < 400 for line in report.text().splitlines())


@pytest.mark.slow
def test_the_model_that_a_server_states_decides_where_its_log_has_no_start(server: ModelServer) -> None:
    LogServer(server.cloud)
    planned_by = {"fit": fit(), "weights": {"model": "/mnt/models/planned"}}
    server.cloud.keep("dev", state_of(service_resource(), url=server.cloud.server.url, model="gemma", plan=planned_by))
    adapter = {"id": "adapter", "root": "/lora", "parent": "gemma"}
    server.answers["/v1/models"] = Answer(json={"data": [adapter, {"id": "gemma", "root": "/models/other"}]})
    report = of(server)
    assert "not judged" in report.text()
    assert {each.is_plan_wrong for each in report.figures} == {None}
    server.answers["/v1/models"] = Answer(json={"data": [{"id": "gemma", "root": "/mnt/models/planned"}]})
    assert any(each.is_plan_wrong is not None for each in of(server).figures)


def test_a_server_that_sleeps_is_not_woken_and_its_log_still_tells(server: ModelServer) -> None:
    server = ModelServer(server.cloud, minimum=0)
    log = LogServer(server.cloud)
    for text in GPU:
        log.add(text, 60)
    report = of(server)
    assert server.calls == []
    assert report.is_read
    assert "--wake" in report.text()


@pytest.mark.slow
def test_a_server_that_reports_nothing_is_unknown_and_a_failure(server: ModelServer) -> None:
    LogServer(server.cloud)
    server.answers["/metrics"] = Answer(status=503, text="engine died")
    report = of(server)
    assert (report.is_read, report.exit_code) == (False, 1)
    assert {each.measured for each in report.figures} == {None}
    assert "nothing can be compared" in report.text()
    assert "engine died" in " ".join(report.notes)


@pytest.mark.slow
def test_a_wrong_begin_of_the_log_is_an_argument_error(server: ModelServer) -> None:
    """It is not reported as a log that cannot be read."""
    LogServer(server.cloud)
    with pytest.raises(LogsError, match="expected an age or a time") as refused:
        of(server, since="1x")
    assert refused.value.exit_code == 2
    assert of(server, since="2h").notes == ("the log has no line about memory since 2h",)
