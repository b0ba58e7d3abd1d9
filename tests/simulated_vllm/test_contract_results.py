"""Every recording has a row, every row its tests, and the committed table says what is so now."""

from __future__ import annotations

import json
import re
from pathlib import Path

from simulated_vllm_support.contract_report import NOT_RUN, RESULTS, checks_of
from simulated_vllm_support.contract_table import MORE, ROWS
from simulated_vllm_support.samples import FIXTURES
from simulated_vllm_support.servers import CONFIGURATIONS

ROOT = Path(__file__).parents[2]
# Where the samples lie beside a checkout; elsewhere those count that are shipped.
TESTS = ROOT / "packages" / "simulated-vllm" / "tests"
BESIDE = ROOT.parent / "shared" / "vllm-samples"


def recordings(folder):
    return {
        str(file.relative_to(folder).with_suffix("")) for file in folder.rglob("*") if file.suffix in {".txt", ".json"}
    }


def test_every_recording_has_a_row():
    assert recordings(FIXTURES) - set(ROWS) - set(MORE) == set()
    if BESIDE.exists():
        assert recordings(BESIDE) == set(ROWS)


def test_every_row_is_compared_tested_or_explained():
    for name, row in ROWS.items():
        assert checks_of(row) or row.why, name
        assert row.configuration in {*CONFIGURATIONS, "starts", None}, name


def test_every_test_that_a_row_names_exists():
    source = "".join(file.read_text(encoding="utf-8") for file in TESTS.glob("test_*.py"))
    named = {test for row in ROWS.values() for test in checks_of(row)}
    assert named - set(re.findall(r"^def (test_\w+)", source, re.MULTILINE)) == set()


def test_the_committed_table_has_these_rows_and_every_test_passed():
    table = json.loads(RESULTS.read_text(encoding="utf-8"))
    *rows, later, bench = table["rows"]
    assert [row[0] for row in rows] == list(ROWS)
    for (name, count, simulated, real, _), row in zip(rows, ROWS.values(), strict=True):
        assert count == len(checks_of(row)), name
        assert simulated == (count or NOT_RUN), name
        assert real == (count if count and row.configuration else NOT_RUN), name
    assert later[1:4] == [len(MORE)] * 3
    assert bench[1:4] == [1, 1, NOT_RUN]
    assert table["stamp"]
