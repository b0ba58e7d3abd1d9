"""Figures of a server's own metrics over a load: requests that run and wait, used KV cache, tokens per second."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bezel_bench.report.charts.axes import Axis
from bezel_bench.report.charts.plot import Chart, Line
from bezel_bench.report.facts import representative_load
from bezel_bench.report.figure import Figure, Table
from bezel_bench.report.format import number, percent
from bezel_bench.report.series import Spot, Subject, evenly, nature
from bezel_bench.result.document import Cell, ServerSeries

_ROWS, _SUBJECTS = 20, 2
_FEWEST = 2
Points = list[tuple[float, float]]


@dataclass(frozen=True)
class _SampledLoad:
    label: str
    subject: Subject
    series: ServerSeries
    cell: Cell


def server_figures(subjects: Sequence[Subject]) -> tuple[list[Figure], list[str]]:
    """Return the figures of one load a server, and the reason why others cannot be drawn."""
    loads = [load for subject in subjects if (load := _load(subject))]
    if not loads:
        return [], ["Server's metrics over time: no load lasted long enough, or the server reports none."]
    figures = [
        _figure(
            "server-requests",
            "Requests at the server",
            Axis("requests", low=0.0),
            {"running": _of("running"), "waiting": _of("waiting")},
            loads,
        ),
        _figure(
            "server-cache",
            "Used KV cache",
            Axis("used share of the KV cache", low=0.0, high=1.0, as_percent=True),
            {"": _of("kv_cache_used")},
            loads,
        ),
        _figure(
            "server-tokens",
            "Generated tokens per second, by the server",
            Axis("tokens/s", low=0.0),
            {"": _rates},
            loads,
        ),
    ]
    return [figure for figure in figures if figure], []


def _load(subject: Subject) -> _SampledLoad | None:
    for label, cell in loads_by_weight(subject):
        if cell.server_series and len(cell.server_series.at_seconds) >= _FEWEST:
            return _SampledLoad(label, subject, cell.server_series, cell)
    return None


def loads_by_weight(subject: Subject) -> Iterator[tuple[str, Cell]]:
    """Yield a server's representative load, then its others from the highest on, each with its name."""
    first, _ = representative_load(subject)
    by_load = sorted(subject.spots, key=lambda spot: spot.load or 0, reverse=True)
    spots: list[Spot] = [*([first] if first else []), *by_load]
    for spot in spots:
        context = "" if spot.context is None else f", context {number(spot.context)}"
        # A load in stages has one series over all of them.
        load = "all stages" if spot.stage else spot.load_text
        for cell in spot.cells:
            yield f"{subject.label}, {load}{context}", cell


def time_axis(cells: Sequence[Cell]) -> Axis:
    """Return the axis of a load's time: all of it where the platform's samples are drawn too, on the same one."""
    watched = [cell for cell in cells if cell.platform_series]
    # A stage has the length of its own, and the series of all of them.
    ends = [cell.seconds or 0.0 for cell in watched]
    ends += [at for cell in watched for one in cell.platform_series for at in one.at_seconds]
    ends += [at for cell in watched if cell.server_series for at in cell.server_series.at_seconds]
    return Axis("seconds from the load's start", low=0.0, high=max(ends, default=None))


def _of(name: str) -> Callable[[ServerSeries], Points]:
    def points(series: ServerSeries) -> Points:
        return list(zip(series.at_seconds, getattr(series, name) or [], strict=False))

    return points


def _rates(series: ServerSeries) -> Points:
    counted = list(zip(series.at_seconds, series.generated_tokens or [], strict=False))
    return [((a + b) / 2, (new - old) / (b - a)) for (a, old), (b, new) in pairwise(counted) if b > a]


def _figure(
    name: str, title: str, y: Axis, columns: dict[str, Callable[[ServerSeries], Points]], loads: Sequence[_SampledLoad]
) -> Figure | None:
    lines = [
        Line(", ".join(part for part in (load.label, column) if part), [], points)
        for load in loads[:_SUBJECTS]
        for column, points_of in columns.items()
        if (points := points_of(load.series))
    ]
    if not lines:
        return None
    every = loads[0].series.every_seconds
    notes = [f"The server's `/metrics`, read every {number(every)} s while the load was sent: {loads[0].label}."]
    if len(loads) > 1:
        notes = [f"The servers' `/metrics`, read every {number(every)} s while one load of each was sent."]
    if len(loads) > _SUBJECTS:
        notes.append(f"{_SUBJECTS} of {len(loads)} servers are drawn.")
    format_value: Callable[[float], str] = percent if y.as_percent else number
    rows = [
        [number(at), line.label, format_value(round(value, 4))]
        for line in lines
        for at, value in evenly(line.steps, _ROWS)
    ]
    table = Table(title, ["seconds", "line", y.title], rows, f"At most {_ROWS} instants a line; all are in the result.")
    x = time_axis([load.cell for load in loads[:_SUBJECTS]])
    chart = Chart(title, " ".join(notes), lines, x, y)
    return Figure(name, title, nature(load.subject for load in loads), notes, chart, table)
