"""Choice of the next cell of an adaptive sweep. Pure: from the known cells to the next place."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bezel.bench.sweep.grid import Grid, Place

# Of all requests that may be sent: the most that the cells with the most users take together.
_FAR_SHARE = 1 / 3


@dataclass(frozen=True)
class Known:
    """State of a sweep.

    Attributes:
        values: Values of the cells that enter the surface.
        failed: Measured cells that failed under load.
        limited: Measured cells in which the client was the limit.
        asked: All measured cells.
        askable: All cells that may be measured.
    """

    values: Mapping[Place, float]
    failed: Collection[Place]
    asked: Collection[Place]
    askable: Collection[Place]
    limited: Collection[Place] = ()


def next_cell(grid: Grid, known: Known, affordable: Collection[Place], most: int | None) -> Place | None:
    """Return the next cell: the shortest and the longest context with the most users, then the fewest users first.

    The first two show whether throughput falls where many users wait. They are left out where they take more than
    their share of `most` requests. From then on each number of users is measured at every context.
    """
    rows = sorted({row for row, _ in known.askable})
    ends = dict.fromkeys(max(place for place in known.askable if place[0] == row) for row in (*rows[:1], *rows[-1:]))
    for number, place in enumerate(ends, 1):
        fits = most is None or number * grid.requests(place) <= _FAR_SHARE * most
        if fits and place in affordable:
            return place
    return min(affordable, key=lambda place: place[::-1], default=None)


def beyond(known: Known) -> dict[Place, Place]:
    """Return the cells skipped because a lighter one failed or exceeded the client, each with that lighter one.

    Neither excludes heavier loads where a load at least as heavy has succeeded, and one failure alone excludes none:
    another cell that is heavier failed too. A limit of the client applies to that many users at one context: a longer
    context makes it send less often.
    """
    over = [
        heavy
        for heavy in known.failed
        if any(place != heavy and _heavier(place, heavy) for place in known.failed)
        and not any(_heavier(good, heavy) for good in known.values)
    ]
    more = [heavy for heavy in known.limited if not any(_more_users(good, heavy) for good in known.values)]
    open_places = [place for place in known.askable if place not in known.asked]
    left = {place: heavy for place in open_places for heavy in more if _more_users(place, heavy)}
    return left | {place: heavy for place in open_places for heavy in over if _heavier(place, heavy)}


def _more_users(place: Place, other: Place) -> bool:
    return place[0] == other[0] and place[1] >= other[1]


def _heavier(place: Place, other: Place) -> bool:
    return place[0] >= other[0] and place[1] >= other[1]
