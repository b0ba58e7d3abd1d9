"""Heat map as SVG: contexts down, loads across, each cell with its figure; states are distinct without colour.

Measured cells are solid, inferred ones hatched and marked "~", or "~~" where they have no range. Cells that failed, are
infeasible, queued or limited by the client have their own mark and strokes and no colour, because they have no figure
to compare.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from bezel_bench.report.charts.html import Value, add, el
from bezel_bench.report.charts.labels import legend, text_width
from bezel_bench.report.charts.palette import cividis, ink_on
from bezel_bench.report.charts.plot import canvas, text
from bezel_bench.report.format import MARKS, STATES, compact

_LEFT, _TOP, _BELOW, _GAP = 52.0, 40.0, 62.0, 1.0
_DOWN, _NARROWEST, _LOADS = 29.0, 44.0, 30.0  # height and least width of a cell, room for the loads below a band
LEGEND = (
    *(("", "measured"), ("~", "inferred"), ("~~", "inferred, no range")),
    *((mark, STATES[state].partition(":")[0]) for state, mark in MARKS.items()),
    ("·", "not measured"),
)


@dataclass(frozen=True)
class Box:
    """One cell: its figure, marked where it is inferred, or the mark of its state. `tooltip` is shown by a pointer."""

    value: float | None
    mark: str = ""
    inferred: bool = False
    tooltip: str = ""
    note: str = ""


@dataclass(frozen=True)
class HeatMap:
    """Heat map; rows and columns are the values of its two axes, `boxes` by (row value, column value).

    With `log` equal steps of colour are equal factors.
    """

    title: str
    description: str
    unit: str
    columns_title: str
    log: bool
    rows: Sequence[int]
    columns: Sequence[float]
    boxes: Mapping[tuple[int, float], Box]

    def draw(self, width: float) -> Element:
        """Draw the map at a width: as many columns beside each other as have room, the others in bands below."""
        most = max(1, int((width - _LEFT - 4) / _NARROWEST))
        count = math.ceil(len(self.columns) / most)
        bands = [
            self.columns[len(self.columns) * at // count : len(self.columns) * (at + 1) // count] for at in range(count)
        ]
        across = max(_NARROWEST, min(90.0, (width - _LEFT - 4) / max(map(len, bands), default=1)))
        used = {box.mark for box in self.boxes.values()}
        states = [(mark, name) for mark, name in LEGEND if mark in used]
        keys = legend([name for _, name in states], width)
        band = _DOWN * len(self.rows) + _LOADS
        base = _TOP + band * len(bands) - _LOADS
        picture = canvas(self.title, self.description, width, base + _BELOW - 12 + 22 * (keys[-1][1] + 1))
        add(picture, text(2, 13, "context, tokens ↓", "b"), text(_LEFT, 30, f"{self.columns_title} →", "b"))
        values = [box.value for box in self.boxes.values() if box.value is not None]
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        for place, columns in enumerate(bands):
            add(picture, *self._band(columns, _TOP + band * place, across, low, high))
        add(picture, *_bar(low, high, self.unit, base + 26, " (log scale)" if self.log else "") if values else ())
        for (mark, name), (left, line) in zip(states, keys, strict=True):
            middle = base + 56 + 22 * line
            box = Box(1.0, mark, inferred=bool(mark)) if mark in ("", "~", "~~") else Box(None, mark)
            add(picture, _box(box, 0.5, left, middle - 8, 24, 16), text(left + 30, middle + 4, name))
        return picture

    def _band(self, columns: Sequence[float], top: float, across: float, low: float, high: float) -> list[Element]:
        """Return the cells of some columns, with the names of their rows and loads."""
        drawn = []
        for place, row in enumerate(self.rows):
            middle = top + _DOWN * (place + 0.5)
            drawn.append(text(_LEFT - 6, middle + 4, f"{row:,}" if row < 100_000 else compact(row), "soft", "end"))
            for column, load in enumerate(columns):
                box = self.boxes.get((row, load), Box(None, "·", tooltip="not measured"))
                share = 0.5 if box.value is None else self._share(box.value, low, high)
                corner = (_LEFT + across * column, top + _DOWN * place)
                drawn.append(_box(box, share, *corner, across - _GAP, _DOWN - _GAP))
        for column, load in enumerate(columns):
            middle, below = _LEFT + across * (column + 0.5), top + _DOWN * len(self.rows) + 15
            drawn.append(text(middle, below, compact(load), "soft", "middle"))
        return drawn

    def _share(self, value: float, low: float, high: float) -> float:
        """Return the position of a value between the lowest and the highest, 0 to 1."""
        if low == high:
            return 0.5
        if self.log and low > 0:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)


def _box(box: Box, share: float, x: float, y: float, width: float, height: float) -> Element:
    group = el("g", {})
    if box.tooltip:
        add(group, el("title", {}, box.tooltip))
    frame: dict[str, Value] = {"x": x, "y": y, "width": width, "height": height}
    if box.value is None:
        add(group, el("rect", {**frame, "class": "none"}))
        if strokes := _strokes(box.mark, x, y, width, height):
            add(group, el("path", {"class": f"stroke{' bad' if box.mark == 'x' else ''}", "d": strokes}))
        if box.mark != "x":
            add(group, text(x + width / 2, y + height / 2 + 4, box.mark, "b", "middle"))
        return group
    colour = cividis(share)
    ink = ink_on(colour)
    add(group, el("rect", {**frame, "fill": colour}))
    if box.inferred:
        add(group, el("path", {"d": _hatching(x, y, width, height), "stroke": ink, "class": "hatch"}))
    if box.tooltip:
        shown = f"{box.mark}{compact(box.value)}{box.note}"
        add(group, el("text", {"x": x + width / 2, "y": y + height / 2 + 4, "class": "v", "fill": ink}, shown))
    return group


def _strokes(mark: str, x: float, y: float, width: float, height: float) -> str:
    if mark == "x":
        left, right, top, bottom = x + 5, x + width - 5, y + 5, y + height - 5
        return f"M{left:.1f} {top:.1f}L{right:.1f} {bottom:.1f}M{left:.1f} {bottom:.1f}L{right:.1f} {top:.1f}"
    if mark == "Q":
        return "".join(f"M{x:.1f} {y + at:.1f}h{width:.1f}" for at in (2.5, height - 2.5))
    if mark == "C":
        return f"M{x + 1:.1f} {y + 1:.1f}h{width - 2:.1f}v{height - 2:.1f}h{2 - width:.1f}z"
    return ""


def _hatching(x: float, y: float, width: float, height: float, step: float = 6.0) -> str:
    """Return diagonal strokes over a rectangle, clipped at its edges; avoids an SVG pattern, which needs an id."""
    strokes, at = [], step
    while at < width + height:
        left, right = max(0.0, at - height), min(at, width)
        strokes.append(f"M{x + left:.1f} {y + at - left:.1f}L{x + right:.1f} {y + at - right:.1f}")
        at += step
    return "".join(strokes)


def _bar(low: float, high: float, unit: str, y: float, scaled: str) -> list[Element]:
    """Return the colour key: low value, ten steps, high value and unit."""
    begin = compact(low)
    left = 4 + text_width(begin) + 4
    steps = [
        el("rect", {"x": left + 12 * place, "y": y, "width": 12.5, "height": 10, "fill": cividis(place / 9)})
        for place in range(10)
    ]
    return [text(4, y + 9, begin, "soft"), *steps, text(left + 128, y + 9, f"{compact(high)} {unit}{scaled}", "soft")]
