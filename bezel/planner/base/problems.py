"""Problems of a stack's settings: value, consequence and repair.

Owns the form of the text, and hides anything that looks like a secret. Leaves finding problems to the rules.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMESPACE = "bezel"
NOT_SET = "(not set)"
NOT_SHOWN = "(not shown: it may be a secret)"

_TOKEN_LIKE = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{8,}|AIza[A-Za-z0-9_-]{10,}|ya29\.|gh[opsu]_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|eyJ[A-Za-z0-9_-]{8,})|-----BEGIN"
)
_LONGEST_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that keeps a stack from working.

    Attributes:
        key: full key of the setting, e.g. `bezel:resources.memory`.
        value: its value as text, secrets hidden.
        consequence: what would happen.
        repair: the edit or command that repairs it.
    """

    key: str
    value: str
    consequence: str
    repair: str

    def __str__(self) -> str:
        return f"{self.key} = {self.value}\n   {self.consequence}\n   Repair: {self.repair}"


class PlanError(Exception):
    """The stack cannot work as it is set. `problems` holds every problem, not only the first."""

    def __init__(self, problems: tuple[Problem, ...], *, stack: str) -> None:
        super().__init__(problems, stack)
        self.problems = problems
        self.stack = stack

    def __str__(self) -> str:
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        blocks = [f"{number}. {problem}" for number, problem in enumerate(self.problems, start=1)]
        return "\n\n".join([f"Stack {self.stack} cannot be planned: {count}.", *blocks])


def setting(path: str) -> str:
    """The full key of a setting, e.g. `scaling.max_instances` -> `bezel:scaling.max_instances`."""
    return f"{NAMESPACE}:{path}"


def one_of(known: Iterable[str], near: str | None) -> str:
    """The repair of an unknown value: the known ones, the one that was probably meant first."""
    listed = ", ".join(known)
    return f"did you mean {near}? Known: {listed}." if near else f"choose one of {listed}."


def of_option(name: str, value: object, consequence: str, repair: str) -> Problem:
    """A problem of one vLLM option."""
    return Problem(setting(f"vllm.{name}"), shown(value), consequence, repair)


def shown(value: object) -> str:
    """A value as text for a message: short, and without anything that looks like a token or a key."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if _TOKEN_LIKE.search(text):
        return NOT_SHOWN
    if not text or not text.isprintable():
        text = json.dumps(text, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…"
