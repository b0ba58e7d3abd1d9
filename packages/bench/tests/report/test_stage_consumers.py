"""A load in stages outside of its own document: every reader has the figures of each stage, and of no two together."""

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from bench_support.cells import document, plan, record
from bench_support.rendered import text_of
from bench_support.staged import TOKENS, staged_run
from bench_support.staged_cells import BOTH, RATES, USERS, run_of
from bezel_bench.audit.runner import audit_files
from bezel_bench.cell.cell import MeasuredCell
from bezel_bench.commands.main import main
from bezel_bench.commands.render.tables import run_blocks
from bezel_bench.load.plan import Stage, Staged
from bezel_bench.report.export import as_csv, as_vllm, of_stage
from bezel_bench.report.open_metrics import as_open_metrics
from bezel_bench.result.document import Cell, Result, save
from bezel_bench.result.sample_file import samples_path, write_samples


def write_result(pattern: Staged, folder: Path) -> tuple[Path, MeasuredCell]:
    measured, path = run_of(pattern), folder / "st.json"
    samples = write_samples(samples_path(path), {measured.cell.id: (measured.samples, measured.began)})
    save(document(measured).model_copy(update={"samples": samples}), path)
    return path, measured


def export(path: Path, *arguments: str) -> tuple[int, Path]:
    out = path.with_name("out")
    return main(["export", str(path), "--format", "vllm", "--out", str(out), *arguments]), out


@pytest.mark.slow
@BOTH
def test_vllms_format_has_one_stage_and_refuses_several(
    pattern: Staged, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, measured = write_result(pattern, tmp_path)
    for arguments in ((), ("--cell", measured.cell.id)):
        assert export(path, *arguments)[0] == 1
        error = capsys.readouterr().err
        assert "its load has 3 stages, and this format has the figures of one level." in error
        assert "choose a stage: c100-u4-stage1, c100-u4-stage2, c100-u4-stage3." in error
    for number, stage in enumerate(measured.cell.stages, 1):
        code, out = export(path, "--cell", f"c100-u4-stage{number}")
        shape = json.loads(out.read_text())
        out.unlink()
        assert code == 0
        level = (shape["request_rate"], shape["max_concurrency"])
        assert level == (("inf", stage.level) if pattern.of == "users" else (stage.level, None))
        assert (shape["num_prompts"], shape["completed"]) == (stage.requests, stage.requests - stage.failed)
        assert shape["duration"] == pytest.approx(stage.ends - stage.begins, abs=0.5)
        assert shape["request_throughput"] == pytest.approx(stage.metrics["requests_per_second"].value, rel=0.05)
        # vLLM counts a TTFT from the sending, as these users and rates do.
        assert shape["median_ttft_ms"] == pytest.approx(stage.metrics["ttft_p50"].value)
        assert shape["total_output_tokens"] == TOKENS * stage.requests
    assert export(path, "--cell", "c100-u4-stage4")[0] == 1
    assert "choose one of c100-u4, c100-u4-stage1, c100-u4-stage2," in capsys.readouterr().err


def test_requests_of_a_stage_are_rows_of_the_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, measured = write_result(RATES, tmp_path)
    lines = []
    for name in (measured.cell.id, *(part.id for part in measured.cell.parts())):
        assert main(["export", str(path), "--format", "requests", "--cell", name]) == 0
        lines.append(capsys.readouterr().out.splitlines()[1:])
    assert sorted(lines[0]) == sorted(itertools.chain(*lines[1:]))
    assert all(lines)


@pytest.mark.slow
def test_load_of_one_stage_is_exported_without_its_name(tmp_path: Path) -> None:
    path, measured = write_result(Staged("rate", (Stage(5.0, 30.0),)), tmp_path)
    code, out = export(path)
    assert (code, json.loads(out.read_text())["request_rate"]) == (0, 5.0)
    assert json.loads(out.read_text())["bezel_cell"] == f"{measured.cell.id}-stage1"


@pytest.mark.slow
@BOTH
def test_stages_in_vllms_format_are_the_whole_load_once(pattern: Staged) -> None:
    measured = run_of(pattern, places=3)
    shapes = []
    for number in (1, 2, 3):
        part, rows, most = of_stage(measured.cell, number, measured.samples, measured.began)
        shapes.append(as_vllm(document(measured), part, rows, measured.began, most))
    assert sum(shape["num_prompts"] for shape in shapes) == measured.cell.requests
    assert sum(map(len, (shape["ttfts"] for shape in shapes))) == measured.cell.requests
    sent, done = measured.samples["sent"] - measured.began, measured.samples["done"] - measured.began
    for shape, stage in zip(shapes, measured.cell.stages, strict=True):
        grid = np.unique(sent[(sent >= stage.begins * 1e9) & (sent < stage.ends * 1e9)])
        under_way = max(int(((sent <= at) & (done > at)).sum()) for at in grid)
        assert shape["max_concurrent_requests"] >= under_way, "those of the stage before count, too"


@pytest.mark.slow
def test_drafts_of_a_whole_load_are_in_no_stage() -> None:
    measured = run_of(RATES)
    gained = measured.cell.counters.gained.model_copy(update={"drafts": 9, "draft_tokens": 18, "accepted_tokens": 12})
    counters = measured.cell.counters.model_copy(update={"gained": gained})
    cell = measured.cell.model_copy(update={"counters": counters, "acceptance": [0.8, 0.5]})
    part, rows, most = of_stage(cell, 2, measured.samples, measured.began)
    assert not [
        name for name in as_vllm(document(measured), part, rows, measured.began, most) if name.startswith("spec")
    ]
    assert "spec_decode_num_drafts" in as_vllm(document(measured), cell, measured.samples, measured.began)


@pytest.mark.slow
@BOTH
def test_csv_has_a_row_for_each_stage_with_its_share(pattern: Staged, tmp_path: Path) -> None:
    path, measured = write_result(pattern, tmp_path)
    rows = list(csv.DictReader(io.StringIO(as_csv(document(measured)))))
    assert [row["id"] for row in rows] == [f"c100-u4-stage{number}" for number in (1, 2, 3)]
    assert sum(float(row["cost_usd"]) for row in rows) == pytest.approx(measured.cell.cost_usd, rel=0.05)
    for row, stage in zip(rows, measured.cell.stages, strict=True):
        assert float(row["ttft_p50 [ms]"]) == stage.metrics["ttft_p50"].value
        assert float(row["requests_per_second [requests/s]"]) == stage.metrics["requests_per_second"].value
    out = tmp_path / "one.csv"
    assert main(["export", str(path), "--cell", "c100-u4-stage2", "--out", str(out)]) == 0
    (row,) = csv.DictReader(out.read_text().splitlines())
    assert float(row["users" if pattern.of == "users" else "rate"]) == pattern.stages[1].level


@pytest.mark.slow
@BOTH
def test_open_metrics_have_each_stage_at_its_end(pattern: Staged, tmp_path: Path) -> None:
    path, measured = write_result(pattern, tmp_path)
    started = measured.cell.started_at
    assert started is not None
    families = {one.name: one.samples for one in text_string_to_metric_families(as_open_metrics(document(measured)))}
    for name, metric, factor in (
        ("ttft_p50_seconds", "ttft_p50", 1e-3), ("tpot_p50_seconds", "tpot_p50", 1e-3),
        ("e2e_p99_seconds", "e2e_p99", 1e-3), ("requests_per_second", "requests_per_second", 1.0),
        ("output_tokens_per_second", "output_tokens_per_second", 1.0),
    ):  # fmt: skip
        samples = families[f"bezel_bench_{name}"]
        assert [one.labels["cell"] for one in samples] == [f"c100-u4-stage{number}" for number in (1, 2, 3)]
        for one, stage in zip(samples, measured.cell.stages, strict=True):
            assert one.value == pytest.approx(stage.metrics[metric].value * factor)
            assert float(one.labels["users" if pattern.of == "users" else "rate"]) == stage.level
            assert float(one.timestamp) == pytest.approx(started.timestamp() + stage.ends, abs=0.01)
    out = tmp_path / "one.txt"
    arguments = ["--format", "openmetrics", "--cell", "c100-u4-stage3", "--out", str(out)]
    assert main(["export", str(path), *arguments]) == 0
    assert 'cell="c100-u4-stage3"' in out.read_text()
    assert "stage2" not in out.read_text()


@pytest.mark.slow
@BOTH
def test_audit_reads_each_stage_as_a_load(pattern: Staged, tmp_path: Path) -> None:
    path, measured = write_result(pattern, tmp_path)
    audit = audit_files([path])
    (source,) = audit.sources
    assert [row.where for row in source.rows] == [f"cell c100-u4-stage{number}" for number in (1, 2, 3)]
    for row, stage in zip(source.rows, measured.cell.stages, strict=True):
        figures = {name: figure.value for name, figure in row.figures.items()}
        assert figures["requests_per_second"] == stage.metrics["requests_per_second"].value
        for name in ("ttft", "tpot", "e2e"):
            assert figures[name] == pytest.approx(stage.metrics[f"{name}_mean"].value * 1e-3)
        assert (row.requests, row.failed) == (stage.requests, stage.failed)
    assert audit.findings == ()
    assert not [question for question in audit.questions if "lacks" in str(question) and "tpot" in str(question)]


@pytest.mark.slow
@BOTH
def test_audit_finds_a_changed_figure_of_one_stage(pattern: Staged, tmp_path: Path) -> None:
    path, _ = write_result(pattern, tmp_path)
    text = json.loads(path.read_text())
    metric = text["cells"][0]["stages"][1]["metrics"]["output_tokens_per_second"]
    metric["value"] *= 3
    path.write_text(json.dumps(text))
    (finding, *_) = audit_files([path]).findings
    assert "stage2" in finding.arithmetic


LEVELS = strategies.lists(
    strategies.builds(Stage, strategies.integers(1, 24).map(float), strategies.integers(4, 20).map(float)),
    min_size=1,
    max_size=3,
)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(of=strategies.sampled_from(["users", "rate"]), stages=LEVELS, seed=strategies.integers(0, 99),
       places=strategies.sampled_from([1, 2, 4, 64]))  # fmt: skip
def test_audit_accuses_no_load_in_stages(
    tmp_path_factory: pytest.TempPathFactory, of: Any, stages: list[Stage], seed: int, places: int
) -> None:
    """Through and beyond saturation, where requests of one stage end in the next."""
    measured = run_of(Staged(of, tuple(stages)), seed=seed, places=places)
    path = tmp_path_factory.mktemp("staged") / "st.json"
    save(document(measured), path)
    assert audit_files([path]).findings == ()


@pytest.mark.slow
def test_requests_of_users_are_sent_and_those_of_a_rate_due() -> None:
    assert " requests sent" in text_of(run_blocks(document(run_of(USERS))))
    assert "due" not in text_of(run_blocks(document(run_of(USERS))))
    assert " requests due" in text_of(run_blocks(document(run_of(RATES))))


@pytest.mark.slow
@BOTH
def test_journal_and_document_keep_the_stages(pattern: Staged) -> None:
    measured = run_of(pattern)
    assert Cell.model_validate_json(measured.cell.model_dump_json()) == measured.cell
    assert Result.model_validate_json(document(measured).as_json()) == document(measured)


def test_cell_of_one_level_is_its_only_part() -> None:
    cell = document(record(staged_run(RATES), plan())).cells[0]
    assert cell.parts() == [cell]
