"""Choice of the next cell, and the test whether enough is known.

Pure: from the known cells to the next place. The scout looks for the knee with the shortest and the longest context,
upwards and no further than necessary. From then on the fit selects the cell that reduces the uncertainty of the whole
grid most for the fewest requests.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bezel.bench.sweep.grid import Grid, Place
from bezel.bench.sweep.surface import Array, Fit

# From one step of the scout to the next users grow about fourfold: a smaller gain than this means saturation.
SATURATED = 1.15
_FAR_TRIES = 2
_FAR_SHARE = 1 / 3  # of all requests that may be sent: the most that these cells take together
_LEAST_CELLS, _LEAST_SHARE = 6, 1 / 6  # measured, before the fit's own uncertainty is meaningful
_TAIL, _TAIL_ERROR = 0.9, 2.0  # nine in ten of the inferred cells are known to twice the requested error


@dataclass(frozen=True)
class Known:
    """State of a sweep.

    Attributes:
        values: Values of the cells that enter the fit.
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


def beyond(known: Known) -> dict[Place, Place]:
    """Return the cells skipped because a lighter one failed or exceeded the client, each with that lighter one.

    Neither excludes heavier loads where a load at least as heavy has succeeded. A limit of the client applies to that
    many users at one context: a longer context makes it send less often.
    """
    over = [heavy for heavy in known.failed if not any(_heavier(good, heavy) for good in known.values)]
    more = [heavy for heavy in known.limited if not any(_more_users(good, heavy) for good in known.values)]
    open_places = [place for place in known.askable if place not in known.asked]
    left = {place: heavy for place in open_places for heavy in more if _more_users(place, heavy)}
    return left | {place: heavy for place in open_places for heavy in over if _heavier(place, heavy)}


def scout(grid: Grid, known: Known, affordable: Collection[Place], most: int | None) -> Place | None:
    """Return the next cell of the search at the shortest and the longest context: for the knee, then far beyond it."""
    rows = sorted({row for row, _ in known.askable})
    ends = list(dict.fromkeys([rows[0], rows[-1]] if rows else []))
    far = ends
    if most is not None:
        dear = max((grid.requests(place) for place in known.askable), default=1)
        far = ends[: int(_FAR_SHARE * most / dear)]
    places = [_climb(grid, known, row) for row in ends] + [_far(known, row) for row in far]
    return next((place for place in places if place in affordable), None)


def _climb(grid: Grid, known: Known, row: int) -> Place | None:
    before: float | None = None
    failures = 0
    columns = [column for column in _ladder(grid.users) if (row, column) in known.askable]
    for column in columns:
        place = (row, column)
        if place not in known.asked:
            return place
        if place in known.limited:
            return None
        value = known.values.get(place)
        failures = failures + 1 if value is None else 0
        if failures == 2 or (value and before and value < SATURATED * before):
            return None
        before = value or before
    return None


def _far(known: Known, row: int) -> Place | None:
    """Return a row's cell with the most users, where throughput may have fallen; with fewer where that failed."""
    left = beyond(known)
    columns = sorted((column for at, column in known.askable if at == row), reverse=True)
    for column in [candidate for candidate in columns if (row, candidate) not in left][:_FAR_TRIES]:
        if (row, column) not in known.asked:
            return row, column
        if (row, column) in known.values:
            return None
    return None


def _ladder(users: Sequence[int]) -> list[int]:
    """Return columns whose users grow at least fourfold from one to the next."""
    taken = [0]
    for column, count in enumerate(users):
        if count >= 4 * users[taken[-1]]:
            taken.append(column)
    return taken


def most_telling(grid: Grid, fit: Fit, known: Known, affordable: Collection[Place]) -> Place | None:
    """Return the cell whose measurement reduces the variance of all unmeasured ones most per request."""
    candidates = sorted(place for place in affordable if place not in known.asked)
    if not candidates:
        return None
    width = len(grid.users)
    targets = [row * width + column for row, column in inferred(known)]
    at = [row * width + column for row, column in candidates]
    shared = fit.covariance[np.ix_(targets, at)]
    gained = np.sum(shared**2, axis=0) / (np.diag(fit.covariance)[at] + fit.noise**2)
    return candidates[int(np.argmax(gained / np.array([grid.requests(place) for place in candidates])))]


def errors(fit: Fit, known: Known) -> Array:
    """Return the relative standard errors of the inferred cells."""
    return np.array([fit.spread[place] for place in inferred(known)])


def enough(fit: Fit, known: Known, error: float) -> bool:
    """Whether the inferred cells are known to `error` in the median, nine in ten of them to twice that."""
    if len(known.values) < max(_LEAST_CELLS, _LEAST_SHARE * len(known.askable)):
        return False
    found = errors(fit, known)
    return not found.size or bool(np.median(found) <= error and np.quantile(found, _TAIL) <= _TAIL_ERROR * error)


def inferred(known: Known) -> list[Place]:
    """Return the cells that were not measured and are not beyond a failure, in order."""
    left = beyond(known)
    return sorted(place for place in known.askable if place not in known.asked and place not in left)


def _more_users(place: Place, other: Place) -> bool:
    return place[0] == other[0] and place[1] >= other[1]


def _heavier(place: Place, other: Place) -> bool:
    return place[0] >= other[0] and place[1] >= other[1]
