"""Time series of quota use and their points. Shapes only."""

from typing import NamedTuple


class Series(NamedTuple):
    """Key of one series: a quota's metric in a region or zone."""

    metric: str
    location: str


class Point(NamedTuple):
    """A sample: Unix seconds, and the amount as the quota counts."""

    time: float
    used: int
