"""docs/audit.md shows what the audit says of a table, and knows every fault by its number and name."""

import re
from pathlib import Path

import pytest

from bezel.bench.audit.findings import FINDINGS
from bezel.cli.main import main
from tests.support.docs.markdown import ROOT, after, between

DOCUMENT = ROOT / "docs" / "audit.md"
ROW = re.compile(r"^\| (\d+) ([^|]+?) \|", re.MULTILINE)


def test_what_is_said_of_the_table_is_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
