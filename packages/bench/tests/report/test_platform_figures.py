"""Platform's samples of a load in the report: below the server's own metrics, on the same time; unknown is said."""

import pytest

from bench_support.results import cell, manifest
from bezel_bench.report.charts.plot import Chart
from bezel_bench.report.figure import Figure
from bezel_bench.report.page import as_page
from bezel_bench.report.report import Report, report_of
from bezel_bench.result.document import Cell, Result, ServerSeries
from bezel_bench.result.platform_series import PlatformSeries

READ = ServerSeries(every_seconds=1.0, at_seconds=[1.0, 2.0, 3.0], running=[4, 4, 3])


def series_of(**more: object) -> PlatformSeries:
    return PlatformSeries.model_validate({"source": "Cloud Monitoring", **more})


def report_with(*cells: Cell) -> tuple[Report, dict[str, Figure]]:
    report = report_of([Result(kind="run", nature="measured", manifest=manifest("t"), cells=list(cells))])
    return report, {figure.name: figure for figure in report.figures}


def end_of_time(figure: Figure) -> float | None:
    assert isinstance(figure.picture, Chart)
    return figure.picture.x.high


def test_samples_are_drawn_on_the_time_of_the_servers_metrics() -> None:
    series = [
        series_of(of="gpu", metric="gpu/use", at_seconds=[20.0, 80.0], values=[0.5, 0.75]),
        series_of(of="gpu_memory", metric="gpu/memory", why="not served"),
        series_of(of="instances", metric="count", at_seconds=[20.0], values=[2.0]),
    ]
    report, figures = report_with(cell(128, 4, server_series=READ, platform_series=series), cell(128, 8))
    assert [*figures][-2:] == ["platform-gpu", "platform-instances"]
    assert [row[::2] for row in figures["platform-gpu"].table.rows] == [["20", "50 %"], ["80", "75 %"]]
    assert "Cloud Monitoring's gpu/use" in figures["platform-gpu"].caption[0]
    drawn = ("server-requests", "platform-gpu", "platform-instances")
    assert {end_of_time(figures[name]) for name in drawn} == {80.0}
    assert any(text.endswith("gpu/memory is unknown: not served.") for text in report.missing)
    assert "gpu/use" in as_page(report)


def test_a_server_without_a_platform_has_no_such_figure() -> None:
    _, figures = report_with(cell(128, 4, server_series=READ))
    assert not [name for name in figures if name.startswith("platform")]
    assert end_of_time(figures["server-requests"]) is None
    with pytest.raises(ValueError, match="or the reason why it has none"):
        series_of(of="gpu", metric="gpu/use")
