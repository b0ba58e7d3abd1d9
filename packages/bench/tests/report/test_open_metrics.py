"""OpenMetrics of a result: what Prometheus' own parser reads is what the result says, and nothing that is unknown."""

import json
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from bench_support import results
from bezel_bench.commands.main import main
from bezel_bench.report.open_metrics import as_open_metrics
from bezel_bench.result.document import Cell, Result, ServerSeries, save
from bezel_bench.result.platform_series import PlatformSeries

SERIES = ServerSeries(
    every_seconds=1.0, at_seconds=[1.0, 2.0], running=[4, 3], waiting=[1, 0], kv_cache_used=[0.25, 0.5]
)
STARTED = results.manifest("t").started_at


def result(*cells: Cell, title: str = "t") -> Result:
    return Result(kind="run", nature="simulated", manifest=results.manifest(title), cells=list(cells))


def read(text: str) -> dict[str, list]:
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


def test_figures_have_their_unit_their_load_and_the_loads_end():
    cell = results.cell(128, 4, started_at=STARTED)
    (sample,) = read(as_open_metrics(result(cell)))["bezel_bench_ttft_p50_seconds"]
    assert sample.value == pytest.approx(cell.value("ttft_p50") / 1000)
    assert sample.labels["users"] == "4"
    assert sample.labels["nature"] == "simulated"
    assert float(sample.timestamp) == pytest.approx(STARTED.timestamp() + 60, abs=0.01)


def test_the_servers_metrics_have_the_instants_of_their_reads():
    sampled = PlatformSeries(of="gpu", metric="gpu/use", source="Cloud Monitoring", at_seconds=[30.0], values=[0.75])
    cell = results.cell(128, 4, started_at=STARTED, server_series=SERIES, platform_series=[sampled])
    families = read(as_open_metrics(result(cell)))
    running = families["bezel_bench_server_running"]
    assert [(one.value, round(float(one.timestamp) - STARTED.timestamp(), 2)) for one in running] == [
        (4, 1.0),
        (3, 2.0),
    ]
    assert [one.value for one in families["bezel_bench_server_kv_cache_used"]] == [0.25, 0.5]
    (use,) = families["bezel_bench_platform_gpu"]
    assert (use.value, float(use.timestamp) - STARTED.timestamp()) == (0.75, pytest.approx(30.0, abs=0.01))
    assert "bezel_bench_platform_instances" not in families
    assert "bezel_bench_server_preemptions" not in families, "what the server does not report is left out"


def test_an_unknown_figure_is_left_out_and_never_0():
    families = read(as_open_metrics(result(results.cell(128, 4, price=None, started_at=STARTED))))
    assert "bezel_bench_cost_per_million_output_tokens" not in families
    assert "bezel_bench_requests_per_second" in families


def test_a_cell_that_was_not_measured_is_left_out():
    bare = Cell(id="c", context_tokens=1, users=1, output_tokens=1, pattern="closed", prompts="unique",
                state="infeasible", reason="1 + 1 > 1")  # fmt: skip
    assert as_open_metrics(result(bare)) == "# EOF\n"


def test_hostile_names_are_text_of_a_label():
    title = 'a"b\\c\nd{} 1'
    families = read(as_open_metrics(result(results.cell(128, 4, started_at=STARTED), title=title)))
    assert families["bezel_bench_requests_per_second"][0].labels["title"] == title


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    save(
        result(results.cell(128, 4, started_at=STARTED), results.cell(128, 8, started_at=STARTED)), tmp_path / "r.json"
    )
    assert main(["export", str(tmp_path / "r.json"), "--format", "openmetrics"]) == 0
    families = read(capsys.readouterr().out)
    assert {one.labels["users"] for one in families["bezel_bench_requests_per_second"]} == {"4", "8"}
    assert main(["export", str(tmp_path / "r.json"), "--format", "openmetrics", "--cell", "128-8"]) == 0
    assert len(read(capsys.readouterr().out)["bezel_bench_requests_per_second"]) == 1


def test_a_list_of_another_length_than_its_instants_is_no_series():
    with pytest.raises(ValueError, match="another number of values"):
        ServerSeries.model_validate(json.loads(SERIES.model_dump_json()) | {"running": [1]})
