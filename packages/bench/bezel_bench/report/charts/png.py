"""Figure as a PNG slide: title, kind, figure, caption, on a light ground.

Drawn by resvg. Its text needs a font of the machine: without one, labels would silently be missing, so that is refused.
"""

import textwrap
from functools import cache

from bezel_base.errors import Problem, UserError
from bezel_bench.report.charts.html import add, el, svg
from bezel_bench.report.charts.palette import LIGHT
from bezel_bench.report.charts.plot import text
from bezel_bench.report.charts.style import alone
from bezel_bench.report.figure import Figure
from bezel_bench.report.format import shorten

WIDTH, HEIGHT, ZOOM = 1280.0, 720.0, 1.5
_DRAWN, _BROAD = 760.0, 900.0
_FAMILIES = ("DejaVu Sans", "Liberation Sans", "Noto Sans", "Roboto", "Arial", "Helvetica", "Segoe UI", "Ubuntu")


def as_png(figure: Figure, source: str) -> bytes:
    """Draw the picture, 1920 x 1080; `source` is its last line: the measured system and the date.

    Raises:
        UserError: This machine has no font to write labels with.
    """
    return _rasterise(as_slide(figure, source, _family()), ZOOM)


def as_slide(figure: Figure, source: str, family: str) -> str:
    """Return the slide as SVG."""
    slide = el("svg", {"viewBox": f"0 0 {WIDTH:.0f} {HEIGHT:.0f}", "width": WIDTH, "height": HEIGHT})
    big = ".big{font-size:30px;font-weight:600}.kind{font-size:19px;font-weight:600}.small{font-size:15px}"
    add(slide, el("style", {}, f"{alone(repr(family))}{big}"))
    add(slide, el("rect", {"width": WIDTH, "height": HEIGHT, "fill": LIGHT["ground"]}))
    add(slide, text(40, 54, shorten(figure.title, 72), "big"))
    add(slide, text(40, 84, figure.kind[:1].upper() + figure.kind[1:], "kind"))
    lines = textwrap.wrap(" ".join(figure.caption), 150)[:3]
    base = HEIGHT - 34 - 20 * len(lines)
    inner = figure.picture.draw(_BROAD if figure.broad else _DRAWN)
    for name, value in {"x": 40.0, "y": 98.0, "width": WIDTH - 80, "height": base - 112}.items():
        inner.set(name, f"{value:.0f}")
    add(slide, inner)
    for place, content in enumerate(lines):
        add(slide, text(40, base + 10 + 20 * place, content, "small soft"))
    add(slide, text(40, HEIGHT - 16, shorten(source, 150), "small soft"))
    return svg(slide)


@cache
def _family() -> str:
    """Return a font family that this machine has."""
    blank = _trial("")
    for family in _FAMILIES:
        if _trial(family) != blank:
            return family
    consequence = f"this machine has none of the fonts {', '.join(_FAMILIES)}, so the picture would have no labels."
    raise UserError(Problem("--png", None, consequence, "install one of them (Debian: fonts-dejavu-core)."))


def _trial(family: str) -> bytes:
    letter = el("text", {"x": 2, "y": 16, "font-family": family, "font-size": 14}, "M" if family else "")
    return _rasterise(svg(el("svg", {"viewBox": "0 0 20 20", "width": 20, "height": 20}, letter)), 1.0)


def _rasterise(picture: str, zoom: float) -> bytes:
    import resvg_py

    return resvg_py.svg_to_bytes(svg_string=picture, zoom=zoom)
