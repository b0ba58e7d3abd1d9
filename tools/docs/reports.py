"""Make `docs/fidelity.md` and `docs/reliability.md` of the tables in `tests/results/`.

    .venv/bin/python -m tools.docs.reports [--check]

A table is a JSON file, written by the test or script that filled it:

- `title`, `document` (fidelity or reliability), `order` (its position), `about` (the compared things);
- `command`: the command that writes the table; `stamp`: the commit and day of a run, or null where a recipe checks it;
  `checked`: that recipe, by default `make test`;
- `provider`, in reliability: the Google provider behind which the rows were seen;
- `columns` and `rows`; in columns named compared, equal and explained the numbers have to add up;
- `notes`: each explained difference, as {what, why, evidence}.

With `--check` nothing is written, and the exit status is 1 where a document differs from its tables.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from bezel_base.text.markdown import table_row

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests" / "results"
INTRODUCTIONS = {
    "fidelity": """\
# Fidelity of the embedded cloud

localcloud compared with Google's provider, Google's discovery documents and a real vLLM. `make reports` writes this
document from the tables in `tests/results`; the tests and scripts named below the tables make them. Known differences
that remain are listed below their table, with the evidence.
""",
    "reliability": """\
# Faults and kills that were tried

What a deploy does when something fails, and when something is killed. Made of the tables in `tests/results` by
`make reports`; the tables are made by the tests and scripts that are named below them.

The Google provider decides how long a failing request is tried again: on Google the published one does, here the
stand-in, and each table says which it saw. Both send a request again that gets 429, 500, 502 or 503, with growing
pauses: a read for up to five and a half minutes (a policy for ten and a half), a change until the resource's limit.
Every resource of a stack has such a limit: 40 minutes for a service, 10 minutes for a change of another resource and 20
for a deletion, less with `--deadline`. On localcloud these pauses pass as quickly as its other waits. While nothing
happens, `make up` names every minute what it waits for, unless a terminal shows that. A connection that breaks fails
the operation with `EOF`; the next run reads what became of it.
""",
}


class WrongTableError(Exception):
    """A table is invalid; the text says which one and why."""


def main() -> int:
    """Write the documents, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    try:
        tables = {file.stem: json.loads(file.read_text()) for file in sorted(RESULTS.glob("*.json"))}
        texts = {document: document_text(document, tables) for document in INTRODUCTIONS}
    except WrongTableError as error:
        print(error)
        return 1
    stale = [name for name, text in texts.items() if not _file(name).exists() or _file(name).read_text() != text]
    for name in stale:
        if check:
            print(f"docs/{name}.md is not what tests/results says: make reports")
        else:
            _file(name).write_text(texts[name])
            print(f"wrote docs/{name}.md")
    return 1 if check and stale else 0


def _file(document: str) -> Path:
    return ROOT / "docs" / f"{document}.md"


def document_text(document: str, tables: dict[str, dict[str, Any]]) -> str:
    """One document.

    Args:
        document: A key of `INTRODUCTIONS`.
        tables: Every table by its file's name.

    Raises:
        WrongTableError: Tables of this document are invalid; the text lists every problem.
    """
    chosen = {name: table for name, table in tables.items() if table.get("document") == document}
    if problems := [f"{name}.json: {text}" for name, table in chosen.items() for text in problems_of(table)]:
        raise WrongTableError("\n".join(problems))
    ordered = sorted(chosen.values(), key=lambda table: (table["order"], table["title"]))
    return "\n".join([INTRODUCTIONS[document], *(_section(table) for table in ordered)])


def problems_of(table: dict[str, Any]) -> list[str]:
    """The inconsistencies of a table."""
    columns, rows, notes = table["columns"], table["rows"], table["notes"]
    problems = [
        f"row {row[:1]} has {len(row)} cells for {len(columns)} columns" for row in rows if len(row) != len(columns)
    ]
    if not rows:
        problems.append("no rows: nothing was tried")
    if {"compared", "equal", "explained"} <= set(columns):
        compared, equal, explained = (columns.index(name) for name in ("compared", "equal", "explained"))
        problems += [
            f"row {row[0]}: {row[compared]} compared, {row[equal]} equal, {row[explained]} explained: the rest is not"
            for row in rows
            if row[compared] != row[equal] + row[explained]
        ]
        if sum(row[explained] for row in rows) and not notes:
            problems.append("differences are said to be explained, and no note does")
    if table.get("document") == "reliability" and not table.get("provider"):
        problems.append("no provider: what was seen depends on how it retries and fails")
    problems += [f"the note on {note['what']!r} gives no evidence" for note in notes if not note.get("evidence")]
    return problems


def _section(table: dict[str, Any]) -> str:
    lines = [f"## {table['title']}", "", _wrap(table["about"]), ""]
    if table.get("provider"):
        lines += [_wrap(f"Google provider: {table['provider']}."), ""]
    lines += [table_row(table["columns"]), table_row(["---"] * len(table["columns"]))]
    lines += [table_row(row) for row in table["rows"]]
    lines += _totals(table)
    lines.append("")
    lines += [_wrap(f"- {note['what']}: {note['why']} ({note['evidence']})", "  ") for note in table["notes"]]
    if table["notes"]:
        lines.append("")
    made = f"Made by `{table['command']}`"
    stamp = table.get("stamp")
    origin = ", ".join(f"{key} {value}" for key, value in stamp.items()) if stamp else ""
    lines += [
        _wrap(f"{made}, {origin}." if origin else f"{made}; checked by `{table.get('checked', 'make test')}`."),
        "",
    ]
    return "\n".join(lines)


def _totals(table: dict[str, Any]) -> list[str]:
    rows = table["rows"]
    columns = list(zip(*rows, strict=True))
    counted = [all(isinstance(cell, int) and not isinstance(cell, bool) for cell in column) for column in columns]
    if not any(counted) or counted[0] or len(rows) < 2:
        return []
    return [
        table_row(["**all**", *(f"**{sum(c)}**" if n else "" for c, n in zip(columns[1:], counted[1:], strict=True))])
    ]


def _wrap(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
