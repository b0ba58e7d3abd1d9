"""Markdown report of tables, for a pull request.

Texts from a server or a file are put into `code` elements with every special character as a character reference, so
they contain no markup, no mention and no link, also for a reader that takes folded content for plain HTML and never
looks for Markdown in it. Bezel's own words are written unchanged.
"""

import re
from collections.abc import Iterator

from bezel_base.text.markdown import code_element, references
from bezel_bench.report.charts.html import plain
from bezel_bench.report.figure import Table, is_number
from bezel_bench.report.format import shortened
from bezel_bench.report.report import Report

# Words and figures of Bezel's own making; anything else in a cell may have come from outside.
_TAME = re.compile(r"([A-Za-z0-9 ,.;:/%~·+()<=*'↓→-]|(?<=[A-Za-z0-9])_(?=[A-Za-z0-9]))*")
_CELL = 200
# Characters of Bezel's own words that are marks of Markdown or of HTML.
_MARKS = re.compile(r"[~<>*]")


def as_markdown(report: Report) -> str:
    """Return the report's text."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"## {_tame(report.title)}"
    yield ""
    yield f"Kind: **{_tame(report.nature)}**. Checks: {_tame(report.checks_summary)}"
    for warning in report.warnings:
        yield ""
        yield f"> **{_tame(warning)}**"
    yield from _table(report.summary, "###")
    if report.findings:
        yield ""
        yield from (f"- {_tame(text)}" for text in report.findings)
    for table in report.trouble:
        yield from _table(table, "###")
    if report.side_by_side:
        yield from _table(report.side_by_side, "###")
    for figure in report.figures:
        yield from _folded(figure.table, f"{figure.title} ({figure.kind})", " ".join(figure.caption))
    if report.missing:
        yield ""
        yield f"Not drawn: {_tame(' '.join(report.missing))}"
    yield from _folded(report.cells, report.cells.title, report.cells.note)
    for table in report.manifests:
        yield from _folded(table, "What was run", table.title)


def _folded(table: Table, title: str, note: str) -> Iterator[str]:
    yield ""
    yield f"<details><summary>{_tame(title)}</summary>"
    yield ""
    yield _tame(note)
    yield from _table(table, "")
    yield ""
    yield "</details>"


def _table(table: Table, heading: str) -> Iterator[str]:
    yield ""
    if heading:
        yield f"{heading} {_tame(table.title)}"
        yield ""
        if table.note:
            yield _tame(table.note)
            yield ""
    yield f"| {' | '.join(_cell(name) for name in table.head)} |"
    right = [all(is_number(row[place]) for row in table.rows) for place in range(len(table.head))]
    yield f"| {' | '.join('---:' if aligned else '---' for aligned in right)} |"
    for row in table.rows:
        yield f"| {' | '.join(_cell(text) for text in row)} |"


def _cell(text: str) -> str:
    return _tame(shortened(text, _CELL))


def _tame(text: str) -> str:
    """Return `text` unchanged if it holds nothing that Markdown could interpret, else as code."""
    shown = " ".join(plain(text).split())
    if _TAME.fullmatch(shown) and "<" not in shown.replace("< ", "") and "://" not in shown and "www." not in shown:
        return references(shown, _MARKS)
    return code_element(shown, len(shown))
