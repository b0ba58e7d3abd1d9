"""Parts of the report, for the page as for Markdown: tables, and figures that can be drawn at any width. Pure."""

from dataclasses import dataclass
from typing import Protocol
from xml.etree.ElementTree import Element


@dataclass(frozen=True)
class Table:
    """Rows of text below heads; every cell is untrusted. `title` names the table, `note` explains how to read it."""

    title: str
    head: list[str]
    rows: list[list[str]]
    note: str = ""


def is_number(text: str) -> bool:
    """Whether a cell reads as a figure, which is aligned to the right."""
    return text[:1].isdigit() or text[:2] in ("< ", "> ") or (text[:1] in "+-~" and text[1:2].isdigit())


class Picture(Protocol):
    """A drawing."""

    def draw(self, width: float) -> Element:
        """Return an `svg` element, about that many pixels wide."""


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes:
        name: Name of its anchor and of its file: letters and hyphens.
        kind: Origin of its values: "measured", "simulated", "measured and inferred", ...
        caption: Explanation for the reader, whole sentences.
        broad: Whether it needs the whole width of a page.
    """

    name: str
    title: str
    kind: str
    caption: list[str]
    picture: Picture
    table: Table
    broad: bool = False
