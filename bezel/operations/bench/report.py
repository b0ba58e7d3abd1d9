"""Report of results: its warnings, findings and tables, and as files of the project where they are named."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Reach
from bezel.operations.bench.files import FileName, existing, new
from bezel.operations.bench.texts import option_text
from bezel.operations.context import Context
from bezel.operations.results import Result
from bezel_base.atomic_write import write_whole
from bezel_base.terminal.blocks import Line
from bezel_bench.report.report import report_of, summary_of
from bezel_bench.result.document import load

_MOST_RESULTS = 20


class ReportArguments(Arguments):
    """Which results, and what is written."""

    results: Annotated[tuple[FileName, ...], Reach.INSIDE] = Field(
        min_length=1,
        max_length=_MOST_RESULTS,
        description=option_text("report", "results", "files below the project's folder"),
    )
    out: Annotated[FileName | None, Reach.INSIDE] = Field(
        None, description=option_text("report", "--out", "a new FILE.html below the project's folder")
    )
    markdown: Annotated[FileName | None, Reach.INSIDE] = Field(
        None, description=option_text("report", "--markdown", "a new FILE.md below the project's folder")
    )


class BenchReport(Result):
    """A report."""

    title: str
    nature: str = Field(description="measured, simulated, or both; simulated: no figure describes hardware")
    warnings: tuple[str, ...] = Field(description="what is to be known before any figure")
    findings: tuple[str, ...]
    markdown: str = Field(description="the tables as Markdown, cut after 60,000 characters")
    written: tuple[str, ...] = Field(description="files that were written")

    def text(self) -> str:
        """The tables, and what was written."""
        return "".join([self.markdown, *(f"written: {file}\n" for file in self.written)])

    def page(self) -> Iterator[Line]:
        """The same; Markdown stays as it is."""
        yield Line(self.text().rstrip("\n"), is_verbatim=True)


def report(context: Context, arguments: ReportArguments) -> BenchReport:
    """Make the report of results.

    Raises:
        UserError: A result cannot be read, or a file may not be written.
    """
    from bezel_bench.report.markdown import as_markdown

    folder = context.folder
    files = existing(folder, arguments.results, "RESULT.json")
    page = new(folder, arguments.out, "--out", ".html") if arguments.out else None
    tables = new(folder, arguments.markdown, "--markdown", ".md") if arguments.markdown else None
    made = report_of([load(file) for file in files])
    markdown = as_markdown(made)
    if page is not None:
        from bezel_bench.report.page import as_page

        _write(page, as_page(made))
    if tables is not None:
        _write(tables, markdown)
    written = tuple(str(file.relative_to(folder.resolve())) for file in (page, tables) if file is not None)
    return BenchReport(**summary_of(made, markdown, written))


def _write(file: Path, text: str) -> None:
    write_whole(file, text.encode())
