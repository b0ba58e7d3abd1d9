"""Parts of a self-contained HTML page: its head, sections, tiles, tables and figures. Pure.

No script and no request: each chart is drawn as SVG, and the page's Content-Security-Policy forbids both, in case one
were ever injected. Every text is untrusted. Leaves out what a page is about.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from xml.etree.ElementTree import Element

from bezel_base.text.counting import format_count
from bezel_bench.report.charts.html import Node, Value, el, html
from bezel_bench.report.charts.style import page as style
from bezel_bench.report.figure import Figure, Table, is_number
from bezel_bench.report.format import UNKNOWN

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_WIDE, _BROAD, _NARROW = 540.0, 1100.0, 318.0
_ALWAYS_OPEN = 30
_NARROW_COLUMNS = 3  # that a phone has room for


def document(title: str, header: Element, sections: Iterable[Element], footer: str) -> str:
    """Return the text of a page.

    Args:
        title: Title of its window.
        header: What comes first.
        sections: Its sections.
        footer: A sentence below them.
    """
    head = el(
        "head",
        {},
        el("meta", {"charset": "utf-8"}),
        el("meta", {"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        el("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        el("meta", {"name": "referrer", "content": "no-referrer"}),
        el("title", {}, title),
        el("link", {"rel": "icon", "href": "data:,"}),
        el("style", {}, style()),
    )
    end = el("footer", {}, el("p", {}, footer))
    body = el("body", {}, header, el("main", {"id": "main"}, *sections), end)
    return html(el("html", {"lang": "en"}, head, body))


def header(title: str, kind: str, about: str, warnings: Iterable[str], sections: Mapping[str, Element]) -> Element:
    """Return the head of a page: its title, what it is about, warnings, and links to its sections.

    Args:
        title: Its title.
        kind: Origin of its values, beside the title.
        about: A line about what it shows.
        warnings: Whole sentences.
        sections: Name in the list of contents -> section.
    """
    links = [el("li", {}, el("a", {"href": f"#{section.get('id')}"}, name)) for name, section in sections.items()]
    return el(
        "header",
        {},
        el("a", {"class": "skip", "href": "#main"}, "To the figures"),
        el("h1", {}, title, el("span", {"class": "kind"}, kind)),
        el("p", {"class": "about"}, about),
        *(el("p", {"class": "warn", "role": "note"}, text) for text in warnings),
        el("nav", {"aria-label": "Contents"}, el("ul", {}, *links)),
    )


def make_section(name: str, title: str) -> Element:
    """Return an empty section with a heading."""
    return el("section", {"id": name, "aria-labelledby": f"{name}-title"}, el("h2", {"id": f"{name}-title"}, title))


def tiles(values: Iterable[tuple[str, str, str]]) -> Element:
    """Return named values, each with its unit, as tiles."""
    return el(
        "dl",
        {"class": "tiles"},
        *(
            el("div", {}, el("dt", {}, *_break_name(name)), el("dd", {}, value, " ", el("small", {}, unit)))
            for name, value, unit in values
        ),
    )


def draw_figure(figure: Figure) -> Element:
    """Return a figure, drawn for a wide and for a narrow place, with its values as a table."""
    wide = figure.picture.draw(_BROAD if figure.broad else _WIDE)
    narrow = figure.picture.draw(_NARROW)
    wide.set("class", "wide")
    narrow.set("class", "narrow")
    drawn = el("div", {"class": "draw", "role": "region", "aria-label": figure.title, "tabindex": 0}, wide, narrow)
    caption = el(
        "figcaption", {}, el("b", {}, f"{figure.kind[:1].upper()}{figure.kind[1:]}."), " ", " ".join(figure.caption)
    )
    behind = el("details", {}, el("summary", {}, "The figures as a table"), plain_table(figure.table))
    title = el("h3", {}, figure.title, el("span", {"class": "kind"}, figure.kind))
    return el(
        "figure", {"id": figure.name, **({"class": "broad"} if figure.broad else {})}, title, drawn, caption, behind
    )


def long_table(table: Table) -> Element:
    """Return a table, folded where it has many rows."""
    shown = plain_table(table)
    if len(table.rows) <= _ALWAYS_OPEN:
        return shown
    return el("details", {}, el("summary", {}, format_count(len(table.rows), "rows")), shown)


def plain_table(table: Table, kind: str = "") -> Element:
    """Return a table; of the kind `pairs`, its rows are names with values."""
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


def bullets(texts: Iterable[str]) -> Element:
    """Return a list of texts."""
    return el("ul", {}, *(el("li", {}, text) for text in texts))
