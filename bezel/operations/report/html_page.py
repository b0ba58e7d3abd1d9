"""Page of a report on a stack: self-contained HTML in the style of the benchmark's reports, without scripts. Pure."""

from collections.abc import Callable, Iterator, Sequence
from xml.etree.ElementTree import Element

from bezel.operations.report.result import (
    DAY_HEADS,
    FAILURE_HEADS,
    LATENCY_HEADS,
    SPENT_HEADS,
    Report,
    count_text,
    day_rows,
    failure_rows,
    hours_text,
    latency_rows,
    spent_rows,
    usd_text,
)
from bezel.operations.vllm_metrics.course import Window
from bezel_bench.report.charts.axes import Axis
from bezel_bench.report.charts.html import add, el
from bezel_bench.report.charts.page_parts import (
    bullets,
    document,
    draw_figure,
    header,
    make_section,
    plain_table,
    tiles,
)
from bezel_bench.report.charts.plot import Chart, Dot
from bezel_bench.report.charts.plot import Line as ChartLine
from bezel_bench.report.figure import Figure, Table
from bezel_bench.report.report import SIMULATED

_HOUR = 3600.0


def as_page(report: Report) -> str:
    """Return the page's text."""
    kind = "simulated" if report.simulated else "measured"
    times = f"{report.since:%Y-%m-%d %H:%M} to {report.until:%Y-%m-%d %H:%M} UTC"
    sections = dict(_sections(report, kind))
    top = header(f"Stack {report.stack}", kind, times, [SIMULATED] if report.simulated else [], sections)
    footer = "What is unknown is named so, and never 0."
    return document(f"{report.stack}: {times}", top, sections.values(), footer)


def _sections(report: Report, kind: str) -> Iterator[tuple[str, Element]]:
    summary = make_section("summary", "Summary")
    ttft = next((each for each in report.latencies if each.name == "ttft"), None)
    yield (
        "Summary",
        add(
            summary,
            tiles(
                [
                    ("Requests", count_text(report.requests), f"{count_text(report.failed)} failed"),
                    ("Tokens in", count_text(report.prompt_tokens), ""),
                    ("Tokens out", count_text(report.generated_tokens), ""),
                    *((("TTFT p50", ttft.text("p50"), ""), ("TTFT p99", ttft.text("p99"), "")) if ttft else ()),
                    ("Hours served", hours_text(report.hours), f"{count_text(report.starts)} starts"),
                    ("Cost", usd_text(report), ""),
                ]
            ),
        ),
    )
    traffic = make_section("traffic", "Traffic")
    if figures := list(_figures(report, kind)):
        add(traffic, el("div", {"class": "figures"}, *(draw_figure(figure) for figure in figures)))
    add(traffic, el("h3", {}, "By day"), _table("By day", DAY_HEADS, day_rows(report.days), "No series of this time."))
    yield "Traffic", traffic
    percentiles = _table("Percentiles", LATENCY_HEADS, latency_rows(report.latencies), "No series of this time.")
    yield "Latency", add(make_section("latency", "Latency"), percentiles)
    rows = [tuple(map(str, row)) for row in failure_rows(report.outcomes)]
    none = "No request failed or was refused." if report.outcomes else "Unknown: no series of this time."
    failures = _table("Failed or refused", FAILURE_HEADS, rows, none)
    yield "Failures", add(make_section("failures", "Failures"), failures)
    yield "Cost", add(make_section("cost", "Cost"), _table("Cost", SPENT_HEADS, spent_rows(report.spent), ""))
    if report.teams is not None:
        of_teams = [(team.team, team.line()) for team in report.teams]
        teams = _table("Teams", ("team", "use"), of_teams, "No key was used.")
        yield "Teams", add(make_section("teams", "Teams"), teams)
    sources = make_section("sources", "Sources and gaps")
    pairs = Table("Sources", ["figures", "source"], [[each.figures, each.source] for each in report.sources])
    yield "Sources and gaps", add(sources, plain_table(pairs, "pairs"), bullets(report.gaps))


def _table(title: str, heads: Sequence[str], rows: Sequence[tuple[str, ...]], otherwise: str) -> Element:
    """A table; a sentence where it has no row."""
    return plain_table(Table(title, [*heads], [list(row) for row in rows])) if rows else el("p", {}, otherwise)


def _figures(report: Report, kind: str) -> Iterator[Figure]:
    requests = {"requests": lambda each: each.requests, "failed": lambda each: each.failed}
    tokens = {"tokens in": lambda each: each.prompt_tokens, "tokens out": lambda each: each.generated_tokens}
    ttft = {"p50": lambda each: each.ttft_p50, "p99": lambda each: each.ttft_p99}
    yield from _figure(report, kind, "requests", "Requests", "requests in a window", requests)
    yield from _figure(report, kind, "tokens", "Tokens", "tokens in a window", tokens)
    yield from _figure(report, kind, "ttft", "Time to the first token", "seconds", ttft, log=True)


def _figure(
    report: Report,
    kind: str,
    name: str,
    title: str,
    unit: str,
    values: dict[str, Callable[[Window], float | None]],
    *,
    log: bool = False,
) -> Iterator[Figure]:
    """A chart over time; none where no window has a value.

    Args:
        report: The report.
        kind: Origin of the values.
        name: Name of its anchor.
        title: Its title.
        unit: Title of the axis of the values.
        values: Name of a line -> its value in a window.
        log: Whether equal distances of that axis are equal factors.
    """
    lines = []
    for label, value_of in values.items():
        points = [
            ((window.ends_at - report.since).total_seconds() / _HOUR, value, window)
            for window in report.course
            if (value := value_of(window)) is not None
        ]
        dots = [Dot(at, value, tooltip=f"{window.begins_at:%Y-%m-%d %H:%M}: {value:g}") for at, value, window in points]
        lines.append(ChartLine(label, dots))
    if not any(line.dots for line in lines):
        return
    times = f"hours since {report.since:%Y-%m-%d %H:%M} UTC"
    across = Axis(times, low=0.0, high=(report.until - report.since).total_seconds() / _HOUR)
    chart = Chart(title, f"{unit}, {times}", lines, across, Axis(unit, log=log, low=None if log else 0.0))
    length = report.course[0].ends_at - report.course[0].begins_at
    caption = [f"Each point is the end of a window of {length.total_seconds() / 60:g} minutes, over all servers."]
    rows = [
        [f"{window.begins_at:%Y-%m-%d %H:%M}", *(_cell(value_of(window)) for value_of in values.values())]
        for window in report.course
    ]
    yield Figure(name, title, kind, caption, chart, Table(title, ["begin (UTC)", *values], rows))


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
