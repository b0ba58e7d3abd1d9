"""Series of the use of a quota, and their samples. Shapes only."""

from __future__ import annotations

from typing import NamedTuple


class Series(NamedTuple):
    """One series: the use of a metric in a region or zone."""

    metric: str
    location: str


class Point(NamedTuple):
    """A sample: Unix seconds, and the amount as the quota counts."""

    time: float
    used: int
