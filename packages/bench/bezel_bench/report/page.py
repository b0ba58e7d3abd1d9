"""Self-contained HTML page of a report: no script, no request, each chart drawn as SVG.

Its Content-Security-Policy forbids scripts and requests, in case one were ever injected.
"""

from collections.abc import Iterable, Iterator, Sequence
from xml.etree.ElementTree import Element

from bezel_base.text.counting import format_count
from bezel_bench.report.charts.html import Node, Value, add, el, html
from bezel_bench.report.charts.style import page as style
from bezel_bench.report.facts import has_output, measured_load, representative_load
from bezel_bench.report.figure import Figure, Table, is_number
from bezel_bench.report.format import STATES, UNKNOWN, number, percent
from bezel_bench.report.load_figures import COST, THROUGHPUT
from bezel_bench.report.report import Report
from bezel_bench.report.series import Subject

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_WIDE, _BROAD, _NARROW = 540.0, 1100.0, 318.0
_ALWAYS_OPEN = 30
_NARROW_COLUMNS = 3  # that a phone has room for
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
    head = el(
        "head",
        {},
        el("meta", {"charset": "utf-8"}),
        el("meta", {"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        el("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        el("meta", {"name": "referrer", "content": "no-referrer"}),
        el("title", {}, f"{report.title} ({report.nature})"),
        el("link", {"rel": "icon", "href": "data:,"}),
        el("style", {}, style()),
    )
    sections = dict(_sections(report))
    body = el("body", {}, _header(report, sections), el("main", {"id": "main"}, *sections.values()), _footer(report))
    return html(el("html", {"lang": "en"}, head, body))


def _sections(report: Report) -> Iterator[tuple[str, Element]]:
    """Yield the name in the table of contents, and the section."""
    summary = _section("summary", "Summary")
    if len(report.subjects) == 1:
        add(summary, _tiles(report.subjects[0]))
    else:
        add(summary, _table(report.summary))
    if report.findings:
        add(summary, el("h3", {}, "What follows from the cells"))
        shown, rest = report.findings[:_FINDINGS], report.findings[_FINDINGS:]
        add(summary, _list(shown))
        if rest:
            add(summary, el("details", {}, el("summary", {}, f"{len(rest)} more"), _list(rest)))
    yield "Summary", summary
    figures = _section("figures", "Figures")
    add(figures, el("div", {"class": "figures"}, *(_figure(figure) for figure in report.figures)))
    if report.missing:
        add(figures, el("h3", {}, "Not drawn"), _list(report.missing))
    yield "Figures", figures
    if report.side_by_side:
        yield "Side by side", add(_section("compared", "Side by side"), _long(report.side_by_side))
    checks = add(_section("checks", "Checks and failures"), el("p", {}, f"Checks: {report.checks_summary}"))
    for table in report.trouble:
        add(checks, el("h3", {}, table.title), _table(table))
    if not report.trouble:
        add(checks, el("p", {}, "Every load is ok, no request failed, no check fired."))
    yield "Checks and failures", checks
    yield "Every load", add(_section("loads", "Every load"), _long(report.cells))
    what = _section("manifest", "What was run")
    for table in report.manifests:
        add(what, el("h3", {}, table.title), _table(table, "pairs"))
    yield "What was run", what


def _section(name: str, title: str) -> Element:
    return el("section", {"id": name, "aria-labelledby": f"{name}-title"}, el("h2", {"id": f"{name}-title"}, title))


def _header(report: Report, sections: dict[str, Element]) -> Element:
    first = report.subjects[0].result.manifest
    about = f"Started {first.started_at:%Y-%m-%d %H:%M %Z}"
    if len(report.subjects) == 1:
        about = f"{first.model} on {first.platform.accelerator or 'unknown hardware'}. {about}"
    links = [el("li", {}, el("a", {"href": f"#{section.get('id')}"}, name)) for name, section in sections.items()]
    return el(
        "header",
        {},
        el("a", {"class": "skip", "href": "#main"}, "To the figures"),
        el("h1", {}, report.title, el("span", {"class": "kind"}, report.nature)),
        el("p", {"class": "about"}, about),
        *(el("p", {"class": "warn", "role": "note"}, text) for text in report.warnings),
        el("nav", {"aria-label": "Contents"}, el("ul", {}, *links)),
    )


def _footer(report: Report) -> Element:
    client = report.subjects[0].result.manifest.client
    footer = f"Measured with bezel {client.bezel}. The JSON documents of the results hold every figure of this page."
    return el("footer", {}, el("p", {}, footer))


def _tiles(subject: Subject) -> Element:
    """Return the figures of one server at its best load, or else at the highest measured throughput."""
    (_, named), spot = representative_load(subject), measured_load(subject)
    requests, failed = sum(load.requests for load in subject.spots), sum(load.failed_requests for load in subject.spots)
    ok = sum(load.state == "ok" for load in subject.spots)
    tiles = [("Loads ok", str(ok), f"of {len(subject.spots)}")]
    tiles += [("Failed requests", percent(failed / requests) if requests else "none sent",
               f"{number(failed)} of {number(requests)}" if requests else "")]  # fmt: skip
    if spot:
        where = "" if spot.context is None else f"context {number(spot.context)}"
        if spot.state != "ok":
            tiles += [("Best load", "none", named.removeprefix("none "))]
            tiles += [(f"Figures of a load that is {STATES[spot.state]}", spot.load_text, where)]
        elif named.startswith("none"):
            tiles += [("Best load", "none", named.removeprefix("none "))]
            tiles += [("Highest throughput measured at", spot.load_text, where)]
        else:
            tiles += [("Best load that is ok", spot.load_text, where)]
    shown = () if spot is None else _TILES if has_output(spot) else _COMPUTED_TILES
    for name, unit in shown:
        value = spot.value(name) if spot else None
        tiles.append((f"{name}, there", number(value), unit if value is not None else ""))
    return el(
        "dl",
        {"class": "tiles"},
        *(
            el("div", {}, el("dt", {}, *_break_name(name)), el("dd", {}, value, " ", el("small", {}, unit)))
            for name, value, unit in tiles
        ),
    )


def _figure(figure: Figure) -> Element:
    wide = figure.picture.draw(_BROAD if figure.broad else _WIDE)
    narrow = figure.picture.draw(_NARROW)
    wide.set("class", "wide")
    narrow.set("class", "narrow")
    drawn = el("div", {"class": "draw", "role": "region", "aria-label": figure.title, "tabindex": 0}, wide, narrow)
    caption = el(
        "figcaption", {}, el("b", {}, f"{figure.kind[:1].upper()}{figure.kind[1:]}."), " ", " ".join(figure.caption)
    )
    behind = el("details", {}, el("summary", {}, "The figures as a table"), _table(figure.table))
    title = el("h3", {}, figure.title, el("span", {"class": "kind"}, figure.kind))
    return el(
        "figure", {"id": figure.name, **({"class": "broad"} if figure.broad else {})}, title, drawn, caption, behind
    )


def _long(table: Table) -> Element:
    """Return a table, folded where it has many rows."""
    shown = _table(table)
    if len(table.rows) <= _ALWAYS_OPEN:
        return shown
    return el("details", {}, el("summary", {}, format_count(len(table.rows), "rows")), shown)


def _table(table: Table, kind: str = "") -> Element:
    head = el("tr", {}, *(el("th", {"scope": "col"}, *_break_name(name)) for name in table.head))
    # On a phone a row is a block of named values; the roles keep it a table for a screen reader.
    stacked = kind != "pairs" and len(table.head) > _NARROW_COLUMNS
    rows = [_row(row, kind, table.head if stacked else ()) for row in table.rows]
    named = [el("caption", {}, table.note)] if table.note else []
    classes: dict[str, Value] = {"class": kind or "stacked", "role": "table"} if kind or stacked else {}
    made = el("table", classes, *named, el("thead", {}, head), el("tbody", {}, *rows))
    return el("div", {"class": "scroll", "role": "region", "aria-label": table.title, "tabindex": 0}, made)


def _row(row: Iterable[str], kind: str, heads: Sequence[str]) -> Element:
    first, *others = row
    role = {"role": "cell"} if heads else {}
    head = {"scope": "row", **({"class": "failed"} if first == "failed" else {})}
    cells = [el("th", {**head, **({"role": "rowheader"} if heads else {})}, *_break_name(first))]
    for place, text in enumerate(others, start=1):
        right = kind != "pairs" and (is_number(text) or text == UNKNOWN) and len(text) < 32
        name = {"data-name": heads[place]} if heads else {}
        cells.append(el("td", {**({"class": "n"} if right else {}), **role, **name}, text))
    return el("tr", {"role": "row"} if heads else {}, *cells)


def _break_name(name: str) -> Iterator[Node]:
    """Yield a name with possible line breaks behind its underscores."""
    first, *others = name.split("_")
    yield first
    for part in others:
        yield "_"
        yield el("wbr")
        yield part


def _list(texts: Iterable[str]) -> Element:
    return el("ul", {}, *(el("li", {}, text) for text in texts))
