"""Handlers of POST /v1/systemone and /v1/decisions: questions that a model answers by the probability of a label.

Which models answer is a matter of the release (`label_reads.can_read`); every other one is refused. Source:
entrypoints/generate/structured_decisions/ and, since 0.33.0, entrypoints/openai/decisions/.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api import streams
from bezel_simulated_vllm.api.bodies import Body
from bezel_simulated_vllm.api.errors import api_error
from bezel_simulated_vllm.api.routes.decision_questions import (
    MOST_CHOICES,
    MOST_QUESTIONS,
    Option,
    Question,
    expected_level,
    letter_question,
    make_questions,
)
from bezel_simulated_vllm.api.routes.label_reads import can_read, reads_of, start_reads
from bezel_simulated_vllm.release import has_change

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive

    from bezel_simulated_vllm.api.generation import Call
    from bezel_simulated_vllm.api.routes.label_reads import Read
    from bezel_simulated_vllm.configuration.settings import EngineSettings
    from bezel_simulated_vllm.scheduling.channel import Piece
    from bezel_simulated_vllm.scheduling.engine import Engine


class SystemOneBody(Body):
    """POST /v1/systemone."""

    recorded = "system_one"
    model: str | None = None
    state: Any = None
    questions: dict[str, dict[str, Any]]
    instructions: str | None = None
    images: list[str] | None = None
    audio: list[str] | None = None
    videos: list[str] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    joint: bool = False
    cache_salt: str | None = None
    request_id: str | None = None

    def check_support(self, settings: EngineSettings) -> None:
        """Refuse a call to a model without such a reading."""
        if not can_read(settings):
            raise api_error("no-system-one")


class DecisionBody(Body):
    """POST /v1/decisions."""

    recorded = "decisions"
    model: str
    input: str | list[dict[str, Any]]
    questions: list[dict[str, Any]]
    joint: bool = False
    cache_salt: str | None = None

    def check_support(self, settings: EngineSettings) -> None:
        """Refuse a call to a model without such a reading."""
        if not can_read(settings):
            raise api_error("no-decisions")


async def answer_system_one(engine: Engine, body: SystemOneBody, receive: Receive) -> Response:
    """Return the answers to questions by their names.

    Raises:
        ApiError: a question is refused, or the queue is full.
    """
    questions = make_questions(body.questions)
    _check_media(engine, body)
    call = _start(engine, body, questions, _json_text(body.state))

    def answers(_: list[Piece]) -> dict[str, object]:
        reads = reads_of(call, questions)
        by_name = list(zip(questions, reads, strict=True))
        answer = {
            "id": _id(call, body.request_id),
            "object": "structured_decision",
            "created": call.created,
            "model": call.model,
            "answers": {question.name: question.answer(read.probabilities, read.mass) for question, read in by_name},
            "usage": {
                "input_tokens": sum(read.input_tokens for read in reads),
                "output_tokens": sum(read.output_tokens for read in reads),
            },
            "diagnostics": {
                question.name: {"label_mass": read.mass, "argmax_is_label": read.is_label_likeliest}
                for question, read in by_name
            },
        }
        return answer | ({"joint": None} if has_change("decisions") else {})

    return await streams.respond(call, receive, None, answers)


async def answer_decisions(engine: Engine, body: DecisionBody, receive: Receive) -> Response:
    """Return the answers to questions in their order.

    Raises:
        ApiError: a question is refused, or the queue is full.
    """
    if len(body.questions) > MOST_QUESTIONS:
        raise api_error("many-questions", most=MOST_QUESTIONS)
    questions = [_letter_question(number, question) for number, question in enumerate(body.questions)]
    call = _start(engine, body, questions, _input_text(body.input))

    def answers(_: list[Piece]) -> dict[str, object]:
        reads = reads_of(call, questions)
        inputs, outputs = sum(read.input_tokens for read in reads), sum(read.output_tokens for read in reads)
        return {
            "model": call.model,
            "answers": [_decision(*pair) for pair in zip(body.questions, reads, strict=True)],
            "usage": {
                "input_tokens": inputs,
                "input_tokens_details": {
                    "cached_tokens": sum(read.cached_tokens for read in reads),
                    "cache_write_tokens": sum(read.cache_write_tokens for read in reads),
                },
                "output_tokens": outputs,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": inputs + outputs,
            },
        }

    return await streams.respond(call, receive, None, answers)


def _start(engine: Engine, body: SystemOneBody | DecisionBody, questions: list[Question], subject: str) -> Call:
    """Queue the reads of a call; its model is the one that is served under the client's name."""
    if body.joint and has_change("decisions"):
        raise api_error("joint-reads")
    names = engine.settings.served_names
    model = names[0] if not body.model or body.model in names else body.model
    if isinstance(body, DecisionBody):
        return start_reads(engine, questions, subject, model=model, cache_salt=body.cache_salt)
    return start_reads(
        engine,
        questions,
        subject,
        model=model,
        instructions=body.instructions,
        images=body.images or (),
        cache_salt=body.cache_salt,
        template=body.chat_template_kwargs,
    )


def _check_media(engine: Engine, body: SystemOneBody) -> None:
    """Refuse media that the model does not read: it reads images at most."""
    media = {"audio": body.audio, "image": body.images, "video": body.videos}
    readable = {"image"} if engine.settings.model.multimodal else set()
    if refused := sorted(kind for kind, items in media.items() if items and kind not in readable):
        raise api_error("decision-media", kinds=", ".join(refused))


def _id(call: Call, request_id: str | None) -> str:
    return f"decision-{request_id or call.id.partition('-')[2]}"


def _json_text(state: Any) -> str:
    return state if isinstance(state, str) else json.dumps(state, ensure_ascii=False)


def _input_text(subject: str | list[dict[str, Any]]) -> str:
    if isinstance(subject, str):
        return subject
    contents = [message["content"] for message in subject]
    return "\n\n".join(
        content if isinstance(content, str) else "\n".join(part["text"] for part in content) for content in contents
    )


def _letter_question(number: int, question: dict[str, Any]) -> Question:
    """Return a question of /v1/decisions as the model reads it: its options have letters.

    Raises:
        ApiError: it has more options than there are letters.
    """
    if question["type"] == "predicate":
        options = [Option("false"), Option("true")]
    elif question["type"] == "choice":
        options = [
            Option(json.dumps(choice["value"], ensure_ascii=False), choice.get("description"))
            for choice in question["choices"]
        ]
    else:
        options = [Option(level["label"], level.get("description")) for level in question["levels"]]
    if len(options) > MOST_CHOICES:
        raise api_error("many-choices", most=MOST_CHOICES)
    return letter_question(str(number), question["instructions"], options)


def _decision(question: dict[str, Any], read: Read) -> dict[str, Any]:
    """Return the answer of /v1/decisions to one question."""
    kind, values = question["type"], read.probabilities
    answer = {"type": kind, "name": question.get("name")}
    if kind == "predicate":
        return answer | {"probability": values[1]}
    top = max(values)
    if kind == "choice":
        choices = [choice["value"] for choice in question["choices"]]
        rows = [{"value": value, "probability": of} for value, of in zip(choices, values, strict=True)]
        return answer | {"choice": choices[values.index(top)], "probabilities": rows, "confidence": top * read.mass}
    rows = [
        {"value": value, "label": level["label"], "probability": of}
        for value, (level, of) in enumerate(zip(question["levels"], values, strict=True))
    ]
    return answer | {"score": expected_level(values), "probabilities": rows, "confidence": top * read.mass}
