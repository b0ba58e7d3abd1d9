"""Table of the report, for the page as for Markdown. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Rows of text below heads; every cell is untrusted. `title` names the table, `told` explains how to read it."""

    title: str
    head: list[str]
    rows: list[list[str]]
    told: str = ""


def is_number(text: str) -> bool:
    """Whether a cell reads as a figure, which is aligned to the right."""
    return text[:1].isdigit() or text[:2] in ("< ", "> ") or (text[:1] in "+-~" and text[1:2].isdigit())
