"""Sweep: measure cell after cell until the surface is known well enough, or a limit is reached.

Owns the loop: the known cells, the next one, its estimated cost, the stored results. Leaves out how a cell is measured
(the `Measure` that is passed in, which waits until the server is idle), and the conclusions
(`bezel.bench.sweep.summarize`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bezel.bench.result.document import Cell
from bezel.bench.sweep import acquisition
from bezel.bench.sweep.budget import Limits, Pace, pace, tokens
from bezel.bench.sweep.cell_request import Measure
from bezel.bench.sweep.grid import Bounds, Grid, Place, Refusal, refusals
from bezel.bench.sweep.journal import Ledger
from bezel.bench.sweep.run_once import INTERRUPTED, LostError, Once
from bezel.bench.sweep.surface import Array, Fit, fit
from bezel.bench.sweep.validity import usable_cells

SHARE = 0.25
ERROR = 0.03
# A server that is unreachable for this many loads in a row is gone.
GONE = 6
# A server that accepts requests but sends no response within the deadline hangs: two loads are proof.
HANGS = 2
LOST = "got no response"


@dataclass(frozen=True)
class Sweep:
    """Plan of a sweep.

    Attributes:
        grid: The cells.
        bounds: Limits of the server known in advance.
        limits: Limits of time, money and requests.
        metric: The metric of the surface: one of `budget.RATES`.
        error: Adaptive: relative standard error at which half of the inferred cells are known well enough, nine in ten
            of them at twice that. None measures every feasible cell.
    """

    grid: Grid
    bounds: Bounds
    limits: Limits
    metric: str = "output_tokens_per_second"
    error: float | None = ERROR


@dataclass(frozen=True)
class Progress:
    """State of a sweep, before its next cell or at the end.

    Attributes:
        place: The place of the next cell; None at the end.
        measured: Cells measured so far; `open` can still be measured.
        sent: Requests so far.
        seconds: Time spent so far; `usd` is its price, None where unknown.
        seconds_left: The most seconds from here; None where unknown.
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
    """Complete state of a sweep, derived from the measured cells alone.

    Attributes:
        sweep: The plan.
        refused: The cells that are never measured.
        cells: The measured ones.
        seconds: The seconds of each of them.
        lost: Seconds that gave no cell, because of a kill or an unreachable server.
        start: Scales of an earlier fit.
    """

    sweep: Sweep
    refused: Mapping[Place, Refusal]
    cells: Mapping[Place, Cell]
    seconds: Mapping[Place, float]
    lost: float
    start: Array | None = None

    @cached_property
    def judged(self) -> tuple[dict[Place, float], dict[Place, str]]:
        """Return the values that enter the fit, and the reasons why the other measured ones do not."""
        return usable_cells(self.sweep.grid, self.cells, self.sweep.metric)

    @cached_property
    def known(self) -> acquisition.Known:
        """Return the same for the choice of the next cell."""
        askable = {place for place in self.sweep.grid.places() if place not in self.refused}
        failed = {place for place, cell in self.cells.items() if cell.state == "failed"}
        limited = {place for place, cell in self.cells.items() if cell.state == "client_limited"}
        return acquisition.Known(self.judged[0], failed, set(self.cells), askable, limited)

    @cached_property
    def fitted(self) -> tuple[Fit, Array] | None:
        """Return the surface and its scales; None before there is a value."""
        grid, values = self.sweep.grid, self.judged[0]
        return fit(grid.contexts, grid.users, values, self.start) if values else None

    @cached_property
    def pace(self) -> Pace:
        """Return the durations of cells so far."""
        return pace(self.sweep.grid, self.judged[0], self.sweep.metric, sorted(self.seconds.items()))

    @property
    def spent(self) -> float:
        """Return the seconds so far."""
        return sum(self.seconds.values()) + self.lost

    @property
    def sent(self) -> int:
        """Return the requests so far."""
        return sum(cell.requests for cell in self.cells.values())

    def estimate(self, place: Place) -> float | None:
        """Return the estimated seconds of a cell."""
        rate = None
        if self.sweep.error is not None and self.fitted:
            rate = float(self.fitted[0].value[place]) / tokens(self.sweep.grid, self.sweep.metric, place)
        return self.pace.seconds(self.sweep.grid, place, rate)


@dataclass(frozen=True)
class Ended:
    """Outcome of a sweep: its final state, and the reason of its end.

    Attributes:
        early: Whether it ended early: the user interrupted it, or its server was lost.
    """

    status: SweepStatus
    reason: str
    early: bool = False


def run_sweep(
    sweep: Sweep,
    measure: Measure,
    ledger: Ledger,
    clock: Callable[[], float],
    show: Callable[[Progress], None],
) -> Ended:
    """Measure the cells that the sweep needs.

    Args:
        sweep: The plan.
        measure: Sends one load and returns its cell.
        ledger: An open ledger; its cells are not measured again.
        clock: Monotonic seconds.
        show: Receives the progress before each cell and at the end.

    Raises:
        KeyboardInterrupt: The first load was interrupted.
        UserError: The first load could not be sent.
    """
    grid = sweep.grid
    refused = refusals(grid, sweep.bounds)
    by_load = {(grid.contexts[row], grid.users[column]): (row, column) for row, column in grid.places()}
    once = Once(measure, ledger, sweep.limits, clock)
    taken = {
        by_load[result.cell.context_tokens or 0, result.cell.users or 0]: result for result in once.answered.values()
    }
    cells = {place: result.cell for place, result in taken.items()}
    seconds = {place: result.seconds for place, result in taken.items()}
    lost = once.lost_seconds
    measured: list[Cell] = []
    start: Array | None = None
    while True:
        status = SweepStatus(sweep, refused, dict(cells), dict(seconds), lost, start)
        place, reason = _gone(measured) or _next(status)
        show(_progress(status, place))
        if place is None:
            return Ended(status, reason, early=LOST in reason)
        try:
            run = once.measure(grid.request(place), status.estimate(place))
        except (KeyboardInterrupt, LostError) as error:
            if isinstance(error, KeyboardInterrupt) and not cells:
                raise
            return Ended(status, str(error) or INTERRUPTED, early=True)
        cells[place], seconds[place] = run.cell, run.seconds
        measured.append(run.cell)
        if sweep.error is not None and status.fitted:
            start = status.fitted[1]


def _gone(measured: Sequence[Cell]) -> tuple[None, str] | None:
    hangs = [cell.client is not None and bool(cell.client.silent_seconds) for cell in measured[-HANGS:]]
    limit = HANGS if all(hangs) else GONE
    last = measured[-limit:]
    if len(last) < limit or any(cell.state != "failed" or cell.requests > sum(cell.failures.values()) for cell in last):
        return None
    return None, f"the last {limit} cells {LOST}, the last one: {last[-1].reason}"


def _next(status: SweepStatus) -> tuple[Place | None, str]:
    """Return the next cell, or None and the reason why there is none."""
    sweep, known = status.sweep, status.known
    still_open = [cell for cell in sorted(known.askable) if cell not in known.asked]
    kept_out = {cell: _kept_out(status, cell) for cell in still_open}
    place: Place | None = None
    if sweep.error is not None:
        # The scout may go beyond a failure: if a heavier load succeeds, the load did not cause the failure.
        affordable = [cell for cell in still_open if not kept_out[cell]]
        place = acquisition.scout(sweep.grid, known, affordable, sweep.limits.requests)
        left = acquisition.beyond(known)
        still_open = [cell for cell in still_open if cell not in left]
    affordable = [cell for cell in still_open if not kept_out[cell]]
    if place is None and not still_open:
        return None, "every feasible cell is measured"
    if sweep.error is None:
        place = affordable[0] if affordable else None
    elif place is None and status.fitted:
        if acquisition.enough(status.fitted[0], known, sweep.error):
            return None, f"the surface is known to {sweep.error:.1%}"
        place = acquisition.most_telling(sweep.grid, status.fitted[0], known, affordable)
    if place is not None:
        return place, ""
    if affordable:
        return None, "no cell of the search has a figure, so nothing can be inferred"
    first = still_open[0]
    return None, f"the limits allow no further cell: {sweep.grid.describe(first)} needs {kept_out[first]}"


def _kept_out(status: SweepStatus, place: Place) -> str:
    sweep = status.sweep
    requests = sweep.grid.requests(place)
    return sweep.limits.keeps_out(status.spent, status.sent, status.estimate(place), requests)


def _progress(status: SweepStatus, place: Place | None) -> Progress:
    sweep, known = status.sweep, status.known
    waiting = [cell for cell in sorted(known.askable) if cell not in known.asked]
    spent, sent = status.spent, status.sent
    bounds = [sweep.limits.seconds_left(spent)]
    if sweep.error is None:
        estimates = [status.estimate(cell) for cell in waiting]
        bounds.append(None if None in estimates else sum(seconds for seconds in estimates if seconds is not None))
    elif sweep.limits.requests is not None and sent:
        bounds.append((sweep.limits.requests - sent) * spent / sent)
    seconds_left = 0.0 if place is None else min((bound for bound in bounds if bound is not None), default=None)
    error = None
    if sweep.error is not None and status.fitted:
        errors = acquisition.errors(status.fitted[0], known)
        error = float(np.median(errors)) if errors.size else 0.0
    usd = sweep.limits.cost(spent)
    return Progress(place, len(known.asked), len(waiting), sent, spent, usd, seconds_left, error)
