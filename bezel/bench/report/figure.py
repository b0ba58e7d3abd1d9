"""Figure of the report: a picture that can be drawn at any width, its words, and the table behind it."""

from dataclasses import dataclass
from typing import Protocol
from xml.etree.ElementTree import Element

from bezel.bench.report.tables import Table


class Picture(Protocol):
    """A drawing."""

    def drawn(self, width: float) -> Element:
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
