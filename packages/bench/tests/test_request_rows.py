"""Requests as rows of CSV and JSON: the figures of the result follow from them, and nothing unknown is a number."""

from __future__ import annotations

import csv
import json
import statistics
from typing import TYPE_CHECKING

import pytest

from bench_support.cells import document, record
from bench_support.runs import BEGAN, MS, SECOND, closed_loop, columns, failed_sample, good_sample, measurement
from bezel_bench.commands.main import main
from bezel_bench.metrics.request_rows import COLUMNS, GAPS, request_rows
from bezel_bench.result.document import save
from bezel_bench.result.sample_file import samples_path, write_samples

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def result_file(tmp_path: Path) -> Path:
    """A result of 40 requests of 4 users, with its samples."""
    out = tmp_path / "r.json"
    measured = record(closed_loop(4, 10))
    assert measured.samples is not None
    file = write_samples(samples_path(out), {measured.cell.id: (measured.samples, measured.began)})
    save(document(measured).model_copy(update={"samples": file}), out)
    return out


def test_figures_of_a_result_follow_from_its_rows(result_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(result_file), "--format", "requests"]) == 0
    rows = [*csv.DictReader(capsys.readouterr().out.splitlines())]
    assert [*rows[0]] == [*COLUMNS]
    assert len(rows) == 40
    metrics = json.loads(result_file.read_text())["cells"][0]["metrics"]
    counted = [row for row in rows if row["counted"] == "True"]
    assert len(counted) == metrics["ttft_p50"]["n"] < 40
    for name in ("ttft", "tpot", "e2e"):
        mean = statistics.fmean(float(row[f"{name}_ms"]) for row in counted)
        assert mean == pytest.approx(metrics[f"{name}_mean"]["value"])


def test_lines_of_json_have_the_same_values_and_the_gaps(result_file: Path, tmp_path: Path) -> None:
    for name in ("requests", "requests-jsonl"):
        assert main(["export", str(result_file), "--format", name, "--out", str(tmp_path / name)]) == 0
    table = [*csv.DictReader((tmp_path / "requests").read_text().splitlines())]
    lines = [json.loads(line) for line in (tmp_path / "requests-jsonl").read_text().splitlines()]
    assert [*lines[0]] == [*COLUMNS, GAPS]
    assert [{name: "" if one[name] is None else str(one[name]) for name in COLUMNS} for one in lines] == table
    assert lines[3]["gaps_ms"] == [10.0] * 10


def test_rows_have_no_value_for_the_unknown_and_hold_the_wait() -> None:
    late = good_sample(1, BEGAN + 300 * MS, planned=BEGAN + 100 * MS)
    late.cached_tokens = -1
    run = measurement([failed_sample(0, BEGAN, "timeout", after=SECOND), late])
    cell = record(closed_loop(4, 10)).cell
    opened = cell.model_copy(update={"pattern": "poisson", "load": None})
    failed, waited = request_rows(opened, columns(run), BEGAN)
    assert (failed["failure"], failed["counted"], failed["status"]) == ("timeout", False, None)
    assert [failed[name] for name in ("ttft_ms", "e2e_ms", "first_s", "output_tokens", "group")] == [None] * 5
    assert (waited["wait_ms"], waited["ttft_ms"], waited["cached_tokens"]) == (200.0, 300.0, None)
    _, of_users = request_rows(cell, columns(run), BEGAN)
    assert of_users["ttft_ms"] == 100.0


def test_a_result_without_samples_has_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(document(record(closed_loop(4, 10))), tmp_path / "r.json")
    assert main(["export", str(tmp_path / "r.json"), "--format", "requests"]) == 1
    assert "measure again with --out" in capsys.readouterr().err
