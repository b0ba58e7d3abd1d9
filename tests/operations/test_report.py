"""A report as an operation: what is to be known comes with it, and only new files of the project are written."""

from pathlib import Path

import pytest

from bench_support import results
from bezel.operations.bench.report import ReportArguments, report
from bezel.operations.context import Context
from bezel_base.errors import UserError
from bezel_bench.result.document import save

pytestmark = pytest.mark.slow  # charts


@pytest.fixture
def context(tmp_path: Path) -> Context:
    save(results.sweep(), tmp_path / "sweep.json")
    return Context(tmp_path, {}, show=lambda _line: None)


def test_a_report_has_its_tables_and_writes_the_named_files(context: Context) -> None:
    result = report(context, ReportArguments(results=("sweep.json",), out="page.html", markdown="tables.md"))
    assert result.nature == results.sweep().nature
    assert result.markdown.startswith("## ")
    assert result.written == ("page.html", "tables.md")
    assert (context.folder / "tables.md").read_text()
    assert (context.folder / "page.html").read_text().startswith("<!doctype html")
    with pytest.raises(UserError, match="overwritten"):
        report(context, ReportArguments(results=("sweep.json",), out="page.html"))


def test_without_a_name_nothing_is_written(context: Context) -> None:
    result = report(context, ReportArguments(results=("sweep.json",)))
    assert result.written == ()
    assert [file.name for file in context.folder.iterdir()] == ["sweep.json"]


def test_what_is_no_result_is_refused(context: Context) -> None:
    (context.folder / "other.json").write_text("{}")
    with pytest.raises(UserError, match="is not a result of `bezel bench`"):
        report(context, ReportArguments(results=("other.json",), out="page.html"))
    assert not (context.folder / "page.html").exists()
