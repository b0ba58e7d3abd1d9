"""Every command beside models of every task that pools: their texts have inputs, and nothing of generated tokens.

The table is `MODELS` x `TEXTS`; a model that generates is the negative of each command.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bezel.cli.up_summary import summary
from bezel.engine.changes.figure_lines import fit_line, latency_names, rates_of
from bezel.model_sources.rows import row_of
from bezel.operations.advise.advise import AdviseArguments, advise
from bezel.operations.catalog.add_model import AddModelArguments, apply_add_model, plan_add_model
from bezel.operations.compare.compare import CompareArguments, compare
from bezel.operations.cost.cost import CostArguments, cost
from bezel.operations.explain.explain import ExplainArguments, explain
from bezel.operations.memory.memory import MemoryArguments, memory
from bezel.operations.metrics.metrics import MetricsArguments, metrics
from bezel.operations.plan.plan import PlanArguments, plan
from bezel.operations.query.query import QueryArguments, query
from bezel.operations.watch.page import WatchArguments, watch
from bezel.planner import make_plan
from bezel_base.terminal.layout import lay_out
from bezel_catalog.project_models.row import model_of
from tests.operations.test_metrics import TEXT as METRICS
from tests.support.model_sources.described import SETTINGS, description_of
from tests.support.model_sources.tiny import BERT, LLAMA, bert, llama
from tests.support.operations.deployed import Deployed, service_resource, state_of
from tests.support.operations.model_server import ModelServer
from tests.support.rest.fake_google import Answer

GENERATED = re.compile(
    r"\b(output|[tT][tT][fF][tT]|tpot|TPOT|itl|ITL|first tokens?|generated|M out|decod\w+|prompts? included)\b"
)
CACHED = re.compile(r"KV cache|sliding|prefix cache|preemption|at full context, as")
ENCODER = re.compile(r"(?i)no KV cache|encoder|roofline")
MODERN_BERT = {
    **BERT,
    "architectures": ["ModernBertModel"],
    "model_type": "modernbert",
    "global_attn_every_n_layers": 3,
    "local_attention": 32,
}
MODULES = {"modules.json": b'[{"type": "sentence_transformers.models.Pooling"}]'}
USAGE = {"prompt_tokens": 7, "total_tokens": 7}


@dataclass(frozen=True)
class Pools:
    """A model that pools: its files, the endpoint of its task, what that answers, and whether it keeps a cache."""

    files: dict[str, bytes]
    path: str
    answer: dict[str, Any]
    keeps_cache: bool = False
    line: str = ""


EMBEDDED = {"model": "m", "data": [{"index": 0, "embedding": [0.6, 0.8]}], "usage": USAGE}
RANKED = {
    "model": "m",
    "results": [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.25}],
    "usage": USAGE,
}
CLASSIFIED = {"model": "m", "data": [{"index": 0, "label": "good", "probs": [0.25, 0.75]}], "usage": USAGE}
LABELLED = {"model": "m", "data": [{"index": 0, "data": [[0.5, 0.5], [0.1, 0.9]]}], "usage": USAGE}
MODELS = {
    "encoder embeds": Pools(bert(), "/v1/embeddings", EMBEDDED, line="2 numbers: 0.6000 0.8000"),
    "decoder embeds": Pools(llama() | MODULES, "/v1/embeddings", EMBEDDED, keeps_cache=True, line="2 numbers: 0.6"),
    "cross-encoder ranks": Pools(
        bert(architectures=["BertForSequenceClassification"], num_labels=1), "/v1/rerank", RANKED, line="0.9000  two"
    ),
    "encoder classifies": Pools(
        bert(architectures=["BertForSequenceClassification"], num_labels=3), "/classify", CLASSIFIED, line="good  0.75"
    ),
    "encoder labels tokens": Pools(
        bert(architectures=["BertForTokenClassification"], num_labels=2), "/pooling", LABELLED, line="2 x 2 numbers"
    ),
}
FIGURES: dict[str, Any] = {
    "state": "ok",
    "requests": 4,
    "completed": 4,
    "concurrency": 2,
    "requests_per_second": 31.5,
    "input_tokens_per_second": 4032.0,
    "e2e_ms": {"p50": 12.0},
}


@pytest.fixture(params=MODELS)
def pools(request: pytest.FixtureRequest) -> Pools:
    return MODELS[request.param]


@pytest.fixture
def server(cloud: Deployed, pools: Pools) -> ModelServer:
    """A deployed stack of the model, whose server answers the endpoint of its task."""
    return deploy(cloud, pools.files, pools.path, {pools.path: pools.answer})


def deploy(cloud: Deployed, files: dict[str, bytes], path: str | None, answers: dict[str, Any]) -> ModelServer:
    fake = ModelServer(cloud, simulated=False)
    folder = cloud.folder / "files" / "ours"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    added = plan_add_model(cloud.context, AddModelArguments(model=str(folder)))
    apply_add_model(cloud.context, added)
    (cloud.folder / "Pulumi.dev.yaml").write_text(
        "config:\n  gcp:project: acme-llm\n  bezel:model: ours\n  bezel:accelerator: nvidia-l4\n"
        "  bezel:region: us-east4\n  bezel:weights: {path: ours}\n"
    )
    figures = plan(cloud.context, PlanArguments(stack="dev")).values
    health = {
        "urn": "urn:pulumi:dev::bezel::pulumi-python:dynamic/smoke:HealthCheck::vllm-health",
        "type": "pulumi-python:dynamic/smoke:HealthCheck",
        "custom": True,
        "id": "it",
        "outputs": {} if path is None else {"pooled_at": path},
    }
    outputs: dict[str, Any] = {"url": cloud.server.url, "model": "ours", "plan": figures}
    cloud.keep("dev", state_of(service_resource(), health, **outputs))
    fake.answers["/metrics"] = Answer(text=METRICS)
    fake.answers |= {where: Answer(json=content) for where, content in answers.items()}
    return fake


def up_text(cloud: Deployed) -> str:
    outputs = {
        "url": "https://llm.example",
        "model": "ours",
        "plan": plan(cloud.context, PlanArguments(stack="dev")).values,
        "smoke": {"figures": FIGURES},
    }
    return "\n".join(lay_out(summary("dev", outputs, behind="a server", now=datetime(2026, 11, 1, tzinfo=UTC))))


TEXTS: dict[str, Callable[[Deployed], str]] = {
    "plan": lambda cloud: plan(cloud.context, PlanArguments(stack="dev")).text(),
    "cost": lambda cloud: cost(cloud.context, CostArguments(stack="dev")).text(),
    "compare": lambda cloud: compare(cloud.context, CompareArguments(model="ours")).text(),
    "explain": lambda cloud: explain(cloud.context, ExplainArguments(subject="ours")).text(),
    "memory": lambda cloud: memory(cloud.context, MemoryArguments(stack="dev")).text(),
    "metrics": lambda cloud: metrics(cloud.context, MetricsArguments(stack="dev")).text(),
    "watch": lambda cloud: watch(cloud.context, WatchArguments(stack="dev", interval=1)).text(),
    "advise": lambda cloud: advise(cloud.context, AdviseArguments(stack="dev")).text(),
    "up": up_text,
}
# What a reader gets in place of the figures of generated tokens.
SAID = {
    "plan": ("inputs/s", "tokens/s", "a million tokens in", "asked at"),
    "cost": ("per million input tokens",),
    "compare": ("inputs/s", "tokens/s", "USD/M in"),
    "explain": ("answers at",),
    "metrics": ("prompt tokens", "finished requests", "queue time"),
    "watch": ("prompt tokens",),
    "advise": ("vLLM pools with it, and it answers no",),
    "up": ("31.5 requests/s", "4032.0 input tokens/s"),
}


@pytest.mark.parametrize("command", TEXTS)
def test_text_has_inputs_and_no_generated_tokens(
    command: str, cloud: Deployed, server: ModelServer, pools: Pools
) -> None:
    text = TEXTS[command](cloud)
    for part in SAID.get(command, ()):
        assert part in text
    notes = "\n".join(line for line in text.splitlines() if not ENCODER.search(line))
    assert GENERATED.findall(notes) == []
    if not pools.keeps_cache:
        assert CACHED.findall(notes) == []
    assert all(call.path in ("/metrics", "/v1/models") for call in server.calls)


@pytest.mark.parametrize("command", ["plan", "cost", "compare", "metrics", "watch"])
def test_text_of_a_model_that_generates_has_its_tokens(command: str, cloud: Deployed) -> None:
    deploy(cloud, llama(), None, {})
    text = TEXTS[command](cloud)
    assert GENERATED.search(text)
    assert "inputs/s" not in text


def test_query_asks_the_endpoint_of_the_task(cloud: Deployed, server: ModelServer, pools: Pools) -> None:
    documents = ("one", "two") if pools.path == "/v1/rerank" else ()
    result = query(cloud.context, QueryArguments(stack="dev", prompt="Who?", document=documents, stats=True))
    (call,) = server.calls
    assert call.path == pools.path
    assert call.json["model"] == "ours"
    assert pools.line in result.text()
    assert "tokens in" in result.text()
    assert GENERATED.findall(result.text()) == []
    assert (result.exit_code, result.pooled is not None) == (0, True)


def test_plan_and_state_name_the_endpoint(cloud: Deployed, server: ModelServer, pools: Pools) -> None:
    del server
    figures = plan(cloud.context, PlanArguments(stack="dev")).values
    assert figures["pooled_at"] == pools.path
    assert figures["estimate"]["inputs_per_second"][0] > 0
    assert "usd_per_million_output_tokens" not in figures["cost"]
    assert ("kv_cache_gib" in figures["fit"]) == pools.keeps_cache


def test_lines_of_outputs_have_rates_of_requests() -> None:
    assert rates_of(FIGURES) == ("31.5 requests/s", "4032.0 input tokens/s")
    assert latency_names(FIGURES) == ("e2e_ms",)
    generated = {**FIGURES, "output_tokens_per_second": 9.0}
    assert rates_of(generated) == ("9.0 output tokens/s",)
    assert latency_names(generated) == ("ttft_ms", "tpot_ms")


@pytest.mark.parametrize(("config", "has_cache"), [(BERT, False), (MODERN_BERT, False), (LLAMA, True)])
def test_fit_of_an_encoder_has_no_cache(config: dict[str, Any], *, has_cache: bool) -> None:
    model = model_of(row_of(description_of(config), "ours", datetime(2026, 11, 1, tzinfo=UTC).date()), "catalog.toml")
    planned = make_plan({**SETTINGS}, project="acme-llm", stack="dev", models={"ours": model})
    line = fit_line(planned.fit.as_output())
    assert line is not None
    assert ("GiB for the KV cache" in line) == has_cache
    assert replace(planned.smoke, pooled_at=None).sequence_tokens > planned.smoke.prompt_tokens
