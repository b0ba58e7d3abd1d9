"""A load in stages in a report: one row of figures a stage, as on the terminal, and none of the whole."""

import pytest

from bench_support.rendered import text_of
from bench_support.results import line, staged_result
from bezel_bench.commands.render.tables import run_blocks
from bezel_bench.report.export import as_csv
from bezel_bench.report.format import number
from bezel_bench.report.markdown import as_markdown
from bezel_bench.report.page import as_page
from bezel_bench.report.report import report_of

THROUGHPUT = "output_tokens_per_second"


@pytest.mark.parametrize(("of", "unit"), [("users", "users"), ("rate", "requests/s")])
def test_each_stage_has_a_row_with_its_own_figures(of: str, unit: str) -> None:
    """Also the third stage, whose level is that of the first."""
    made = staged_result(of=of)
    report = report_of([made])
    (whole,) = made.cells
    rows = report.cells.rows
    assert [row[0].split(",")[0] for row in rows] == [f"stage 1: 4 {unit}", f"stage 2: 16 {unit}", f"stage 3: 4 {unit}"]
    shown = [row[report.cells.head.index(f"{THROUGHPUT}, tokens/s")].split(" ")[0] for row in rows]
    assert shown == [number(stage.metrics[THROUGHPUT].value) for stage in whole.stages]
    assert len(set(shown)) == 3
    assert [row[-1] for row in rows] == ["0 of 40", "3 of 40", "0 of 40"]


@pytest.mark.parametrize("write", [as_page, as_markdown])
def test_page_and_tables_show_what_the_terminal_does(write) -> None:  # type: ignore[no-untyped-def]
    made = staged_result()
    text, terminal = write(report_of([made])), text_of(run_blocks(made))
    for stage in (1, 2, 3):
        assert f"stage {stage}: " in terminal
        assert f"stage {stage}: " in text


def test_ok_load_in_stages_is_not_called_unreliable() -> None:
    report = report_of([staged_result()])
    assert report.warnings == []
    assert report.summary.rows[4][1].startswith("stage 2: 16 users"), "the tiles are of the highest stage"
    assert any("3 of 120" in value for row in report.summary.rows for value in row)


def test_failures_of_a_load_in_stages_count_once() -> None:
    (table,) = [table for table in report_of([staged_result()]).trouble if table.title == "Failed requests by kind"]
    assert [row[:2] for row in table.rows] == [["timeout", "3"]]
    assert [part.failures for part in staged_result().cells[0].parts()] == [{}, {"timeout": 3}, {}]


def test_checks_of_a_load_in_stages_count_once() -> None:
    made = staged_result()
    passed = sum(check.state == "passed" for check in made.cells[0].checks)
    assert f"{passed} passed" in report_of([made]).checks_summary


def test_load_of_one_level_has_no_stage() -> None:
    report = report_of([line("12B on L4", "nvidia-l4", 1.0)])
    assert not any("stage" in value for row in report.cells.rows for value in row)
    assert "stage" not in as_csv(line("12B on L4", "nvidia-l4", 1.0)).splitlines()[1]
