"""A sweep: cell after cell is asked until the surface is known well enough, or as far as the limits allow.

Owns the loop: what is known, what is next, what it may cost, what is kept. Leaves out how a cell is measured (the
`Measure` that it is given, which waits until the server is idle), and what the cells say in the end (`conclude`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bezel.bench.sweep import acquisition
from bezel.bench.sweep.budget import pace, tokens
from bezel.bench.sweep.grid import refusals
from bezel.bench.sweep.run_once import INTERRUPTED, LostError, Once
from bezel.bench.sweep.surface import fit
from bezel.bench.sweep.validity import judged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bezel.bench.result.document import Cell
    from bezel.bench.sweep.budget import Limits, Pace
    from bezel.bench.sweep.cell_request import Measure
    from bezel.bench.sweep.grid import Bounds, Grid, Place, Refusal
    from bezel.bench.sweep.journal import Ledger
    from bezel.bench.sweep.surface import Array, Fit

SHARE = 0.25
ERROR = 0.03
# A server that answers nothing to so many loads in a row is gone.
GONE = 6
# One that took them, and for the deadline of a request answered none, hangs: two loads say so.
HANGS = 2
LOST = "had no answer at all"


@dataclass(frozen=True)
class Sweep:
    """What is swept, how well, and what it may take.

    Attributes:
        grid: The cells.
        bounds: What is known of the server beforehand.
        limits: Of time, money and requests.
        metric: That the surface is of: one of `budget.RATES`.
        error: Adaptive: relative standard error at which half of the inferred cells are known well enough, nine in ten
            of them at twice that. None asks every cell that can be.
    """

    grid: Grid
    bounds: Bounds
    limits: Limits
    metric: str = "output_tokens_per_second"
    error: float | None = ERROR


@dataclass(frozen=True)
class Progress:
    """Where a sweep stands, before its next cell or at the end.

    Attributes:
        place: Of the next cell; None at the end.
        measured: Cells so far; `open` can still be asked.
        sent: Requests so far.
        seconds: Taken so far; `usd` cost so far, None where the price is not known.
        seconds_left: That it takes at most from here; None where nothing says it.
        error: Median standard error of the inferred cells; None before there is a fit.
    """

    place: Place | None
    measured: int
    open: int
    sent: int
    seconds: float
    usd: float | None
    seconds_left: float | None
    error: float | None


@dataclass(frozen=True)
class SweepStatus:
    """All that is known at one time, from the measured cells alone.

    Attributes:
        sweep: What is swept.
        refused: The cells that are never asked.
        cells: The measured ones.
        seconds: That each of them took.
        lost: Seconds that gave no cell: of those that a kill interrupted, or that nobody answered.
        start: Scales that an earlier fit found.
    """

    sweep: Sweep
    refused: Mapping[Place, Refusal]
    cells: Mapping[Place, Cell]
    seconds: Mapping[Place, float]
    lost: float
    start: Array | None = None

    @cached_property
    def judged(self) -> tuple[dict[Place, float], dict[Place, str]]:
        """Values that enter the fit, and why the other measured ones do not."""
        return judged(self.sweep.grid, self.cells, self.sweep.metric)

    @cached_property
    def known(self) -> acquisition.Known:
        """The same, for choosing."""
        askable = {place for place in self.sweep.grid.places() if place not in self.refused}
        failed = {place for place, cell in self.cells.items() if cell.state == "failed"}
        limited = {place for place, cell in self.cells.items() if cell.state == "client_limited"}
        return acquisition.Known(self.judged[0], failed, set(self.cells), askable, limited)

    @cached_property
    def fitted(self) -> tuple[Fit, Array] | None:
        """The surface and its scales; None before there is a value."""
        grid, values = self.sweep.grid, self.judged[0]
        return fit(grid.contexts, grid.users, values, self.start) if values else None

    @cached_property
    def pace(self) -> Pace:
        """How long cells take."""
        return pace(self.sweep.grid, self.judged[0], self.sweep.metric, sorted(self.seconds.items()))

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return sum(self.seconds.values()) + self.lost

    @property
    def sent(self) -> int:
        """Requests so far."""
        return sum(cell.requests for cell in self.cells.values())

    def estimate(self, place: Place) -> float | None:
        """Seconds that a cell is going to take."""
        rate = None
        if self.sweep.error is not None and self.fitted:
            rate = float(self.fitted[0].value[place]) / tokens(self.sweep.grid, self.sweep.metric, place)
        return self.pace.seconds(self.sweep.grid, place, rate)


@dataclass(frozen=True)
class Ended:
    """A sweep's end: all that is known, and why it ended.

    Attributes:
        early: Before its time: somebody ended it, or its server was lost.
    """

    standing: SweepStatus
    reason: str
    early: bool = False


def run_sweep(
    sweep: Sweep,
    measure: Measure,
    ledger: Ledger,
    clock: Callable[[], float],
    show: Callable[[Progress], None],
) -> Ended:
    """Measures what is needed.

    Args:
        sweep: What is swept.
        measure: Sends one load and reads it.
        ledger: An open one; what it holds is not measured again.
        clock: Seconds that only grow.
        show: Told before each cell and at the end.

    Raises:
        KeyboardInterrupt: The first load was interrupted.
        UserError: The first load could not be sent.
    """
    grid = sweep.grid
    refused = refusals(grid, sweep.bounds)
    by_load = {(grid.contexts[row], grid.users[column]): (row, column) for row, column in grid.places()}
    once = Once(measure, ledger, sweep.limits, clock)
    taken = {by_load[one.cell.context_tokens or 0, one.cell.users or 0]: one for one in once.answered.values()}
    cells = {place: one.cell for place, one in taken.items()}
    seconds = {place: one.seconds for place, one in taken.items()}
    lost = once.lost_seconds
    measured: list[Cell] = []
    start: Array | None = None
    while True:
        standing = SweepStatus(sweep, refused, dict(cells), dict(seconds), lost, start)
        place, reason = _gone(measured) or _next(standing)
        show(_progress(standing, place))
        if place is None:
            return Ended(standing, reason, early=LOST in reason)
        try:
            found = once.measure(grid.wanted(place), standing.estimate(place))
        except KeyboardInterrupt:
            if not cells:
                raise
            return Ended(standing, INTERRUPTED, early=True)
        except LostError as error:
            return Ended(standing, str(error), early=True)
        cells[place], seconds[place] = found.cell, found.seconds
        measured.append(found.cell)
        if sweep.error is not None and standing.fitted:
            start = standing.fitted[1]


def _gone(measured: Sequence[Cell]) -> tuple[None, str] | None:
    hangs = [cell.client is not None and bool(cell.client.silent_seconds) for cell in measured[-HANGS:]]
    most = HANGS if all(hangs) else GONE
    last = measured[-most:]
    if len(last) < most or any(cell.state != "failed" or cell.requests > sum(cell.failures.values()) for cell in last):
        return None
    return None, f"the last {most} cells {LOST}, the last one: {last[-1].reason}"


def _next(standing: SweepStatus) -> tuple[Place | None, str]:
    """The next cell, or None and why there is none."""
    sweep, known = standing.sweep, standing.known
    still_open = [one for one in sorted(known.askable) if one not in known.asked]
    kept_out = {one: _kept_out(standing, one) for one in still_open}
    place: Place | None = None
    if sweep.error is not None:
        # The scout may go beyond a failure: a heavier load that succeeds says that the failure was none of the load's.
        affordable = [one for one in still_open if not kept_out[one]]
        place = acquisition.scout(sweep.grid, known, affordable, sweep.limits.requests)
        left = acquisition.beyond(known)
        still_open = [one for one in still_open if one not in left]
    affordable = [one for one in still_open if not kept_out[one]]
    if place is None and not still_open:
        return None, "every cell that can be asked was"
    if sweep.error is None:
        place = affordable[0] if affordable else None
    elif place is None and standing.fitted:
        if acquisition.enough(standing.fitted[0], known, sweep.error):
            return None, f"the surface is known to {sweep.error:.1%}"
        place = acquisition.most_telling(sweep.grid, standing.fitted[0], known, affordable)
    if place is not None:
        return place, ""
    if affordable:
        return None, "no cell of the search has a figure, so nothing can be inferred from it"
    first = still_open[0]
    return None, f"the limits allow no further cell: {sweep.grid.told(first)} takes {kept_out[first]}"


def _kept_out(standing: SweepStatus, place: Place) -> str:
    sweep = standing.sweep
    requests = sweep.grid.requests(place)
    return sweep.limits.keeps_out(standing.spent, standing.sent, standing.estimate(place), requests)


def _progress(standing: SweepStatus, place: Place | None) -> Progress:
    sweep, known = standing.sweep, standing.known
    waiting = [one for one in sorted(known.askable) if one not in known.asked]
    spent, sent = standing.spent, standing.sent
    bounds = [sweep.limits.seconds_left(spent)]
    if sweep.error is None:
        estimates = [standing.estimate(one) for one in waiting]
        bounds.append(None if None in estimates else sum(one for one in estimates if one is not None))
    elif sweep.limits.requests is not None and sent:
        bounds.append((sweep.limits.requests - sent) * spent / sent)
    seconds_left = 0.0 if place is None else min((one for one in bounds if one is not None), default=None)
    error = None
    if sweep.error is not None and standing.fitted:
        found = acquisition.errors(standing.fitted[0], known)
        error = float(np.median(found)) if found.size else 0.0
    usd = sweep.limits.cost(spent)
    return Progress(place, len(known.asked), len(waiting), sent, spent, usd, seconds_left, error)
