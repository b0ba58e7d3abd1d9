"""Self-contained HTML page of a report: no script, no request, each chart drawn as SVG.

Owns what the page has, in its order. Leaves out how a part of it is written (`charts.page_parts`).
"""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from bezel_bench.report.charts.html import add, el
from bezel_bench.report.charts.page_parts import (
    bullets,
    document,
    draw_figure,
    header,
    long_table,
    make_section,
    plain_table,
    tiles,
)
from bezel_bench.report.facts import has_output, measured_load, representative_load
from bezel_bench.report.format import STATES, number, percent
from bezel_bench.report.load_figures import COST, THROUGHPUT
from bezel_bench.report.report import Report
from bezel_bench.report.series import Subject

_FINDINGS = 5
_TILES = ((THROUGHPUT, "tokens/s"), ("ttft_p50", "ms"), ("ttft_p99", "ms"), ("tpot_p50", "ms"), (COST, "USD"))
_COMPUTED_TILES = (
    ("requests_per_second", "requests/s"),
    ("input_tokens_per_second", "tokens/s"),
    ("e2e_p50", "ms"),
    ("e2e_p99", "ms"),
)


def as_page(report: Report) -> str:
    """Return the page's text."""
    sections = dict(_sections(report))
    return document(f"{report.title} ({report.nature})", _header(report, sections), sections.values(), _footer(report))


def _sections(report: Report) -> Iterator[tuple[str, Element]]:
    """Yield the name in the table of contents, and the section."""
    summary = make_section("summary", "Summary")
    if len(report.subjects) == 1:
        add(summary, _tiles(report.subjects[0]))
    else:
        add(summary, plain_table(report.summary))
    if report.findings:
        add(summary, el("h3", {}, "What follows from the cells"))
        shown, rest = report.findings[:_FINDINGS], report.findings[_FINDINGS:]
        add(summary, bullets(shown))
        if rest:
            add(summary, el("details", {}, el("summary", {}, f"{len(rest)} more"), bullets(rest)))
    yield "Summary", summary
    figures = make_section("figures", "Figures")
    add(figures, el("div", {"class": "figures"}, *(draw_figure(figure) for figure in report.figures)))
    if report.missing:
        add(figures, el("h3", {}, "Not drawn"), bullets(report.missing))
    yield "Figures", figures
    if report.side_by_side:
        yield "Side by side", add(make_section("compared", "Side by side"), long_table(report.side_by_side))
    checks = add(make_section("checks", "Checks and failures"), el("p", {}, f"Checks: {report.checks_summary}"))
    for table in report.trouble:
        add(checks, el("h3", {}, table.title), plain_table(table))
    if not report.trouble:
        add(checks, el("p", {}, "Every load is ok, no request failed, no check fired."))
    yield "Checks and failures", checks
    yield "Every load", add(make_section("loads", "Every load"), long_table(report.cells))
    what = make_section("manifest", "What was run")
    for table in report.manifests:
        add(what, el("h3", {}, table.title), plain_table(table, "pairs"))
    yield "What was run", what


def _header(report: Report, sections: dict[str, Element]) -> Element:
    first = report.subjects[0].result.manifest
    about = f"Started {first.started_at:%Y-%m-%d %H:%M %Z}"
    if len(report.subjects) == 1:
        about = f"{first.model} on {first.platform.accelerator or 'unknown hardware'}. {about}"
    return header(report.title, report.nature, about, report.warnings, sections)


def _footer(report: Report) -> str:
    client = report.subjects[0].result.manifest.client
    return f"Measured with bezel {client.bezel}. The JSON documents of the results hold every figure of this page."


def _tiles(subject: Subject) -> Element:
    """Return the figures of one server at its best load, or else at the highest measured throughput."""
    (_, named), spot = representative_load(subject), measured_load(subject)
    requests, failed = sum(load.requests for load in subject.spots), sum(load.failed_requests for load in subject.spots)
    ok = sum(load.state == "ok" for load in subject.spots)
    values = [("Loads ok", str(ok), f"of {len(subject.spots)}")]
    values += [("Failed requests", percent(failed / requests) if requests else "none sent",
               f"{number(failed)} of {number(requests)}" if requests else "")]  # fmt: skip
    if spot:
        where = "" if spot.context is None else f"context {number(spot.context)}"
        if spot.state != "ok":
            values += [("Best load", "none", named.removeprefix("none "))]
            values += [(f"Figures of a load that is {STATES[spot.state]}", spot.load_text, where)]
        elif named.startswith("none"):
            values += [("Best load", "none", named.removeprefix("none "))]
            values += [("Highest throughput measured at", spot.load_text, where)]
        else:
            values += [("Best load that is ok", spot.load_text, where)]
    shown = () if spot is None else _TILES if has_output(spot) else _COMPUTED_TILES
    for name, unit in shown:
        value = spot.value(name) if spot else None
        values.append((f"{name}, there", number(value), unit if value is not None else ""))
    return tiles(values)
