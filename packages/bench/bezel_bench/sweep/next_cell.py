"""Choice of the next cell of an adaptive sweep. Pure: from the known cells to the next place."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import ceil

from bezel_bench.sweep.grid import Place

# Of the contexts between the measured ones: how many are measured too at each number of users, in turn. They show how
# far an inferred cell is off: only they have measured neighbours as near as it has.
CHECKED = 1 / 3


@dataclass(frozen=True)
class KnownCells:
    """State of a sweep.

    Attributes:
        values: Values of the cells that enter the surface.
        failed: Measured cells that failed under load.
        limited: Measured cells in which the client was the limit, in a second try, too.
        asked: All measured cells.
        askable: All cells that may be measured.
    """

    values: Mapping[Place, float]
    failed: Collection[Place]
    asked: Collection[Place]
    askable: Collection[Place]
    limited: Collection[Place] = ()


def next_cell(known_cells: KnownCells, affordable: Collection[Place], inferable: Collection[Place]) -> Place | None:
    """Return the next cell: of the order of the sweep the first that is affordable; None where nothing is.

    Where the order has only cells that are not affordable, those follow that cannot be inferred either; where nothing
    of it is left, all others. Both begin with the fewest users.

    Args:
        known_cells: The state.
        affordable: The cells that the limits allow.
        inferable: The cells between measured ones.
    """
    order = sweep_order(known_cells.askable)
    left = [place for place in order if place not in known_cells.asked]
    if place := next((place for place in left if place in affordable), None):
        return place
    skipped = beyond(known_cells)
    ended = all(place in skipped for place in left)
    others = [place for place in affordable if ended or place not in inferable]
    return min(others, key=lambda place: place[::-1], default=None)


def sweep_order(askable: Collection[Place]) -> list[Place]:
    """Return the cells that a sweep measures first: every second context and the last one, the fewest users first.

    At each number of users a third of the contexts between are added, in turn.
    """
    rows = sorted({row for row, _ in askable})
    lines = rows[::2] + ([] if len(rows) % 2 else rows[-1:])
    between = [row for row in rows if row not in lines]
    order: list[Place] = []
    for turn, column in enumerate(sorted({column for _, column in askable})):
        count = ceil(CHECKED * len(between))
        checked = sorted(between[(turn * count + number) % len(between)] for number in range(count))
        order += [(row, column) for row in (*lines, *checked) if (row, column) in askable]
    return order


def beyond(known_cells: KnownCells) -> dict[Place, Place]:
    """Return the cells skipped because a lighter one failed or exceeded the client, each with that lighter one.

    Neither excludes heavier loads where a load at least as heavy has succeeded, and one failure alone excludes none:
    another cell with more users, and no shorter a context, failed too. A limit of the client applies to that many users
    at one context: a longer context makes it send less often.
    """
    over = [
        heavy
        for heavy in known_cells.failed
        if any(place[1] > heavy[1] and _heavier(place, heavy) for place in known_cells.failed)
        and not any(_heavier(good, heavy) for good in known_cells.values)
    ]
    more = [heavy for heavy in known_cells.limited if not any(_more_users(good, heavy) for good in known_cells.values)]
    open_places = [place for place in known_cells.askable if place not in known_cells.asked]
    left = {place: heavy for place in open_places for heavy in more if _more_users(place, heavy)}
    return left | {place: heavy for place in open_places for heavy in over if _heavier(place, heavy)}


def _more_users(place: Place, other: Place) -> bool:
    return place[0] == other[0] and place[1] >= other[1]


def _heavier(place: Place, other: Place) -> bool:
    return place[0] >= other[0] and place[1] >= other[1]
