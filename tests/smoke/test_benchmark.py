"""The short benchmark: what it sends, what its figures say, and how it fails; on a fake service at the wire."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench_support.recorded import recorded_stream
from bench_support.runs import closed_loop, failed_sample, good_sample
from bezel.rest import Credentials
from bezel_base.errors import UserError
from bezel_bench.cell.cell import MeasuredCell
from bezel_bench.result.columns import Columns
from bezel_bench.result.document import Cell, Check
from bezel_bench.result.records import Distribution, Histogram, Metric
from bezel_components.base.dynamic import Progress
from bezel_smoke.base import SmokeError
from bezel_smoke.benchmark import ShortBenchmarkProvider, figures
from tests.support.rest.fake_google import Answer
from tests.support.smoke.fake_service import MODEL, SERVICE, Project

ROOT = Path(__file__).parent.parent.parent
WHOLE = b"".join(line for _, line in recorded_stream("chat-stream-usage.txt"))
SPREAD = Distribution(
    unit="ms", n=6, mean=2, min=1, max=3.25, p50=2, p90=None, p95=None, p99=None, p999=None,
    histogram=Histogram(edges=[1, 4], counts=[6]),
)  # fmt: skip


def props(project: Project, **others: Any) -> dict[str, Any]:
    return {
        "url": project.vllm.url,
        "revision": "llm-00001-abc",
        "service": SERVICE,
        "served_model": MODEL,
        "requests": 6.0,
        "concurrency": 2.0,
        "prompt_tokens": 20.0,
        "output_tokens": 6.0,
        "public": True,
        "deadline_seconds": 20.0,
    } | others


@pytest.fixture
def opened_project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The fake service for anybody."""
    monkeypatch.delenv("BEZEL_SIMULATED", raising=False)
    project.open_paths = {"/health", "/metrics", "/tokenize", "/v1/chat/completions"}
    return project


def run(inputs: dict[str, Any]) -> dict[str, Any]:
    return dict(ShortBenchmarkProvider().run(inputs, Progress(None))["figures"])


def chats(project: Project) -> list[Any]:
    return [call.json for call in project.vllm.calls if call.path == "/v1/chat/completions"]


@pytest.mark.slow
def test_every_request_is_sent_once_with_a_prompt_of_its_own(opened_project: Project) -> None:
    outputs = run(props(opened_project))
    assert (outputs["requests"], outputs["completed"], outputs["failed"], outputs["concurrency"]) == (6, 6, {}, 2)
    assert (outputs["prompt_tokens"], outputs["output_tokens"]) == (6 * 19, 6 * 6)
    assert outputs["ttft_ms"]["p50"] <= outputs["e2e_ms"]["p50"] <= outputs["e2e_ms"]["max"]
    sent = chats(opened_project)
    assert len({one["messages"][0]["content"] for one in sent}) == 6
    assert {one["max_tokens"] for one in sent} == {6}
    assert all(one["ignore_eos"] and one["stream_options"] == {"include_usage": True} for one in sent)
    # The service counts no tokens: lengths are about right, and that is said.
    assert any("prompt lengths are approximate" in note for note in outputs["notes"])


@pytest.mark.slow
def test_the_next_run_sends_other_prompts(opened_project: Project) -> None:
    runs = [run(props(opened_project))["run"] for _ in range(2)]
    assert len(set(runs)) == 2
    assert len({one["messages"][0]["content"] for one in chats(opened_project)}) == 12


def test_failures_are_counted_by_kind_and_the_rest_is_measured(opened_project: Project) -> None:
    opened_project.chat_status = [429, 503, 200]
    outputs = run(props(opened_project))
    assert outputs["failed"] == {"http_429": 1, "http_5xx": 1}
    assert (outputs["requests"], outputs["completed"], outputs["output_tokens"]) == (6, 4, 24)
    assert "2 of 6 requests failed and are in no figure but `failed`" in outputs["notes"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            Answer(chunks=[3.0, WHOLE]),
            "no response was complete within 0 s.\n   Repair: lower smoke.requests, or smoke.output_tokens",
        ),
        (Answer(403), "grant the caller roles/run.invoker"),
        (
            Answer(404, {"error": {"message": "no such model"}}),
            "is served, has a chat template, and that 20 + 6 tokens",
        ),
        (Answer(400, {"error": {"message": "too long by far"}}), "The server's message: too long by far"),
    ],
)
def test_where_all_fails_the_kind_says_what_to_do(opened_project: Project, answer: Answer, message: str) -> None:
    opened_project.vllm.routes.insert(0, lambda call: answer if call.path == "/v1/chat/completions" else None)
    with pytest.raises(SmokeError) as caught:
        run(props(opened_project, requests=3, deadline_seconds=0.3 if answer.chunks else 20.0))
    assert message in str(caught.value)
    assert str(caught.value).startswith("service llm\n   all ")


@pytest.mark.slow
def test_a_service_that_ends_while_it_is_measured_fails_the_deploy(
    opened_project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As when a lease ends under the load: every figure is of before."""
    for name, value in opened_project.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    opened_project.health = [503]
    for seconds in (2.0, 20.0):  # the second where a busy machine did not answer at the end of the first
        with pytest.raises(SmokeError) as caught:
            run(props(opened_project, deadline_seconds=seconds))
        if "no response" not in str(caught.value):
            break
    assert "the service answered the benchmark and does not respond after it" in str(caught.value)
    assert "HTTP 503" in str(caught.value)
    assert "Repair: " in str(caught.value)


def test_a_service_that_nobody_runs_is_no_traceback(opened_project: Project) -> None:
    with pytest.raises(UserError, match=r"(?s)http://127\.0\.0\.1:9.*accepts no connection"):
        run(props(opened_project, url="http://127.0.0.1:9"))


@pytest.mark.slow
def test_an_identity_token_is_sent_where_the_service_asks_for_one(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in project.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    assert run(props(project, public=False))["completed"] == 6
    assert Credentials().identity_token(project.vllm.url) not in str(run(props(project, public=False)))


@pytest.mark.slow
def test_a_preview_loads_nothing_that_only_a_run_needs() -> None:
    program = "import bezel_smoke.benchmark, sys; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    heavy = ("bezel_bench", "numpy", "orjson", "httptools", "httpx", "pydantic")
    assert [name for name in loaded if name.startswith(heavy)] == []
    assert "bezel_smoke.benchmark" in loaded


def cell(**others: Any) -> Cell:
    fields = {
        "id": "smoke", "context_tokens": 20, "users": 2, "output_tokens": 11, "pattern": "closed", "prompts": "unique",
        "state": "ok", "requests": 6, "seconds": 1.5, "load": {"prompts": {"seed": 3, "run": "ab"}},
        "metrics": {
            "requests_per_second": Metric(value=4.00049, unit="requests/s", n=6),
            "input_tokens_per_second": Metric(value=None, unit="tokens/s", why="the server tells no cached tokens"),
        },
        "distributions": {"ttft": SPREAD},
    }  # fmt: skip
    return Cell(**(fields | others))


def measured_cell(plain: Cell, samples: Any = None) -> MeasuredCell:
    return MeasuredCell(plain, Columns.of(samples or closed_loop(2, 3).samples))


def test_what_cannot_be_measured_is_absent_and_not_zero() -> None:
    shown_figures = figures(measured_cell(cell()), (), simulated=False)
    assert shown_figures["requests_per_second"] == 4.0
    assert shown_figures["ttft_ms"] == {"p50": 2.0, "max": 3.25}
    assert not {"input_tokens_per_second", "tpot_ms", "e2e_ms"} & set(shown_figures)
    assert (shown_figures["seed"], shown_figures["run"], shown_figures["notes"]) == (3, "ab", [])


def test_tokens_are_those_of_answered_requests() -> None:
    samples = [good_sample(0, 1), good_sample(1, 1), failed_sample(2, 1, "http_429")]
    failing = cell(requests=3, failures={"http_429": 1})
    shown_figures = figures(measured_cell(failing, samples), (), simulated=False)
    assert (shown_figures["prompt_tokens"], shown_figures["output_tokens"], shown_figures["completed"]) == (200, 22, 2)


def test_a_doubt_stands_beside_the_figures() -> None:
    """A doubt stands beside the figures and a check that passed does not."""
    checks = [
        Check(name="counters", state="failed", text="the server counts twice as many"),
        Check(name="steady_state", state="suspect", text="too short"),
        Check(name="drained", state="passed", text="idle"),
        Check(name="roofline", state="unknown", text="no checkpoint"),
    ]
    limited = cell(state="client_limited", reason="the client was measured", checks=checks)
    shown_figures = figures(measured_cell(limited), ("lengths are approximate",), simulated=True)
    assert shown_figures["notes"] == [
        "counters: the server counts twice as many",
        "steady_state: too short",
        "the client was measured",
        "lengths are approximate",
    ]
    assert shown_figures["checks"] == {
        "counters": "failed", "steady_state": "suspect", "drained": "passed", "roofline": "unknown",
    }  # fmt: skip
    assert shown_figures["state"] == "client_limited"


def test_requests_that_were_not_even_begun_are_reported() -> None:
    planned = {"prompts": {"seed": 3, "run": "ab"}, "stop": {"requests": 96, "seconds": 300.0}}
    shown_figures = figures(measured_cell(cell(load=planned)), (), simulated=False)
    assert shown_figures["notes"] == ["only 6 of 96 requests were begun within 300 s"]
    planned["stop"]["requests"] = 6
    assert figures(measured_cell(cell(load=planned)), (), simulated=False)["notes"] == []
