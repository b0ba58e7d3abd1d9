"""Part of a report about what judges: how it differs from what judged before, as JSON and as lines.

`judge` of a preview's or a deployment's document. Leaves out how it is determined (`base`, `gate`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bezel.engine.changes.report import ChangeReport
from bezel.gitops.judge.changes import JudgeChange, digest, lines_of

KEY = "judge"
FIRST_DEPLOY = "first_deploy"
"""Key of a preview's part: whether nothing was deployed yet, so that the deploy asks for no approval of the changes."""
_LONGEST = 500  # lines in a document
_SHOWN = 20  # lines of a report
_WIDEST = 240  # characters of a line


def document(statement: str, changes: Sequence[JudgeChange] = (), key: str = "", **more: object) -> dict[str, object]:
    """The part of a document.

    Args:
        statement: What the changes mean, or why there are none, as a sentence without its full stop.
        changes: The changes.
        key: The digest that approves them; by default that of the changes, "" without any.
        more: Further values.
    """
    lines = [_printable(line) for line in lines_of(changes)]
    kept = lines if len(lines) <= _LONGEST else [*lines[:_LONGEST], f"{len(lines) - _LONGEST} more changes"]
    return {"said": statement, "changes": kept, "digest": key or (digest(changes) if changes else ""), **more}


def _printable(line: str) -> str:
    """A line, whose names are anybody's, of bounded length and without characters that cannot be shown."""
    shown = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in line[:_WIDEST])
    return shown if len(line) <= _WIDEST else f"{shown}…"


def add(report: ChangeReport, part: Mapping[str, Any] | None) -> None:
    """Add what judges to a report, as a part of its document and as the first lines of its text."""
    report.more[KEY] = part
    report.opening = tuple(text_lines(report.more))


def text_lines(report: Mapping[str, Any]) -> list[str]:
    """The lines of a report that come first; none where its document says nothing about what judges."""
    part = report.get(KEY)
    if not isinstance(part, Mapping):
        return []
    changes = part["changes"]
    rest = len(changes) - _SHOWN
    return [
        f"judge: {part['said']}{':' if changes else ''}",
        *(f"  {line}" for line in changes[:_SHOWN]),
        *([f"  and {rest} more, in the JSON document"] if rest > 0 else []),
    ]
