"""Colours of charts: Okabe and Ito's for series, the cividis map for quantities; both safe for colour-blind readers.

On white the purple is darker (wine, of P. Tol), which distinguishes it from blue and green. Colour is never the only
mark: series differ in marker and dash too, states in letters and strokes. Pure.
Sources: M. Okabe, K. Ito, Color Universal Design (2008); J. Nunez et al., PLOS ONE 13(7), 2018 (cividis).
"""

import tomllib
from itertools import pairwise
from pathlib import Path

_COLOURS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("colours.toml").read_text("utf-8"))
LIGHT, DARK = _COLOURS["light"], _COLOURS["dark"]
_CIVIDIS = list(_COLOURS["cividis"].values())
SERIES = 5


def cividis(share: float) -> str:
    """Return the colour at `share` (0 to 1) of the map, as #rrggbb."""
    place = min(max(share, 0.0), 1.0) * (len(_CIVIDIS) - 1)
    low, high = list(pairwise(_CIVIDIS))[min(int(place), len(_CIVIDIS) - 2)]
    part = place - min(int(place), len(_CIVIDIS) - 2)
    mixed = (round(a + (b - a) * part) for a, b in zip(rgb(low), rgb(high), strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def rgb(colour: str) -> tuple[int, int, int]:
    """Return #rrggbb as numbers of 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def ink_on(colour: str) -> str:
    """Return black or white, whichever has more contrast on the colour."""
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, colour))


def contrast(colour: str, other: str) -> float:
    """Return the ratio of two colours' luminances, 1 to 21 (WCAG 2.2, 1.4.3)."""
    low, high = sorted((_luminance(colour), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (channel / 255 for channel in rgb(colour))
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
