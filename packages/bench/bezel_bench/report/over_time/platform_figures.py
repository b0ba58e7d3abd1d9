"""Figures of a server's platform over a load: use of its GPU, and instances, over the time of the server's metrics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bezel_bench.report.charts.axes import Axis
from bezel_bench.report.charts.plot import Chart, Dot, Line
from bezel_bench.report.figure import Figure, Table
from bezel_bench.report.format import number, percent
from bezel_bench.report.over_time.server_figures import loads_by_weight, time_axis
from bezel_bench.report.series import Subject, evenly, nature
from bezel_bench.result.document import Cell
from bezel_bench.result.platform_series import PlatformSeries

_ROWS, _SUBJECTS = 20, 2
_GPU = {"gpu": "GPU", "gpu_memory": "GPU memory"}


@dataclass(frozen=True)
class _WatchedLoad:
    label: str
    subject: Subject
    cell: Cell


def platform_figures(subjects: Sequence[Subject]) -> tuple[list[Figure], list[str]]:
    """Return the figures of one load a server, and the reasons why others cannot be drawn."""
    loads = [load for subject in subjects if (load := _load(subject))]
    missing = [
        f"{load.label}: {one.metric} is unknown: {one.why}."
        for load in loads
        for one in load.cell.platform_series
        if one.why
    ]
    shares = Axis("share", low=0.0, high=1.0, as_percent=True)
    figures = [
        _figure("platform-gpu", "Use of the GPU", shares, _GPU, loads),
        _figure("platform-instances", "Instances", Axis("instances", low=0.0), {"instances": ""}, loads),
    ]
    return [figure for figure in figures if figure], missing


def _load(subject: Subject) -> _WatchedLoad | None:
    """Return the load of which the server's metrics are drawn, or else the next one that the platform measured."""
    loads = [_WatchedLoad(label, subject, cell) for label, cell in loads_by_weight(subject) if cell.platform_series]
    sampled = (load for load in loads if any(one.values for one in load.cell.platform_series))
    return next(sampled, loads[0] if loads else None)


def _figure(name: str, title: str, y: Axis, columns: dict[str, str], loads: Sequence[_WatchedLoad]) -> Figure | None:
    text = percent if y.as_percent else number
    drawn = [
        (", ".join(part for part in (load.label, columns[one.of]) if part), one)
        for load in loads[:_SUBJECTS]
        for one in load.cell.platform_series
        if one.of in columns and one.values
    ]
    if not drawn:
        return None
    lines = [Line(label, _dots(label, one, text)) for label, one in drawn]
    metrics = " and ".join(dict.fromkeys(one.metric for _, one in drawn))
    notes = [f"{drawn[0][1].source}'s {metrics}, over the load's time; each marker is a sample."]
    if len(loads) > _SUBJECTS:
        notes.append(f"{_SUBJECTS} of {len(loads)} servers are drawn.")
    rows = [[number(dot.x), line.label, text(round(dot.y, 4))] for line in lines for dot in evenly(line.dots, _ROWS)]
    table = Table(title, ["seconds", "line", y.title], rows, f"At most {_ROWS} samples a line; all are in the result.")
    chart = Chart(title, " ".join(notes), lines, time_axis([load.cell for load in loads[:_SUBJECTS]]), y)
    return Figure(name, title, nature(load.subject for load in loads), notes, chart, table)


def _dots(label: str, series: PlatformSeries, text: Callable[[float], str]) -> list[Dot]:
    pairs = zip(series.at_seconds, series.values, strict=True)
    return [Dot(at, value, tooltip=f"{label}: {text(value)}") for at, value in pairs]
