"""Markdown report of tables, for a pull request.

Texts from a server or a file are put into `code` elements with every special character as a character reference, so
they contain no markup, no mention and no link, also for a reader that takes folded content for plain HTML and never
looks for Markdown in it. Bezel's own words are written unchanged.
"""

from collections.abc import Iterator

from bezel_base.text.markdown import plain_or_code, table_row
from bezel_bench.report.figure import Table, is_number
from bezel_bench.report.format import shorten
from bezel_bench.report.report import Report

_CELL = 200


def as_markdown(report: Report) -> str:
    """Return the report's text."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"## {plain_or_code(report.title)}"
    yield ""
    yield f"Kind: **{plain_or_code(report.nature)}**. Checks: {plain_or_code(report.checks_summary)}"
    for warning in report.warnings:
        yield ""
        yield f"> **{plain_or_code(warning)}**"
    yield from _table(report.summary, "###")
    if report.findings:
        yield ""
        yield from (f"- {plain_or_code(text)}" for text in report.findings)
    for table in report.trouble:
        yield from _table(table, "###")
    if report.side_by_side:
        yield from _table(report.side_by_side, "###")
    for figure in report.figures:
        yield from _fold(figure.table, f"{figure.title} ({figure.kind})", " ".join(figure.caption))
    if report.missing:
        yield ""
        yield f"Not drawn: {plain_or_code(' '.join(report.missing))}"
    yield from _fold(report.cells, report.cells.title, report.cells.note)
    for table in report.manifests:
        yield from _fold(table, "What was run", table.title)


def _fold(table: Table, title: str, note: str) -> Iterator[str]:
    yield ""
    yield f"<details><summary>{plain_or_code(title)}</summary>"
    yield ""
    yield plain_or_code(note)
    yield from _table(table, "")
    yield ""
    yield "</details>"


def _table(table: Table, heading: str) -> Iterator[str]:
    yield ""
    if heading:
        yield f"{heading} {plain_or_code(table.title)}"
        yield ""
        if table.note:
            yield plain_or_code(table.note)
            yield ""
    yield table_row(_cell(name) for name in table.head)
    right = [all(is_number(cells[place]) for cells in table.rows) for place in range(len(table.head))]
    yield table_row("---:" if aligned else "---" for aligned in right)
    for cells in table.rows:
        yield table_row(_cell(text) for text in cells)


def _cell(text: str) -> str:
    return plain_or_code(shorten(text, _CELL))
