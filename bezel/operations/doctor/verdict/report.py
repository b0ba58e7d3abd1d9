"""Report of a verdict as Markdown, for a bug report: every request with both answers, without names. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bezel.operations.doctor.verdict import HEADING
from bezel.operations.doctor.verdict.ask import Judgement
from bezel.operations.doctor.verdict.pseudonyms import Pseudonyms
from bezel.operations.doctor.verdict.questions import Question

_INTRODUCTION = (
    "Made by `bezel doctor STACK --ask-google`. Nothing was created. Names of projects, accounts, buckets, services, "
    "labels and values of variables are replaced, the same name by the same word."
)


@dataclass(frozen=True)
class Asked:
    """A question with Google's answer and localcloud's; None where localcloud was not asked."""

    question: Question
    google: Judgement
    local: Judgement | None = None

    @property
    def differs(self) -> bool:
        """Whether one accepts what the other refuses."""
        return self.local is not None and self.google.status != 0 and self.google.accepts != self.local.accepts


def report_text(asked: Sequence[Asked], names: Pseudonyms, *, google: str, not_asked: str = "") -> str:
    """The whole report.

    Args:
        asked: The questions with their answers.
        names: The replacements.
        google: Who answered as Google: Google itself, or a localcloud that the environment names.
        not_asked: Why localcloud was not asked; "" where it was.
    """
    cells = [
        (each.question.title, status_text(each.google), status_text(each.local), _agreement(each)) for each in asked
    ]
    rows = [f"| {number} | {' | '.join(row)} |" for number, row in enumerate(cells, start=1)]
    lines = [HEADING, "", _INTRODUCTION, "", f"Asked: {google}."]
    if not_asked:
        lines.append(f"Localcloud was not asked: {names.text(not_asked)}")
    lines += ["", "| | request | Google | localcloud | |", "|---|---|---|---|---|", *rows]
    for number, each in enumerate(asked, start=1):
        lines += ["", f"## {number}. {each.question.title}", "", *_request(each.question, names)]
        for who, answer in (("Google", each.google), ("localcloud", each.local)):
            if answer is not None:
                lines += ["", f"{who}: {status_text(answer)}", "", *_json(answer.content or answer.message, names)]
    return "\n".join(lines) + "\n"


def _row(each: Asked) -> tuple[str, ...]:
    return each.question.title, status_text(each.google), status_text(each.local), _agreement(each)


def _request(question: Question, names: Pseudonyms) -> list[str]:
    query = "&".join(f"{name}={value}" for name, value in question.params.items())
    path = names.text(f"{question.path}{f'?{query}' if query else ''}")
    lines = [f"`{question.method} {question.api} {path}`"]
    if question.left_out:
        lines += ["", f"Left out: {', '.join(question.left_out)}."]
    return lines if question.body is None else [*lines, "", *_json(question.body, names)]


def _json(content: Mapping[str, Any] | str, names: Pseudonyms) -> list[str]:
    return ["```json", json.dumps(names.content(content), indent=1, ensure_ascii=False), "```"]


def status_text(answer: Judgement | None) -> str:
    """An answer in a few words; None where no one was asked."""
    if answer is None:
        return "not asked"
    if not answer.status:
        return "no answer"
    return "accepted" if answer.accepts else f"refused ({answer.status})"


def _agreement(each: Asked) -> str:
    if each.local is None or not each.google.status:
        return ""
    return "DIFFERS" if each.differs else "same"
