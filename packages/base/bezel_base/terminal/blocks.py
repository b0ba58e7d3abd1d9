"""Blocks that a text for people is made of: a line, named values, a table, a grid. A layout fits them to a width. Pure.

Owns the words that are coloured as verdicts. Leaves out how a block becomes lines (`layout`), and where they are shown
(`screen`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Role(Enum):
    """Meaning of a text that a terminal shows by colour or bold; the value holds the parameters of its SGR sequence."""

    HEADING = "1"
    GOOD = "32"
    WARNING = "33"
    BAD = "1;31"
    FAINT = "2"


_VERDICTS = {
    Role.GOOD: ("ok", "ready", "done", "passed", "active"),
    Role.WARNING: (
        *("warning", "unknown", "suspect", "not judged", "no callers", "degraded", "deploying", "waiting", "off-hours"),
        *("simulated", "stopped", "ended", "note"),
    ),
    Role.BAD: ("problem", "failed", "failing", "refused", "unhealthy", "wrong", "short", "error", "no"),
}
_ROLES = {word: role for role, phrases in _VERDICTS.items() for word in phrases}
_LABEL = re.compile(r" *(?P<label>[A-Za-z]+(?: [a-z]+)?):(?= |$)")


@dataclass(frozen=True)
class Marked:
    """A text with its meaning, as a cell of a table or a value of fields."""

    text: str
    role: Role | None

    def __str__(self) -> str:
        return self.text


def mark(text: str) -> Marked:
    """Mark a text that begins with a verdict, e.g. `ok`, `no callers in 24 h`, `12 SHORT`."""
    parts = [part.rstrip(",:") for part in text.lower().split()]
    phrases = (" ".join(parts[:2]), *parts[:1], *parts[-1:])
    return Marked(text, next((_ROLES[phrase] for phrase in phrases if phrase in _ROLES), None))


def label_role(line: str) -> tuple[int, Role] | None:
    """Where the label of a line ends that is a verdict, e.g. `warning:`, and its meaning; None for any other line."""
    match = _LABEL.match(line)
    role = _ROLES.get(match["label"].lower()) if match else None
    return None if match is None or role is None else (match.end("label"), role)


@dataclass(frozen=True)
class Line:
    """A line. Too long, it continues below, indented by two more columns.

    Attributes:
        text: Its text; the spaces in front are its indent. A command between backticks is never broken.
        role: Meaning of the whole line; without one, a label that is a verdict has its own.
        is_verbatim: Whether it is one piece that is copied: it is never broken.
    """

    text: str = ""
    role: Role | None = None
    is_verbatim: bool = False


@dataclass(frozen=True)
class NamedValues:
    """Names with their values.

    Attributes:
        rows: A name and its value, and a note behind it where a third one is there; a row whose value is None is left
            out.
        indent: Columns in front.
    """

    rows: Sequence[tuple[object, ...]]
    indent: int = 2


@dataclass(frozen=True)
class Table:
    """Rows below heads.

    Attributes:
        heads: The names of the columns.
        rows: The cells, as many in each row; a line between rows is the title of those below it.
        indent: Columns in front.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[object] | Line]
    indent: int = 0


@dataclass(frozen=True)
class Grid:
    """Figures of two dimensions: the columns that do not fit continue below, behind the names of the rows again.

    Attributes:
        heads: The names of the columns; the first one is that of the names of the rows.
        rows: The name of a row, then its figures.
    """

    heads: Sequence[object]
    rows: Sequence[Sequence[object]]


Block = Line | NamedValues | Table | Grid
