"""Embeddings and reranking: requests, tokens and latencies are counted; nothing that only generation has is made up."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench_support.http_server import Answer, Call, Server
from bench_support.http_server import serving as serving_http
from bench_support.tokenizer import TokenServer, counting
from bench_support.wire import WireRequest, document, send, serving
from bezel_bench.commands.main import main
from bezel_bench.load.plan import Closed, Load, PromptPlan, Stop, Target
from bezel_bench.load.plan_rules import LoadError, check_load
from bezel_bench.prompts.prompts import make_prompts
from bezel_bench.result.document import load as read_result
from bezel_bench.server.http_probe import asker

EMBEDDED = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.1, 0.2]}],
    "usage": {"prompt_tokens": 64, "total_tokens": 64},
}
CLASSIFIED = {"object": "list", "data": [{"index": 0, "label": "A", "probs": [0.1, 0.9]}], "usage": EMBEDDED["usage"]}
POOLED = {"object": "list", "data": [{"index": 0, "object": "pooling", "data": [[0.1]]}], "usage": EMBEDDED["usage"]}
ANSWERS = {"/v1/embeddings": EMBEDDED, "/classify": CLASSIFIED, "/pooling": POOLED}
RANKED = {"id": "r", "results": [{"index": 0, "relevance_score": 0.5}], "usage": {"total_tokens": 90}}


def target(endpoint: str, url: str = "http://127.0.0.1:1") -> Target:
    return Target(url, "m", endpoint=endpoint, public=True)  # type: ignore[arg-type]


def answering(body: Any) -> Any:
    async def answer(_: WireRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(document(json.dumps(body).encode()))

    return answer


class Computing:
    """Requests that ask for no token."""

    turns = 1

    def body(self, index: int, turn: int = 0) -> Any:
        from bezel_bench.load.plan import Body

        return Body(json.dumps({"input": f"{index} {turn}"}).encode(), 0)


@pytest.mark.parametrize(("body", "tokens"), [(EMBEDDED, 64), (RANKED, 90)])
def test_a_computed_response_is_a_success_with_its_tokens_and_no_first_one(body: Any, tokens: int) -> None:
    with serving(answering(body)) as wire:
        (sample,) = send(wire.url, 1, Closed(1), bodies=Computing()).samples
    assert (sample.failure, sample.prompt_tokens, sample.output_tokens) == ("", tokens, 0)
    assert (sample.first, len(sample.chunks)) == (0, 0)
    assert sample.sent < sample.last <= sample.done


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (EMBEDDED | {"usage": {}}, "bad_usage"),
        ({"object": "list", "data": []}, "bad_usage"),
        ({"object": "list"}, "no_token"),
        ({"error": {"message": "too long"}}, "error_in_body"),
    ],
)
def test_a_response_without_what_was_asked_for_is_a_failure(body: Any, failure: str) -> None:
    with serving(answering(body)) as wire:
        (sample,) = send(wire.url, 1, Closed(1), bodies=Computing()).samples
    assert sample.failure == failure


def test_a_chat_that_answers_with_embeddings_is_a_failure() -> None:
    with serving(answering(EMBEDDED)) as wire:
        (sample,) = send(wire.url, 1, Closed(1)).samples
    assert sample.failure == "no_token"


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with counting(TokenServer(before=(1,))) as server:
        yield server


def test_a_request_for_an_embedding_has_its_text_of_the_requested_length(server: TokenServer) -> None:
    plan = PromptPlan(input_tokens=64, run="r")
    where = target("embeddings", server.url)
    made = make_prompts(
        Load(where, Closed(1), Stop(requests=9), plan, extra_body={"dimensions": 8}), asker(where, dict)
    )
    body = made.bodies.body(3)
    fields = json.loads(body.data)
    assert fields.keys() == {"model", "dimensions", "input"}
    assert body.asked_tokens == 0
    assert len(server.count({"prompt": fields["input"]})) == 64
    assert made.notes == ()


def test_ranking_request_has_a_query_and_documents_of_the_length(server: TokenServer) -> None:
    plan = PromptPlan(input_tokens=32, documents=3, run="r")
    where = target("rerank", server.url)
    made = make_prompts(Load(where, Closed(1), Stop(requests=9), plan), asker(where, dict))
    documents = [text for index in range(4) for text in json.loads(made.bodies.body(index).data)["documents"]]
    assert len(set(documents)) == 12
    assert {len(server.count({"prompt": text})) for text in documents} == {32}
    assert json.loads(made.bodies.body(0).data)["query"]


@pytest.mark.parametrize(
    ("endpoint", "plan", "message"),
    [
        ("embeddings", PromptPlan("multi_turn", turns=3), "leave out --turns"),
        ("embeddings", PromptPlan("lengths", output_lengths="normal:5,1"), "--output-lengths"),
        ("embeddings", PromptPlan(images=1), "only the chat endpoint takes images"),
        ("embeddings", PromptPlan(documents=2), "only --endpoint rerank ranks documents"),
        ("rerank", PromptPlan(documents=0), "--documents = 0"),
        ("rerank", PromptPlan("shared_prefix", prefix_tokens=8), "generated texts of one length"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(endpoint: str, plan: PromptPlan, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        check_load(Load(target(endpoint), Closed(1), Stop(requests=9), plan))


@pytest.fixture(scope="module")
def pooling() -> Iterator[Server]:
    def answer(call: Call) -> Answer | None:
        if call.path == "/v1/models":
            return Answer(json={"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": 4096}]})
        return Answer(json=ANSWERS[call.path]) if call.path in ANSWERS else None

    with serving_http() as server:
        server.routes[:] = [answer]
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("endpoint", ["embeddings", "classify", "pooling"])
def test_a_run_has_rates_and_latencies_and_says_what_it_cannot_have(
    endpoint: str, pooling: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"
    arguments = ["--url", pooling.url, "--public", "--endpoint", endpoint, "--users", "2", "--requests", "60"]
    main(["run", *arguments, "--out", str(out)])
    (cell,) = read_result(out).cells
    assert (cell.output_tokens, cell.failures) == (None, {})
    assert (cell.value("requests_per_second") or 0) > 0
    assert (cell.value("e2e_p50") or 0) > 0
    assert cell.value("prompt_tokens_mean") == 64
    for name in ("ttft_p50", "tpot_p50", "itl_p50", "output_tokens_per_second", "output_tokens_mean"):
        assert (cell.metrics[name].value, cell.metrics[name].why) == (None, "the endpoint generates no token")
    assert [check.name for check in cell.checks if check.state == "failed"] == []
    assert "Traceback" not in capsys.readouterr().err
    main(["report", str(out), "--markdown", str(tmp_path / "report.md")])
    report = (tmp_path / "report.md").read_text()
    assert "input_tokens_per_second, tokens/s" in report
    assert "tpot" not in report
