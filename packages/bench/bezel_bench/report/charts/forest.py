"""Forest plot as SVG: differences with their intervals, one line each, around a line of no difference."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from bezel_bench.report.charts.axes import Axis, scale
from bezel_bench.report.charts.html import add, el
from bezel_bench.report.charts.plot import canvas, marker, text
from bezel_bench.report.format import shorten


@dataclass(frozen=True)
class Change:
    """Change of one figure as a share, and its interval; None for too few values.

    `is_shown`: the interval excludes 0.
    """

    label: str
    change: float | None
    low: float | None
    high: float | None
    tooltip: str

    @property
    def is_shown(self) -> bool:
        """Whether there is a significant difference."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def verdict(self) -> str:
        """Return the interval's meaning in words."""
        if self.change is None:
            return "too few rounds to compare"
        return "difference" if self.is_shown else "no difference shown"


@dataclass(frozen=True)
class Forest:
    """Changes, drawn one below the other."""

    title: str
    description: str
    changes: Sequence[Change]

    def draw(self, width: float) -> Element:
        """Draw the chart at a width in pixels: a name, its meaning, its interval."""
        line, top = 56.0, 24.0
        bottom = top + line * len(self.changes)
        picture = canvas(self.title, self.description, width, bottom + 42)
        ends = [abs(end) for change in self.changes for end in (change.low, change.high, 0.01) if end is not None]
        reach = max(ends) * 1.08
        x = scale(Axis("", low=-reach, high=reach), [], 16, width - 16)
        add(picture, text(2, 13, "change, with its interval", "b"))
        for value in x.ticks(64):
            add(picture, el("path", {"class": "grid", "d": f"M{x(value):.1f} {top:.1f}V{bottom:.1f}"}))
            add(picture, text(x(value), bottom + 17, f"{value * 100:+.3g} %" if value else "0", "soft", "middle"))
        add(picture, el("path", {"class": "axis", "d": f"M{x(0):.1f} {top:.1f}V{bottom:.1f}"}))
        for place, change in enumerate(self.changes):
            base = top + line * place
            name = shorten(change.label, int(width / 7.9))
            add(picture, text(4, base + 16, name, "halo b"), text(4, base + 32, change.verdict, "halo soft"))
            if change.change is None or change.low is None or change.high is None:
                continue
            middle = base + 44
            ends_at = f"M{x(change.low):.1f} {middle:.1f}H{x(change.high):.1f}m0 -4v8"
            whisker = el("path", {"class": "l s0", "d": f"{ends_at}M{x(change.low):.1f} {middle - 4:.1f}v8"})
            dot = marker(0, x(change.change), middle, hollow=not change.is_shown)
            add(picture, el("g", {}, el("title", {}, change.tooltip), whisker, dot))
        add(picture, text(width - 4, bottom + 35, "change of the figure", "b", "end"))
        return picture
