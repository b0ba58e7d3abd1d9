"""Distance of two colours, for readers who see all colours and for readers who do not.

Deficiencies after Machado, Oliveira, Fernandes (2009), severity 1.0, in linear RGB; distances in OKLab (Ottosson,
2020).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bezel_bench.report.charts.palette import rgb

if TYPE_CHECKING:
    from collections.abc import Iterable

Triple = tuple[float, float, float]
SIGHTS: dict[str, tuple[Triple, Triple, Triple]] = {
    "typical": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
_LMS: tuple[Triple, ...] = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
_LAB: tuple[Triple, ...] = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def perceive(colour: str, sight: str) -> Triple:
    """A colour's place in OKLab, as readers of that sight see it."""
    linear = _times(SIGHTS[sight], _triple(_linear(part / 255) for part in rgb(colour)))
    roots = _triple(math.cbrt(max(part, 0.0)) for part in _times(_LMS, linear))
    return _times(_LAB, roots)


def distance(one: str, other: str, sight: str) -> float:
    """How far apart two colours look: 0 is the same, black and white are 1 apart."""
    return math.dist(perceive(one, sight), perceive(other, sight))


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def _times(matrix: tuple[Triple, ...], vector: Triple) -> Triple:
    return _triple(sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)


def _triple(parts: Iterable[float]) -> Triple:
    one, two, three = parts
    return one, two, three
