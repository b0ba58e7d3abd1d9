"""Links of a built site: each leads to a page and an anchor of it, and no page loads anything from elsewhere.

Links to other sites are not followed: a build needs no network.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from bezel_base.errors import Problem

if TYPE_CHECKING:
    from pathlib import Path

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
_NOT_LOADED = {"canonical", "next", "prev", "alternate"}
_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)")


class _Page(HTMLParser):
    """What a page can be linked at, and what it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        if tag == "a" and "href" in attributes:
            self.links.add(attributes["href"])
        elif tag == "link" and not _NOT_LOADED & set(attributes.get("rel", "").split()):
            self.loads.add(attributes.get("href", ""))
        elif tag in _LOADED and attributes.get(_LOADED[tag]):
            self.loads.add(attributes[_LOADED[tag]])


def broken_links(site: Path) -> list[Problem]:
    """The links of a folder's pages that do not hold, and what its pages and styles load from elsewhere."""
    pages: dict[Path, _Page] = {}
    for file in sorted(site.rglob("*.html")):
        page = pages[file.resolve()] = _Page()
        page.feed(file.read_text(encoding="utf-8"))
    problems = []
    for file, page in pages.items():
        name = file.relative_to(site.resolve()).as_posix()
        problems += [_elsewhere(name, link) for link in sorted(page.loads) if urlsplit(link).netloc]
        for link in sorted(page.links | page.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or not target.is_relative_to(site.resolve()):
                problems.append(Problem(name, link, "The link leads nowhere.", "correct it in the page's Markdown."))
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                repair = "correct it: an anchor is the heading in lower case, with hyphens for blanks."
                problems.append(Problem(name, link, "The page has no such heading.", repair))
    for file in sorted(site.rglob("*.css")):
        text = file.read_text(encoding="utf-8")
        problems += [_elsewhere(file.relative_to(site).as_posix(), link) for link in _STYLE.findall(text)]
    return problems


def _elsewhere(name: str, link: str) -> Problem:
    consequence = "A reader's browser would load this from another site, and lack it without a network."
    return Problem(name, link, consequence, "put the file into docs/ and link to it there.")
