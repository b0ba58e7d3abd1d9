"""Errors that a user repairs, and the one way they are shown: as text, and as JSON.

Owns the parts of a problem (key, value, consequence, repair) and their layout; no part of it shows a credential
(bezel_base.text.redaction). Leaves out finding problems. The command line, the program, the dynamic providers and the
policy packs all show these texts.
"""

from __future__ import annotations

import json
import re

from bezel_base.text.printable import encodable

NOT_SET = "(not set)"
NOT_SHOWN = "(not shown: it may be a secret)"
ENCRYPTED = "(encrypted)"

_LONGEST_SHOWN = 160
_MARGIN = 4096
"""Characters behind those that are shown in which the end of a credential is looked for."""
_LONGEST_VALUE = 2000  # a list of an owner's labels, of zones or of shares of traffic is of use only as a whole


_LAST_PART = re.compile(r"[\s.:/\[\]=]+")


def redact(text: str) -> str:
    """A text without credentials: see bezel_base.text.redaction."""
    from bezel_base.text import redaction  # late: its patterns take longer to compile than a command without errors

    return redaction.redact(text)


class Problem:
    """One thing that the user has to repair. Equal and hashable by its parts.

    Attributes:
        key: the setting, option, file or resource, e.g. `bezel:resources.memory` or `--repeats`.
        value: its value as text of at most 2000 characters, secrets hidden; None where a value would say nothing.
        consequence: what would happen, as a sentence.
        repair: the edit or command that repairs it, as a sentence.
    """

    __slots__ = ("consequence", "key", "repair", "value")

    def __init__(self, key: str, value: object, consequence: str, repair: str) -> None:
        self.key = redact(key)
        self.value = None if value is None else _value_of(key, value)
        self.consequence = redact(consequence)
        self.repair = redact(repair)

    def as_json(self) -> dict[str, str | None]:
        """The parts by their names."""
        return {"key": self.key, "value": self.value, "consequence": self.consequence, "repair": self.repair}

    @property
    def head(self) -> str:
        """The key, with the value if it is shown."""
        return self.key if self.value is None else f"{self.key} = {self.value}"

    def __str__(self) -> str:
        return f"{self.head}\n   {self.consequence}\n   Repair: {self.repair}"

    def __repr__(self) -> str:
        return f"Problem({self.key!r}, {self.value!r}, {self.consequence!r}, {self.repair!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self.as_json() == other.as_json()

    def __hash__(self) -> int:
        return hash((self.key, self.value, self.consequence, self.repair))


class UserError(Exception):
    """One or several problems that the user has to repair; shown without a traceback.

    Attributes:
        problems: every problem, not only the first. A text stands for a failure without a value of the user's, such
            as the response of a server.
        title: what cannot be done because of them, without a full stop, e.g. `Stack l4-qat cannot be planned`.
        exit_code: the exit code of a command that ends with this error.
    """

    exit_code = 1

    def __init__(self, *problems: Problem | str, title: str = "") -> None:
        problems = tuple(redact(each) if isinstance(each, str) else each for each in problems)
        super().__init__(*problems)
        self.problems = problems
        self.title = redact(title)

    def as_json(self) -> dict[str, object]:
        """The title and the problems; a problem that is only a text has the key `text` alone."""
        problems = [{"text": problem} if isinstance(problem, str) else problem.as_json() for problem in self.problems]
        return {"title": self.title, "problems": problems}

    def __str__(self) -> str:
        if len(self.problems) == 1 and not self.title:
            return str(self.problems[0])
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        blocks = [f"{number}. {problem}" for number, problem in enumerate(self.problems, start=1)]
        return "\n\n".join([f"{self.title}: {count}." if self.title else f"{count}.", *blocks])


class WrongValueError(UserError):
    """Values that a user gave and that nothing can be done with, whatever the moment: arguments of a command."""

    exit_code = 2


def one_line(error: Exception) -> str:
    """An error as one line, for notes and progress; the repair of each problem follows it."""
    problems = error.problems if isinstance(error, UserError) else (str(error),)
    return " ".join(
        f"{problem.head}: {problem.consequence} Repair: {problem.repair}" if isinstance(problem, Problem) else problem
        for problem in problems
    )


def caused_by(error: Exception, key: str, consequence: str, repair: str) -> Problem:
    """A problem that follows from an error, in whose own words it ends; the error's own repair comes first.

    Args:
        error: the cause.
        key: the setting, option, file or resource that is concerned.
        consequence: what follows, without a full stop.
        repair: the repair of an error that has none of its own.
    """
    cause = error.problems[0] if isinstance(error, UserError) else str(error)
    if isinstance(cause, Problem):
        return Problem(key, None, f"{consequence}: {cause.head}: {cause.consequence}", cause.repair)
    return Problem(key, None, f"{consequence}: {error}", repair)


def format_value(value: object, longest: int = _LONGEST_SHOWN) -> str:
    """A value as text for a message: short, printable, and without anything that looks like a token or a key."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = text[: longest + _MARGIN]
    if redact(text) != text:
        return NOT_SHOWN
    if not text or not text.isprintable():
        text = encodable(json.dumps(text, ensure_ascii=False))
    return text if len(text) <= longest else text[:longest] + "…"


def _value_of(key: str, value: object) -> str:
    """The value of a problem; one under the name of a secret is not shown."""
    from bezel_base.credentials.names import holds_secret

    text = format_value(value, _LONGEST_VALUE)
    name = _LAST_PART.split(key)[-1]
    is_own = text in (NOT_SET, NOT_SHOWN, ENCRYPTED)
    return NOT_SHOWN if not is_own and isinstance(value, str) and holds_secret(name, value) else text
