"""/v1/systemone and /v1/decisions: answers of a model that has a token for each label, and every refusal.

The texts are those of vLLM 0.33.0 with a tiny Gemma 4, to whose tokenizer "yes" was added as a token.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

pytestmark = pytest.mark.slow

CHOICE = {"type": "choice", "instructions": "which?", "criteria": {"a": "first", "b": None}}
PREDICATE = {"type": "predicate", "instructions": "is it?"}


def ask(client: Any, question: dict[str, Any] = CHOICE, **fields: Any) -> Any:
    """Send one question, with further fields, to /v1/systemone."""
    return client.post("/v1/systemone", json={"state": "the sky", "questions": {"q": question}} | fields)


def decide(client: Any, *questions: dict[str, Any], **fields: Any) -> Any:
    """Send questions to /v1/decisions."""
    body = {"model": "qat", "input": "the sky", "questions": [*questions]}
    return client.post("/v1/decisions", json=body | fields)


@pytest.fixture(scope="module")
def client(serve):
    """The client of a server of 0.33.0 whose model's tokenizer has the labels."""
    options = ("--served-model-name=qat", "--max-model-len=512")
    with serve("/mnt/models/qat", *options, release="0.33.0", speed=2000.0, accelerator="nvidia-l4") as one:
        yield one


def test_choice_is_answered_by_the_likeliest_option(client):
    answer = ask(client).json()
    assert list(answer) == ["id", "object", "created", "model", "answers", "usage", "diagnostics", "joint"]
    assert re.match("decision-.", answer["id"])
    assert (answer["object"], answer["model"], answer["joint"]) == ("structured_decision", "qat", None)
    choice, diagnosis = answer["answers"]["q"], answer["diagnostics"]["q"]
    assert set(choice["probabilities"]) == {"a", "b"}
    top = max(choice["probabilities"], key=choice["probabilities"].get)
    assert choice["choice"] == top
    assert choice["confidence"] == pytest.approx(choice["probabilities"][top] * diagnosis["label_mass"])
    assert sum(choice["probabilities"].values()) == pytest.approx(1)


def test_noul_and_score_are_answered_by_their_labels(client):
    questions = {"n": {"type": "noul"}, "s": {"type": "score", "criteria": ["low", "mid", "high"]}}
    answer = ask(client, questions=questions).json()
    noul, score = answer["answers"]["n"], answer["answers"]["s"]
    assert noul["noul"] == noul["probabilities"]["yes"] == pytest.approx(1 - noul["probabilities"]["no"])
    assert score["legend"] == {"0": "low", "1": "mid", "2": "high"}
    assert score["score"] == pytest.approx(score["probabilities"]["1"] + 2 * score["probabilities"]["2"])
    assert answer["usage"]["output_tokens"] == 2


def test_same_question_has_the_same_answer(client):
    assert ask(client).json()["answers"] == ask(client).json()["answers"]
    assert ask(client).json()["answers"] != ask(client, state="the sea").json()["answers"]


def test_decisions_are_answered_in_their_order(client):
    choice = {"type": "choice", "instructions": "w", "choices": [{"value": "a"}, {"value": True}]}
    score = {"type": "score", "instructions": "w", "levels": [{"label": "low"}, {"label": "high"}], "name": "n"}
    answer = decide(client, PREDICATE, choice, score).json()
    assert [(row["type"], row["name"]) for row in answer["answers"]] == [
        ("predicate", None),
        ("choice", None),
        ("score", "n"),
    ]
    first, second, third = answer["answers"]
    assert 0 < first["probability"] < 1
    assert [row["value"] for row in second["probabilities"]] == ["a", True]
    assert second["choice"] in ("a", True)
    assert third["score"] == pytest.approx(third["probabilities"][1]["probability"])
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["output_tokens"] == 3


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ({"type": "riddle"}, "unknown question type 'riddle'; supported: ['choice', 'noul', 'score']"),
        (
            {"type": "choice", "criteria": []},
            "question 'q': choice criteria must map option names to a description or null",
        ),
        ({**CHOICE, "more": 1, "also": 2}, "question 'q': unknown field(s) ['also', 'more']"),
        (
            {"type": "choice", "criteria": dict.fromkeys(map(str, range(27)))},
            "question 'q': at most 26 options for this model",
        ),
        (
            {"type": "noul", "criteria": {"yes": 1}},
            "question 'q': noul criteria must be an object with true and false",
        ),
        (
            {"type": "score", "criteria": ["low"]},
            "question 'q': score criteria must be an ordered list of levels",
        ),
        ({"type": "score", "criteria": [1, 1]}, "question 'q': duplicate option names"),
    ],
)
def test_question_that_cannot_be_asked_is_refused(client, question, text):
    error = ask(client, question)
    assert error.status_code == 400
    assert error.json()["error"] == {"message": text, "type": "BadRequestError", "param": None, "code": 400}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"questions": {}}, "questions: needs at least one question"),
        ({"questions": {"": CHOICE}}, "question ids must be non-empty"),
        ({"questions": dict.fromkeys(map(str, range(65)), CHOICE)}, "questions: at most 64 for this model"),
        ({"audio": ["x"], "videos": ["y"]}, "this model does not take audio, video inputs"),
        ({"joint": True}, "joint: this model reads each question on its own; joint reads need DiffusionGemma"),
        (
            {"chat_template_kwargs": {"enable_thinking": True}},
            "a read is the reply's first token, so thinking must be off",
        ),
        (
            {"chat_template_kwargs": {"chat_template": "{{ messages }}"}},
            "these chat options end the prompt differently, so the labels' tokens are unknown",
        ),
    ],
)
def test_call_that_the_model_cannot_read_is_refused(client, fields, text):
    error = ask(client, **fields)
    assert (error.status_code, error.json()["error"]["message"]) == (400, text)


def test_decision_of_more_choices_than_letters_is_refused(client):
    def choices(count: int) -> dict[str, Any]:
        return {"type": "choice", "instructions": "w", "choices": [{"value": str(number)} for number in range(count)]}

    assert decide(client, choices(26)).status_code == 200
    error = decide(client, choices(27)).json()["error"]
    assert error["message"] == "This model supports at most 26 choices per question"


@pytest.mark.parametrize(
    ("model", "release", "vocabulary", "status"),
    [
        ("Gemma4ForCausalLM", "0.33.0", ["yes", "no"], 200),
        ("Gemma4ForCausalLM", "0.33.0", ["no"], 501),
        ("Gemma4ForCausalLM", "0.32.0", ["yes", "no"], 501),
        ("Qwen3ForCausalLM", "0.32.0", ["yes", "no"], 200),
        ("Gemma3ForCausalLM", "0.33.0", ["yes", "no"], 501),
    ],
)
def test_model_answers_by_release_and_tokenizer(serve, mount, model, release, vocabulary, status):
    folder = mount / f"{model}-{release}-{len(vocabulary)}"
    folder.mkdir()
    config = json.loads((mount / "tiny" / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"architectures": [model]}))
    (folder / "model.safetensors").write_bytes(b"\0" * 400_000)
    labels = [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *vocabulary]
    pieces = {label: number for number, label in enumerate(labels)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": pieces}}))
    with serve(f"/mnt/models/{folder.name}", release=release, speed=2000.0) as client:
        answer = ask(client)
    assert answer.status_code == status
    if status == 200:
        assert ("joint" in answer.json()) == (release != "0.32.0")
    else:
        assert answer.json()["error"]["message"] == "The model does not support the structured decision API"


def test_server_without_log_probabilities_answers_none(serve):
    options = ("--max-model-len=512", "--logprobs-mode=raw_logits")
    with serve("/mnt/models/qat", *options, release="0.33.0", speed=2000.0, accelerator="nvidia-l4") as client:
        assert ask(client).status_code == 501


@pytest.mark.parametrize(("model", "status"), [("tiny", 501), ("qat", 404)])
def test_unknown_name_is_refused_where_the_model_answers(serve, model, status):
    with serve(f"/mnt/models/{model}", "--max-model-len=512", release="0.33.0", accelerator="nvidia-l4") as client:
        answers = ask(client, model="another"), decide(client, PREDICATE, model="another")
    assert [answer.status_code for answer in answers] == [status, status]
