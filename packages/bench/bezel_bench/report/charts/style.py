"""Style sheets: of the page (light and dark, narrow and on paper), and of a standalone picture."""

import re
from pathlib import Path

from bezel_bench.report.charts.palette import DARK, LIGHT

_CHARTS = Path(__file__).with_name("charts.css").read_text(encoding="utf-8")


def alone(families: str) -> str:
    """Return the style of a standalone picture, on a light ground."""
    return f"text{{font-family:{families}}}" + re.sub(r"var\(--(\w+)\)", lambda match: LIGHT[match[1]], _CHARTS)


def page() -> str:
    """Return the style of the page. On paper it is light whatever the reader's device prefers."""
    light, dark = (";".join(f"--{name}:{colour}" for name, colour in theme.items()) for theme in (LIGHT, DARK))
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"{_CHARTS}{Path(__file__).with_name('page.css').read_text(encoding='utf-8')}"
    )
