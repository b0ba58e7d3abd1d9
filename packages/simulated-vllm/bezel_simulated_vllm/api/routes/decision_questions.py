"""Questions of /v1/systemone: what is asked, by the criteria of the body, and what is answered for probabilities.

Source: entrypoints/generate/structured_decisions/question_types.py of vLLM 0.32.0; of 0.33.0
entrypoints/openai/decisions/question_types.py, which asks and answers the same.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api.errors import api_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_LETTERS = tuple(string.ascii_uppercase)
MOST_QUESTIONS = 64
"""The most questions of one call."""
MOST_CHOICES = len(_LETTERS)
"""The most choices of a question of /v1/decisions: each has a letter."""
_FIELDS = {"type", "instructions", "criteria"}


@dataclass(frozen=True)
class Option:
    """One option of a question, with what it means where the client says it."""

    name: str
    description: str | None = None


@dataclass(frozen=True)
class Question:
    """A question as the model reads it.

    Attributes:
        name: the client's own name of the question.
        kind: the name of its type, e.g. "choice".
        labels: the tokens that answer it, one for each option.
    """

    name: str
    kind: str
    instructions: str
    options: tuple[Option, ...]
    labels: tuple[str, ...]

    @property
    def prompt(self) -> str:
        """The question with its options, after what it is about."""
        line, reply = _KINDS[self.kind].line, _KINDS[self.kind].reply
        asked = [f"Question: {self.instructions}"] if self.instructions else []
        return "\n".join([*asked, *map(line, self.labels, self.options), reply])

    def answer(self, probabilities: Sequence[float], mass: float) -> dict[str, Any]:
        """Return the answer of /v1/systemone.

        Args:
            probabilities: of each option, 1 in sum.
            mass: the probability of all labels among all tokens.
        """
        return {"type": self.kind, **_KINDS[self.kind].answer(self, probabilities, mass)}


def letter_question(name: str, instructions: str, options: Sequence[Option]) -> Question:
    """Return a question whose options have letters, at most MOST_CHOICES of them."""
    return Question(name, "choice", instructions, tuple(options), _LETTERS[: len(options)])


def make_questions(specs: Mapping[str, Mapping[str, Any]]) -> list[Question]:
    """Return the questions of a body.

    Args:
        specs: by their names; the recorded model has validated their types.

    Raises:
        ApiError: there are none or too many, or one cannot be asked.
    """
    if not specs:
        raise api_error("no-questions")
    if len(specs) > MOST_QUESTIONS:
        raise api_error("many-questions", most=MOST_QUESTIONS)
    return [_make_question(name, spec) for name, spec in specs.items()]


def _make_question(name: str, spec: Mapping[str, Any]) -> Question:
    if unknown := sorted(spec.keys() - _FIELDS):
        raise api_error("question-fields", name=name, fields=unknown)
    if not name:
        raise api_error("question-unnamed")
    kind = _KINDS.get(spec["type"])
    if kind is None:
        raise api_error("question-type", kind=spec["type"], supported=sorted(_KINDS))
    options = kind.options(name, spec.get("criteria"))
    if len({option.name for option in options}) != len(options):
        raise api_error("question-names", name=name)
    if len(options) > len(kind.labels):
        raise api_error("question-options", name=name, most=len(kind.labels))
    text = spec.get("instructions", "")
    instructions = "" if text is None else str(text)
    return Question(name, spec["type"], instructions, tuple(options), kind.labels[: len(options)])


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def _choice_options(name: str, criteria: Any) -> list[Option]:
    if not isinstance(criteria, dict) or not criteria:
        raise api_error("choice-criteria", name=name)
    return [Option(option, _text_or_none(text)) for option, text in criteria.items()]


def _noul_options(name: str, criteria: Any) -> list[Option]:
    if criteria is not None and (not isinstance(criteria, dict) or not criteria.keys() <= {"true", "false"}):
        raise api_error("noul-criteria", name=name)
    meanings = criteria or {}
    return [Option(word, _text_or_none(meanings.get(value))) for word, value in (("yes", "true"), ("no", "false"))]


def _score_options(name: str, criteria: Any) -> list[Option]:
    if not isinstance(criteria, list) or len(criteria) < 2:
        raise api_error("score-criteria", name=name)
    return [Option(str(level)) for level in criteria]


def _lettered_line(label: str, option: Option) -> str:
    return f"{label}: {option.name} - {option.description}" if option.description else f"{label}: {option.name}"


def _yes_or_no_line(label: str, option: Option) -> str:
    return f"{label}: {option.description}" if option.description else label


def _choice_answer(question: Question, probabilities: Sequence[float], mass: float) -> dict[str, Any]:
    names = [option.name for option in question.options]
    top = max(probabilities)
    return {
        "choice": names[probabilities.index(top)],
        "probabilities": dict(zip(names, probabilities, strict=True)),
        "confidence": top * mass,
    }


def _noul_answer(_: Question, probabilities: Sequence[float], mass: float) -> dict[str, Any]:
    yes, no = probabilities
    return {"noul": yes, "probabilities": {"yes": yes, "no": no}, "confidence": max(yes, no) * mass}


def _score_answer(question: Question, probabilities: Sequence[float], mass: float) -> dict[str, Any]:
    return {
        "score": expected_level(probabilities),
        "legend": {str(level): option.name for level, option in enumerate(question.options)},
        "probabilities": {str(level): probability for level, probability in enumerate(probabilities)},
        "confidence": max(probabilities) * mass,
    }


def expected_level(probabilities: Sequence[float]) -> float:
    """Return the mean of the levels 0, 1, … by their probabilities."""
    return sum(level * probability for level, probability in enumerate(probabilities))


@dataclass(frozen=True)
class _Kind:
    """A type of question: its labels, its words in the prompt, its options by the criteria, and its answer."""

    labels: tuple[str, ...]
    reply: str
    options: Callable[[str, Any], list[Option]]
    answer: Callable[[Question, Sequence[float], float], dict[str, Any]]
    line: Callable[[str, Option], str] = _lettered_line


_KINDS = {
    "choice": _Kind(_LETTERS, "Answer with the letter of one option only.", _choice_options, _choice_answer),
    "noul": _Kind(("yes", "no"), "Answer with yes or no only.", _noul_options, _noul_answer, line=_yes_or_no_line),
    "score": _Kind(tuple(string.digits), "Answer with the number of one level only.", _score_options, _score_answer),
}
LABELS = frozenset(label for kind in _KINDS.values() for label in kind.labels)
"""Every label; a model answers only if its tokenizer has a token for each."""
