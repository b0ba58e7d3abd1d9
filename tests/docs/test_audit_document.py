"""docs/audit.md shows what the audit says of a table, and knows every fault by its number and name."""

import re
from pathlib import Path

import pytest

from bezel.cli.main import main
from bezel_bench.audit.findings import FINDINGS
from tests.support.docs.markdown import ROOT, after, between
from tools.bench import audit_made_up

DOCUMENT = ROOT / "docs" / "audit.md"
ROW = re.compile(r"^\| (\d+) ([^|]+?) \|", re.MULTILINE)


def test_what_is_said_of_the_table_is_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "v6e1-12b.csv"
    path.write_text(after(DOCUMENT, "a table"))
    assert main(["bench", "audit", str(path)]) == 0
    assert capsys.readouterr().out == after(DOCUMENT, "what is said of it"), "put what is printed into docs/audit.md"


def test_every_fault_is_explained_by_its_name() -> None:
    text = DOCUMENT.read_text().partition("## What is found")[2].partition("## In published sweeps")[0]
    assert {int(number): name for number, name in ROW.findall(text)} == FINDINGS


def test_the_tables_know_no_other_fault_and_every_one_was_tried() -> None:
    published = between(DOCUMENT, "made by: .venv/bin/python -m tools.bench.audit_published FOLDER --write")
    trials = between(DOCUMENT, "made by: .venv/bin/python -m tools.bench.audit_trials --write")
    assert {(int(number), name) for number, name in ROW.findall(published)} <= set(FINDINGS.items())
    assert {int(number): name for number, name in ROW.findall(trials)} == FINDINGS
    assert "\n0 of 1000 clean cases were accused" in trials


@pytest.mark.slow
def test_table_of_made_up_results_is_what_the_audit_finds_in_them() -> None:
    shown = between(DOCUMENT, "made by: .venv/bin/python -m tools.bench.audit_made_up --write")
    assert shown.strip() == audit_made_up.table().strip(), "run .venv/bin/python -m tools.bench.audit_made_up --write"
    assert {int(number): name for number, name in ROW.findall(shown)} == FINDINGS
    assert "| nothing |" not in shown


@pytest.mark.slow
def test_reader_can_audit_the_made_up_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit_made_up.main([str(tmp_path / "results")])
    assert capsys.readouterr().out.endswith(f"files written below {tmp_path / 'results'}\n")
    code = {kind: main(["bench", "audit", "--strict", *map(str, (tmp_path / "results" / kind).iterdir())])
            for kind in (audit_made_up.CLEAN, *map(str, FINDINGS))}  # fmt: skip
    assert code == {audit_made_up.CLEAN: 0, **dict.fromkeys(map(str, FINDINGS), 1)}


def test_every_table_with_measured_figures_has_a_command_that_repeats_it() -> None:
    """Of data outside of the repository, or of made-up data beside it."""
    for name in ("audit.md", "sweeps.md"):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        for table in re.findall(r"\n\n(?:<!-- [^>]*-->\n)?(\|[^\n]*\n\|[-| :]*\n(?:\|[^\n]*\n)+)", text):
            figures = len(re.findall(r"\d+(?:\.\d+)?%|\d+/\d+", table))
            if figures > 4:
                before = text[: text.index(table)] + table
                inside = before.rfind("<!-- made by: .venv/bin/python -m tools.bench") > before.rfind("<!-- end")
                assert inside, f"{name}: {table[:200]}"
