"""Pooling as read, beside what real vLLMs choose: runner, conversion, task and endpoints.

`pooling/RELEASE.json` is written by `PYTHON tools/vllm/architectures/record_pooling.py FILE` with a vLLM for CPUs.
"""

import json
from pathlib import Path

import pytest

from bezel_catalog.architectures.pooling import read_pooling
from bezel_catalog.architectures.registry import known_architecture, recorded_releases

RECORDED = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))["architectures"]
    for path in sorted(Path(__file__).with_name("pooling").glob("*.json"))
}
KINDS = {"embedding", "classification", "token-classification", "reward", "late-interaction"}
SCORING = {"/score", "/v1/score", "/rerank", "/v1/rerank", "/v2/rerank"}


def pooling_of(name, release="0.33.0", **others):
    """How a release pools with a model of that architecture."""
    options = {key: others.pop(key) for key in ("has_modules", "runner", "convert", "task") if key in others}
    return read_pooling({"architectures": [name], **others}, release, **options)


def test_every_recorded_release_has_its_table():
    assert set(RECORDED) == set(recorded_releases())
    assert all(len(rows) > 60 for rows in RECORDED.values())


@pytest.mark.parametrize("release", RECORDED)
@pytest.mark.parametrize("files", ["plain", "modules"])
def test_runner_and_conversion_are_those_of_vllm(release, files):
    differing = {}
    for name, row in RECORDED[release].items():
        pooling = pooling_of(name, release, has_modules=files == "modules")
        read = ["generate", "none"] if pooling is None else ["pooling", pooling.convert]
        if read != row[files]:
            differing[name] = (read, row[files])
    assert differing == {}


@pytest.mark.parametrize("release", RECORDED)
def test_every_kind_of_pooling_has_an_endpoint(release):
    seen = set()
    for name in RECORDED[release]:
        architecture = known_architecture(name, release)
        pooling = pooling_of(name, release, has_modules=True)
        assert "/pooling" in pooling.endpoints
        assert pooling.checked_endpoint or pooling.task in ("embed&token_classify", "plugin"), name
        seen |= KINDS & set(architecture.kinds)
    assert seen == KINDS


CASES = [
    ("BertModel", {}, "embed", {"/v1/embeddings", "/v2/embed"} | SCORING, "/v1/embeddings"),
    ("Qwen3Model", {}, "embed", {"/v1/embeddings", "/v2/embed"} | SCORING, "/v1/embeddings"),
    ("BertForSequenceClassification", {"num_labels": 1}, "classify", {"/classify"} | SCORING, "/v1/rerank"),
    ("BertForSequenceClassification", {"id2label": {"0": "no"}}, "classify", {"/classify"} | SCORING, "/v1/rerank"),
    ("BertForSequenceClassification", {"num_labels": 3}, "classify", {"/classify"}, "/classify"),
    ("BertForSequenceClassification", {}, "classify", {"/classify"}, "/classify"),
    ("LlamaForSequenceClassification", {"num_labels": 2}, "classify", {"/classify"}, "/classify"),
    ("BertForTokenClassification", {}, "token_classify", set(), "/pooling"),
    ("Qwen2ForRewardModel", {}, "token_classify", set(), "/pooling"),
    ("HF_ColBERT", {}, "token_embed", {"/v1/embeddings"} | SCORING, "/v1/embeddings"),
    ("BgeM3EmbeddingModel", {}, "embed&token_classify", set(), None),
    ("BgeM3EmbeddingModel", {"task": "embed"}, "embed", {"/v1/embeddings", "/v2/embed"} | SCORING, "/v1/embeddings"),
    ("Terratorch", {}, "plugin", set(), None),
    ("LlamaForCausalLM", {"runner": "pooling"}, "embed", {"/v1/embeddings", "/v2/embed"} | SCORING, "/v1/embeddings"),
    ("LlamaForCausalLM", {"convert": "classify"}, "classify", {"/classify"}, "/classify"),
]


@pytest.mark.parametrize(("name", "settings", "task", "endpoints", "checked"), CASES)
def test_endpoints_follow_the_task_of_the_pooler(name, settings, task, endpoints, checked):
    pooling = pooling_of(name, **settings)
    assert pooling.task == task
    assert set(pooling.endpoints) == endpoints | {"/pooling"}
    assert pooling.checked_endpoint == checked


def test_older_release_embeds_no_tokens_at_the_embeddings_endpoint():
    pooling = pooling_of("HF_ColBERT", "0.32.0")
    assert set(pooling.endpoints) == SCORING | {"/pooling"}
    assert pooling.checked_endpoint == "/v1/rerank"


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "Gemma4ForConditionalGeneration", "LlamaModel"])
def test_model_that_generates_has_no_pooling(name):
    assert pooling_of(name) is None


def test_runner_of_the_options_wins():
    assert pooling_of("BertModel", runner="generate") is None
    assert pooling_of("LlamaForCausalLM", has_modules=True).convert == "embed"
