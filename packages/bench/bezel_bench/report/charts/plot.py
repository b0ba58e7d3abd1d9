"""Line chart over two axes as SVG: grid, legend, ranges, labels without overlap. Leaves out the choice of data.

Lines differ in colour, dash and marker, so that any one of the three may be lost. Text has the same size at every
width: a chart is redrawn for a narrow place instead of being scaled down to it.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from xml.etree.ElementTree import Element

from bezel_bench.report.charts.axes import Axis, Scale, scale
from bezel_bench.report.charts.html import add, el
from bezel_bench.report.charts.labels import Labels, legend
from bezel_bench.report.charts.palette import SERIES
from bezel_bench.report.format import compact, percent, shorten

_LEFT, _RIGHT, _BELOW, _LEGEND_LINE, _TITLE = 48.0, 16.0, 42.0, 19.0, 22.0


@dataclass(frozen=True)
class Dot:
    """One value.

    Attributes:
        low: Lower end of its range, with `high` the upper, in the unit of y.
        label: Text beside it, where there is room.
        tooltip: Shown by a pointer.
        mark: A letter beside a cross instead of the marker; such a dot is not joined to the line.
        hollow: Whether it is drawn as an outline: not measured.
        ring: Name of this dot, drawn with a ring around it.
    """

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    label: str = ""
    tooltip: str = ""
    mark: str = ""
    hollow: bool = False
    ring: str = ""


@dataclass(frozen=True)
class Line:
    """Dots in the order of their line; `steps` are the points of a curve without markers."""

    label: str
    dots: list[Dot]
    steps: list[tuple[float, float]] = field(default_factory=list)


@dataclass(frozen=True)
class Chart:
    """Lines and their axes; `title` and `description` are for a screen reader."""

    title: str
    description: str
    lines: list[Line]
    x: Axis
    y: Axis

    def draw(self, width: float) -> Element:
        """Draw the chart at a width in pixels."""
        named = [place for place, line in enumerate(self.lines) if line.dots or line.steps] if self.lines[1:] else []
        names = [shorten(self.lines[place].label, int((width - 60) / 6.6)) for place in named]
        places = legend(names, width)
        top = _TITLE + _LEGEND_LINE * (places[-1][1] + 1 if places else 0) + 4
        height = top + _BELOW + min(width * 0.56, 300.0)
        picture = canvas(self.title, self.description, width, height)
        dots = [dot for line in self.lines for dot in line.dots]
        curves = [place for line in self.lines for place in line.steps]
        x = scale(self.x, [*(dot.x for dot in dots), *(at for at, _ in curves)], _LEFT, width - _RIGHT)
        spread = [value for dot in dots for value in (dot.y, dot.low, dot.high) if value is not None]
        y = scale(self.y, [*spread, *(at for _, at in curves)], height - _BELOW, top)
        add(picture, *_frame(x, y, width))
        for series, name, (left, row) in zip(named, names, places, strict=True):
            middle = _TITLE + _LEGEND_LINE * row + 6
            stroke = el("path", {"class": f"l s{series % SERIES}", "d": f"M{left:.1f} {middle:.1f}h22"})
            add(picture, stroke, marker(series, left + 11, middle), text(left + 28, middle + 4, name))
        for place, line in enumerate(self.lines):
            add(picture, *_line(place, line, x, y))
        return add(picture, *_labels(self.lines, x, y, Labels(_LEFT, width - 4, top - 4, height - _BELOW)))


def canvas(title: str, description: str, width: float, height: float) -> Element:
    """Return an empty picture with a title and a description."""
    size: dict[str, str | float] = {"viewBox": f"0 0 {width:.0f} {height:.0f}", "width": width, "height": height}
    return el("svg", {"role": "img", "aria-label": f"{title}. {description}", **size}, el("title", {}, title))


def text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> Element:
    """Return text with its baseline at y."""
    return el("text", {"x": x, "y": y, "class": f"t {kind}".strip(), "text-anchor": anchor}, content)


def marker(place: int, x: float, y: float, *, hollow: bool = False) -> Element:
    """Return the marker of the series at `place`."""
    size = 4.4
    kind = place % SERIES
    shapes = (
        f"M{x - size:.1f} {y:.1f}a{size} {size} 0 1 0 {2 * size} 0a{size} {size} 0 1 0 {-2 * size} 0z",
        f"M{x - 4:.1f} {y - 4:.1f}h8v8h-8z",
        f"M{x:.1f} {y - 5.4:.1f}l5.4 9.4h-10.8z",
        f"M{x:.1f} {y - 5.8:.1f}l5.8 5.8l-5.8 5.8l-5.8 -5.8z",
        f"M{x:.1f} {y + 5.4:.1f}l5.4 -9.4h-10.8z",
    )
    return el("path", {"class": f"m{' hollow' if hollow else ''} s{kind}", "d": shapes[kind]})


def _frame(x: Scale, y: Scale, width: float) -> list[Element]:
    bottom, left = y.begin, x.begin
    drawn = []
    for value in y.ticks(26):
        at = y(value)
        drawn.append(el("path", {"class": "grid", "d": f"M{left:.1f} {at:.1f}H{width - _RIGHT:.1f}"}))
        drawn.append(text(left - 6, at + 4, _tick(y.axis, value), "soft", "end"))
    for value in x.ticks(40):
        at = x(value)
        drawn.append(el("path", {"class": "grid", "d": f"M{at:.1f} {bottom:.1f}v5"}))
        drawn.append(text(at, bottom + 18, _tick(x.axis, value), "soft", "middle"))
    drawn.append(el("path", {"class": "axis", "d": f"M{left:.1f} {bottom:.1f}H{width - _RIGHT:.1f}"}))
    drawn.append(text(2, 13, y.axis.title + (" (log scale)" if y.axis.log else ""), "b"))
    drawn.append(text(width - _RIGHT, bottom + 36, x.axis.title, "b", "end"))
    return drawn


def _tick(axis: Axis, value: float) -> str:
    return percent(round(value, 6)) if axis.as_percent else compact(value)


def _line_points(line: Line, x: Scale, y: Scale) -> list[tuple[float, float]]:
    """Return the points that a line joins: those of its curve, or of its dots without a mark."""
    places = line.steps or [(dot.x, dot.y) for dot in line.dots if not dot.mark]
    return [(x(across), y(down)) for across, down in places]


def _line(place: int, line: Line, x: Scale, y: Scale) -> list[Element]:
    kind = f"s{place % SERIES}"
    drawn = []
    joined = _line_points(line, x, y)
    if len(joined) > 1:
        path = "L".join(f"{across:.1f} {down:.1f}" for across, down in joined)
        drawn.append(el("path", {"class": f"l {kind}", "d": f"M{path}"}))
    for dot in line.dots:
        across, down = x(dot.x), y(dot.y)
        group = el("g", {})
        if dot.tooltip:
            add(group, el("title", {}, dot.tooltip))
        if dot.low is not None and dot.high is not None and not dot.mark:
            low, high = y(dot.low), y(dot.high)
            ends = f"M{across - 3:.1f} {high:.1f}h6M{across:.1f} {high:.1f}V{low:.1f}m-3 0h6"
            add(group, el("path", {"class": f"w {kind}", "d": ends}))
        if dot.ring:
            add(group, el("circle", {"class": "ring", "cx": across, "cy": down, "r": 9.5}))
        if dot.mark:
            cross = f"M{across - 4:.1f} {down - 4:.1f}l8 8m0 -8l-8 8"
            add(group, el("path", {"class": f"x {kind}", "d": cross}))
        else:
            add(group, marker(place, across, down, hollow=dot.hollow))
        drawn.append(group)
    return drawn


def _labels(lines: list[Line], x: Scale, y: Scale, labels: Labels) -> list[Element]:
    """Return the texts beside dots, above all lines: names of rings first, then marks, then the rest."""
    dots = [dot for line in lines for dot in line.dots]
    for line in lines:
        labels.keep_off(list(pairwise(_line_points(line, x, y))))
    for dot in dots:
        labels.keep_clear(x(dot.x), y(dot.y))
        if dot.low is not None and dot.high is not None and not dot.mark:
            labels.keep_off([((x(dot.x), y(dot.low)), (x(dot.x), y(dot.high)))])
    drawn = []
    for dot in sorted(dots, key=lambda dot: (not dot.ring, not dot.mark)):
        shown = dot.ring or " ".join(part for part in (dot.mark, dot.label) if part)
        if shown and (place := labels.place(x(dot.x), y(dot.y), shown, far=bool(dot.ring))):
            drawn.append(text(*place, shown, "halo b" if dot.ring or dot.mark else "halo soft"))
    return drawn
