"""Generated sections of documents: between `<!-- made by: COMMAND -->` and `<!-- end -->`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bezel_base.text.markdown import table_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT = Path(__file__).resolve().parents[2]
END = "<!-- end -->"


def put(document: Path, tool: str, text: str) -> None:
    """Put `text` into the section of a tool, e.g. "tools.docs.planner.stacks"; leave the rest unchanged.

    Raises:
        SystemExit: The document has no such section, or it has no end: nothing was written.
    """
    mark = f"<!-- made by: .venv/bin/python -m {tool} -->\n"
    before, begun, rest = document.read_text(encoding="utf-8").partition(mark)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise SystemExit(f"{document.name} has no section between {mark.strip()} and {END}: put both lines in.")
    document.write_text(before + mark + text + END + after, encoding="utf-8")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; cells are Markdown already."""
    return "".join(f"{table_row(cells)}\n" for cells in (head, ("---",) * len(head), *rows))
