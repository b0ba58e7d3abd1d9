"""Models of a project that vLLM pools with: options, the endpoint that is checked, what of their speed is judged."""

from datetime import date
from typing import Any

import pytest

from bezel.model_sources.rows import notes_of, row_of
from bezel.planner import PlanError, make_plan, plan_summary
from bezel_catalog.project_models.row import ModelRow, model_of
from tests.support.model_sources.described import SETTINGS, description_of
from tests.support.model_sources.tiny import BERT, LLAMA


def row_with(config: dict[str, Any], *, modules: bool = False) -> ModelRow:
    return row_of(description_of(config, pooling_module=modules), "ours", date(2026, 11, 1))


def plan(config: dict[str, Any], *, modules: bool = False, **settings: object) -> Any:
    model = model_of(row_with(config, modules=modules), "catalog.toml")
    return make_plan({**SETTINGS, **settings}, project="acme-llm", stack="dev", models={"ours": model})


CASES: list[tuple[dict[str, Any], str]] = [
    ({"architectures": ["BertModel"]}, "/v1/embeddings"),
    ({"architectures": ["BertForSequenceClassification"], "num_labels": 1}, "/v1/rerank"),
    ({"architectures": ["BertForSequenceClassification"], "num_labels": 3}, "/classify"),
    ({"architectures": ["BertForTokenClassification"]}, "/pooling"),
    ({"architectures": ["HF_ColBERT"]}, "/v1/rerank"),
    ({"architectures": ["BgeM3EmbeddingModel"]}, ""),
]


@pytest.mark.parametrize(("change", "endpoint"), CASES)
def test_endpoint_of_the_class_is_checked(change: dict[str, Any], endpoint: str) -> None:
    planned = plan({**BERT, **change})
    assert planned.smoke.pooled_at == endpoint
    assert planned.server.values["runner"] == "pooling"
    summary = plan_summary(planned)
    assert (endpoint or "only a plugin asks it") in summary
    assert "inputs/s" in summary
    assert "a million tokens in" in summary
    assert "tokens out" not in summary


def test_model_that_generates_has_no_runner_and_a_completion() -> None:
    planned = plan(LLAMA)
    assert planned.smoke.pooled_at is None
    assert "runner" not in planned.server.values
    assert "tokens/s" in plan_summary(planned)


def test_modules_of_sentence_transformers_make_a_decoder_pool() -> None:
    planned = plan(LLAMA, modules=True)
    assert planned.smoke.pooled_at == "/v1/embeddings"
    assert planned.server.values["max-num-batched-tokens"] == planned.server.values["max-model-len"] == 8192


@pytest.mark.parametrize("options", [{"runner": "pooling"}, {"convert": "classify"}])
def test_options_make_a_model_of_the_project_pool(options: dict[str, str]) -> None:
    planned = plan({**LLAMA, "num_labels": 4}, vllm=options)
    assert planned.smoke.pooled_at == ("/classify" if "convert" in options else "/v1/embeddings")


def test_model_of_the_catalogue_that_would_pool_is_refused() -> None:
    settings = {**SETTINGS, "model": "gemma-4-12b-it-qat-w4a16", "vllm": {"runner": "pooling"}}
    with pytest.raises(PlanError, match="computes embeddings and scores"):
        make_plan(settings, project="acme-llm", stack="dev")


def test_model_that_pools_has_no_latency_of_tokens_to_watch() -> None:
    watched = {"alerts": True, "metrics": True, "max_ttft_seconds": 2}
    assert plan(LLAMA, observability=watched).smoke.pooled_at is None
    with pytest.raises(PlanError, match="its answers have no tokens"):
        plan(BERT, observability=watched)


def test_prompts_of_the_check_may_fill_the_context() -> None:
    smoke = {"prompt_tokens": 512}
    assert plan(BERT, smoke=smoke).smoke.prompt_tokens == 512
    with pytest.raises(PlanError, match="above max-model-len=512"):
        plan(BERT, smoke={"prompt_tokens": 513})


def test_note_of_a_row_names_the_endpoints() -> None:
    notes = notes_of(description_of(BERT), row_with(BERT))
    assert any("task embed" in note and "/v1/embeddings" in note for note in notes)
    assert not any("chat template" in note for note in notes)
    generating = notes_of(description_of(LLAMA), row_with(LLAMA))
    assert not any("pools" in note for note in generating)


def test_row_keeps_the_module_that_pools() -> None:
    row = row_with(LLAMA, modules=True)
    assert row.pooling_module
    assert not row_with(LLAMA).pooling_module
