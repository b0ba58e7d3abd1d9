"""Checks of servers whose model pools: the endpoint of its task in place of a completion.

The answers have the forms that a real vLLM 0.32.0 gave (packages/simulated-vllm/tests/fixtures/pooling).
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel.diagnosis.client import Server as VllmServer
from bezel.rest import Credentials, GoogleClient
from bezel_smoke.benchmark import ShortBenchmarkProvider
from bezel_smoke.checks import Checks
from bezel_smoke.poller import CheckFailedError, Poller
from tests.support.smoke.fake_service import MODEL, SERVICE, Project

USAGE = {"prompt_tokens": 7, "total_tokens": 7}
EMBEDDED = {"object": "list", "data": [{"index": 0, "object": "embedding", "embedding": [0.6, 0.8]}], "usage": USAGE}
CLASSIFIED = {
    "object": "list",
    "data": [{"index": 0, "label": "LABEL_1", "probs": [0.25, 0.75], "num_classes": 2}],
    "usage": USAGE,
}
RANKED = {
    "model": MODEL,
    "usage": USAGE,
    "results": [
        {"index": 0, "document": {"text": "a", "multi_modal": None}, "relevance_score": 0.9},
        {"index": 1, "document": {"text": "b", "multi_modal": None}, "relevance_score": 0.1},
    ],
}
POOLED = {
    "object": "list",
    "data": [{"index": 0, "object": "pooling", "data": [[0.5, 0.5], [0.1, 0.9]]}],
    "usage": USAGE,
}
ANSWERS = {"/v1/embeddings": EMBEDDED, "/classify": CLASSIFIED, "/v1/rerank": RANKED, "/pooling": POOLED}
Run = Callable[[str], dict[str, Any]]


@pytest.fixture
def check(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    environment = project.environment(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    credentials = Credentials(environ=environment)
    with GoogleClient(credentials) as google, VllmServer(project.vllm.url, credentials) as server:

        def run(pooled_at: str) -> dict[str, Any]:
            poller = Poller(server, MODEL, 60, show=lambda _: None)
            return Checks({"service": SERVICE, "pooled_at": pooled_at}, google, poller).run()

        yield run


@pytest.mark.parametrize("path", ANSWERS)
def test_endpoint_of_the_task_is_asked(path: str, project: Project, check: Run) -> None:
    project.pooled = {path: ANSWERS[path]}
    checks = check(path)["checks"]
    assert "completion" not in checks
    assert checks["pooling"]["judged"] is True
    assert checks["pooling"]["detail"].startswith(path)
    assert not any(call.path == "/v1/completions" for call in project.vllm.calls)


BROKEN = [
    ("/v1/embeddings", {**EMBEDDED, "data": []}, "without 1 results"),
    ("/v1/embeddings", {**EMBEDDED, "data": [{"index": 0, "embedding": []}]}, "without finite numbers"),
    ("/v1/embeddings", {**EMBEDDED, "data": [{"index": 0, "embedding": [float("nan")]}]}, "without finite numbers"),
    ("/v1/rerank", {**RANKED, "results": RANKED["results"][:1]}, "without 2 results"),
    ("/classify", {**CLASSIFIED, "usage": {}}, "without a number of prompt tokens"),
    ("/pooling", {"error": {"message": "no"}}, "without 1 results"),
]


@pytest.mark.parametrize(("path", "answer", "what"), BROKEN)
def test_implausible_answer_fails_the_check(
    path: str, answer: dict[str, Any], what: str, project: Project, check: Run
) -> None:
    project.pooled = {path: answer}
    with pytest.raises(CheckFailedError, match=what):
        check(path)


def test_endpoint_that_is_missing_fails_the_check(check: Run) -> None:
    with pytest.raises(CheckFailedError, match="404"):
        check("/v1/embeddings")


def test_task_of_a_plugin_is_not_judged(check: Run) -> None:
    pooling = check("")["checks"]["pooling"]
    assert (pooling["ok"], pooling["judged"]) == (True, False)
    assert "plugin" in pooling["detail"]


def test_benchmark_of_what_only_a_plugin_asks_measures_nothing() -> None:
    figures = ShortBenchmarkProvider().run({"pooled_at": ""}, None)["figures"]  # type: ignore[arg-type]
    assert (figures["state"], figures["requests"]) == ("not_measured", 0)
    assert "nothing was measured" in figures["notes"][0]
