"""Operations about results: their schemas and summaries fit what the benchmark writes."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from bench_support.cells import document
from bench_support.results import line
from bench_support.staged_cells import BOTH, run_of
from bezel.cli.main import main
from bezel.operations.bench.summary import summary_of
from bezel.operations.schemas import schemas_of
from bezel_bench.load.plan import Staged
from bezel_bench.result.document import save


def test_report_as_json_is_what_the_operations_schema_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(line("12B on L4", "nvidia-l4", 1.0), tmp_path / "result.json")
    assert main(["bench", "report", str(tmp_path / "result.json"), "--json"]) == 0
    validator = Draft202012Validator(schemas_of("bench_report")["result"])
    report = json.loads(capsys.readouterr().out)
    validator.validate(report)
    assert not validator.is_valid({**report, "title": 1})


@pytest.mark.slow
@BOTH
def test_summary_of_operations_has_each_stage(pattern: Staged, tmp_path: Path) -> None:
    run = run_of(pattern)
    summary = summary_of(document(run), tmp_path / "st.json", tmp_path)
    assert [cell.id for cell in summary.cells] == [f"c100-u4-stage{number}" for number in (1, 2, 3)]
    assert [cell.requests for cell in summary.cells] == [stage.requests for stage in run.cell.stages]
    for cell, stage in zip(summary.cells, run.cell.stages, strict=True):
        for name in ("requests_per_second", "ttft_p50", "tpot_p50", "e2e_p99"):
            assert cell.figures[name] == pytest.approx(stage.metrics[name].value, rel=1e-4)
    assert sum(cell.usd or 0 for cell in summary.cells) == pytest.approx(run.cell.cost_usd, rel=0.05)
