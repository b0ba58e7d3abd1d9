"""What a figure of the report is: a picture that can be drawn at any width, its words, and the table behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from bezel.bench.report.tables import Table


class Picture(Protocol):
    """What draws itself."""

    def drawn(self, width: float) -> Element:
        """An `svg` element, about that many pixels wide."""


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes:
        name: Of its anchor and of its file: letters and hyphens.
        kind: How its values came about: "measured", "simulated", "measured and inferred", ...
        caption: What to know to read it, whole sentences.
        broad: It wants the whole width of a page.
    """

    name: str
    title: str
    kind: str
    caption: list[str]
    picture: Picture
    table: Table
    broad: bool = False
