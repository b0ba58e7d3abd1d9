"""Structure of a built page: it has the lists, tables and blocks that a forge shows for the same Markdown.

The generator reads another dialect of Markdown (`dialect`), and shows what it does not read as text, without a message.
"""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bezel_base.errors import Problem
from tools.site.diagrams import with_layers
from tools.site.dialect import MARKDOWN

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN = {"ul": "lists", "ol": "lists", "li": "items", "table": "tables", "tr": "rows", "td": "cells", "pre": "blocks"}
_HEADINGS = dict.fromkeys(("h1", "h2", "h3", "h4"), "headings")


class _Counted(HTMLParser):
    """How many of each a page has, within its article if it has one."""

    def __init__(self, *, is_page: bool) -> None:
        super().__init__()
        self.numbers: Counter[str] = Counter()
        self._is_inside, self._is_page = not is_page, is_page

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        if tag == "article":
            self._is_inside = True
        if self._is_inside and (kind := (_SHOWN | _HEADINGS).get(tag)):
            self.numbers[kind] += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._is_inside = False


def changed_structure(root: Path, pages: Iterable[str], built: Path) -> list[Problem]:
    """The pages that have fewer or more lists, tables, blocks or headings than a forge shows.

    Args:
        root: Folder of the Markdown that a forge shows.
        pages: Paths below it.
        built: The site.
    """
    problems = []
    for page in pages:
        path = PurePosixPath(page)
        html = path.with_name("index.html") if path.name == "README.md" else path.with_suffix(".html")
        expected, shown = _Counted(is_page=False), _Counted(is_page=True)
        expected.feed(MARKDOWN.render(with_layers(page, (root / page).read_text(encoding="utf-8"))))
        shown.feed((built / html).read_text(encoding="utf-8"))
        kinds = [kind for kind in expected.numbers | shown.numbers if expected.numbers[kind] != shown.numbers[kind]]
        if kinds:
            numbers = ", ".join(f"{shown.numbers[kind]} {kind} of {expected.numbers[kind]}" for kind in sorted(kinds))
            repair = "write it in a simpler form, e.g. without a table or a block within an item of a list."
            problems.append(Problem(page, numbers, "The site would show a list or block as text.", repair))
    return problems
