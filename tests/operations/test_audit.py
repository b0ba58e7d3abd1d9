"""An audit as an operation: findings with their arithmetic, of files of the project alone."""

from pathlib import Path

import pytest

from bench_support.audited_files import grid
from bezel.operations.bench.audit import AuditArguments, audit
from bezel.operations.context import Context
from bezel_base.errors import UserError

# 16384 tokens x 31.9 requests/s x 2 x 12e9 FLOP is 12.5 PFLOP/s, more than any L4 has.
GRID = grid({16384: [31.9, 31.9, 31.9, 31.9]})


def test_an_impossible_figure_is_found_with_its_arithmetic(tmp_path: Path) -> None:
    (tmp_path / "grid.csv").write_text(GRID)
    report = audit(Context(tmp_path, {}), AuditArguments(files=("grid.csv",), machine="l4", model="gemma-4-12b"))
    assert (len(report.files_read), report.unreadable, report.exit_code) == (1, (), 0)
    assert any("FLOP" in each.arithmetic for each in report.findings)
    assert report.findings[0].repair in report.text().replace("\n   ", " ")


def test_a_label_that_the_catalogue_does_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "grid.csv").write_text(GRID)
    with pytest.raises(UserError, match="not in the catalogue"):
        audit(Context(tmp_path, {}), AuditArguments(files=("grid.csv",), machine="h999"))


def test_an_unreadable_file_is_named_and_the_others_are_audited(tmp_path: Path) -> None:
    (tmp_path / "grid.csv").write_text(GRID)
    (tmp_path / "odd.json").write_text("[1")
    report = audit(Context(tmp_path, {}), AuditArguments(files=("odd.json", "grid.csv"), machine="8 x l4"))
    assert (len(report.files_read), len(report.unreadable), report.exit_code) == (1, 1, 2)
