"""Sweep: measure cell after cell until the share of the requests is spent, or a limit is reached.

Owns the loop: the known cells, the next one, its estimated cost, the stored results. Leaves out how a cell is measured
(the `Measure` that is passed in, which waits until the server is idle), and the conclusions
(`bezel_bench.sweep.summarize`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import exp

from bezel_bench.result.document import Cell
from bezel_bench.sweep.cell_request import Measure
from bezel_bench.sweep.grid import Bounds, Grid, Place, Refusal, refusals
from bezel_bench.sweep.inference.surface import Surface
from bezel_bench.sweep.inference.validity import usable_cells
from bezel_bench.sweep.measurement.budget import Limits, Pace, pace, tokens
from bezel_bench.sweep.measurement.journal import Ledger
from bezel_bench.sweep.measurement.run_once import INTERRUPTED, LostError, Once
from bezel_bench.sweep.measurement.second_try import describe_unmeasured, to_try_again
from bezel_bench.sweep.next_cell import KnownCells, beyond, next_cell

SHARE = 0.25
# A server that is unreachable for this many loads in a row is gone.
GONE = 6
# A server that accepts requests but sends no response within the deadline hangs: two loads are proof.
HANGS = 2
# A machine that is busy during this many loads in a row stays so for a while.
BUSY = 6
LOST = "got no response"


@dataclass(frozen=True)
class Sweep:
    """Plan of a sweep.

    Attributes:
        grid: The cells.
        bounds: Limits of the server known in advance.
        limits: Limits of time, money and requests.
        metric: The metric of the surface: one of `budget.RATES`.
        full: Whether every feasible cell is measured, context by context.
    """

    grid: Grid
    bounds: Bounds
    limits: Limits
    metric: str = "output_tokens_per_second"
    full: bool = False


@dataclass(frozen=True)
class Progress:
    """State of a sweep, before its next cell or at the end.

    Attributes:
        place: The place of the next cell; None at the end.
        measured: Cells measured so far; `open` can still be measured.
        sent: Requests so far.
        seconds: Time spent so far; `usd` is its price, None where unknown.
        seconds_left: The most seconds from here; None where unknown.
    """

    place: Place | None
    measured: int
    open: int
    sent: int
    seconds: float
    usd: float | None
    seconds_left: float | None


@dataclass(frozen=True)
class SweepStatus:
    """Complete state of a sweep, derived from the measured cells alone.

    Attributes:
        sweep: The plan.
        refused: The cells that are never measured.
        cells: The measured ones.
        seconds: The seconds of each of them.
        lost: Seconds that gave no cell, because of a kill, an unreachable server or a first try that was disturbed.
        tries: How often this process measured each of them.
    """

    sweep: Sweep
    refused: Mapping[Place, Refusal]
    cells: Mapping[Place, Cell]
    seconds: Mapping[Place, float]
    lost: float
    tries: Mapping[Place, int] = field(default_factory=dict)

    @cached_property
    def values_and_exclusions(self) -> tuple[dict[Place, float], dict[Place, str]]:
        """Return the values that enter the surface, and the reasons why the other measured ones do not."""
        return usable_cells(self.sweep.grid, self.cells, self.sweep.metric)

    @cached_property
    def known_cells(self) -> KnownCells:
        """Return the same for the choice of the next cell."""
        askable = {place for place in self.sweep.grid.places() if place not in self.refused}
        failed = {place for place, cell in self.cells.items() if cell.state == "failed"}
        limited = {place for place, cell in self.cells.items() if cell.state == "client_limited"} - {*self.doubtful}
        return KnownCells(self.values_and_exclusions[0], failed, set(self.cells), askable, limited)

    @cached_property
    def doubtful(self) -> list[Place]:
        """Return the cells that a second try has to confirm, in their order."""
        return to_try_again(self.cells, self.tries)

    @cached_property
    def unmeasured_text(self) -> str:
        """Return what was not measured because of the client or its machine, "" where nothing was."""
        left = {} if self.sweep.full else beyond(self.known_cells)
        return describe_unmeasured(
            self.cells.values(), [place for place, heavy in left.items() if heavy in self.known_cells.limited]
        )

    @cached_property
    def surface(self) -> Surface:
        """Return the surface through the values so far."""
        return Surface(self.sweep.grid.contexts, self.sweep.grid.users, self.values_and_exclusions[0])

    @cached_property
    def pace(self) -> Pace:
        """Return the durations of cells so far."""
        return pace(self.sweep.grid, self.values_and_exclusions[0], self.sweep.metric, sorted(self.seconds.items()))

    @cached_property
    def spent_seconds(self) -> float:
        """Return the seconds so far."""
        return sum(self.seconds.values()) + self.lost

    @cached_property
    def sent_requests(self) -> int:
        """Return the requests so far."""
        return sum(cell.requests for cell in self.cells.values())

    def estimate(self, place: Place) -> float | None:
        """Return the estimated seconds of a cell."""
        rate = None
        if not self.sweep.full and (line := self.surface.line(place)):
            rate = exp(line.log) / tokens(self.sweep.grid, self.sweep.metric, place)
        return self.pace.seconds(self.sweep.grid, place, rate)


@dataclass(frozen=True)
class Ended:
    """Outcome of a sweep: its final state, and the reason of its end.

    Attributes:
        early: Whether it left out what the same command may still measure: the user interrupted it, its server was
            lost, or the client or its machine was the limit.
    """

    status: SweepStatus
    reason: str
    early: bool = False


def run_sweep(
    sweep: Sweep, measure: Measure, ledger: Ledger, clock: Callable[[], float], show: Callable[[Progress], None]
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
        by_load[result.cell.context_tokens or 0, result.cell.users or 0]: result
        for result in once.conclusive_runs.values()
    }
    cells = {place: result.cell for place, result in taken.items()}
    seconds = {place: result.seconds for place, result in taken.items()}
    lost = once.lost_seconds
    tries: Counter[Place] = Counter()
    measured: list[Cell] = []
    while True:
        status = SweepStatus(sweep, refused, dict(cells), dict(seconds), lost, dict(tries))
        place, reason = _lost_server(measured) or _busy(measured) or _next(status)
        show(_progress(status, place))
        if place is None:
            return Ended(status, reason, early=LOST in reason or bool(status.unmeasured_text))
        try:
            run = once.measure(grid.request(place), status.estimate(place))
        except (KeyboardInterrupt, LostError) as error:
            if isinstance(error, KeyboardInterrupt) and not cells:
                raise
            return Ended(status, str(error) or INTERRUPTED, early=True)
        lost += seconds.get(place, 0.0)
        tries[place] += 1
        cells[place], seconds[place] = run.cell, run.seconds
        measured.append(run.cell)


def _lost_server(measured: Sequence[Cell]) -> tuple[None, str] | None:
    hangs = [cell.client is not None and bool(cell.client.silent_seconds) for cell in measured[-HANGS:]]
    limit = HANGS if all(hangs) else GONE
    last = measured[-limit:]
    if len(last) < limit or any(cell.state != "failed" or cell.requests > sum(cell.failures.values()) for cell in last):
        return None
    return None, f"the last {limit} cells {LOST}, the last one: {last[-1].reason}"


def _busy(measured: Sequence[Cell]) -> tuple[None, str] | None:
    last = measured[-BUSY:]
    if len(last) < BUSY or any(cell.state != "busy_machine" for cell in last):
        return None
    return None, f"other work kept the machine busy during the last {BUSY} loads"


def _next(status: SweepStatus) -> tuple[Place | None, str]:
    """Return the next cell, or None and the reason why there is none.

    Second tries come after everything else; until then, loads with more users than a doubtful one have to wait.
    """
    sweep, known_cells = status.sweep, status.known_cells
    left = {} if sweep.full else beyond(known_cells)
    still_open = [cell for cell in sorted(known_cells.askable) if cell not in known_cells.asked and cell not in left]
    kept_out = {cell: _kept_out(status, cell) for cell in (*still_open, *status.doubtful)}
    waiting = {} if sweep.full else beyond(replace(known_cells, limited=_limits(status)))
    affordable = [cell for cell in still_open if not kept_out[cell] and cell not in waiting]
    if sweep.full:
        place = affordable[0] if affordable else None
    else:
        place = next_cell(known_cells, affordable, {cell for cell in affordable if status.surface.line(cell)})
    if place is None:
        place = next((cell for cell in status.doubtful if not kept_out[cell]), None)
    if place is not None:
        return place, ""
    wanted = [*still_open, *status.doubtful]
    if not wanted and status.unmeasured_text:
        return None, f"every feasible cell was tried, but not all are measured: {status.unmeasured_text}"
    if not wanted:
        return None, "every feasible cell is measured"
    first = min((cell for cell in wanted if kept_out[cell]), key=lambda cell: cell[::-1], default=wanted[0])
    return None, f"the limits allow no further cell: {sweep.grid.describe(first)} needs {kept_out[first]}"


def _limits(status: SweepStatus) -> set[Place]:
    """Return the cells at which the client was the limit, if only in a first try."""
    return {place for place, cell in status.cells.items() if cell.state == "client_limited"}


def _kept_out(status: SweepStatus, place: Place) -> str:
    sweep = status.sweep
    requests = sweep.grid.requests(place)
    # The requests of a first try, which the second replaces, gave no figure.
    sent = status.sent_requests - (status.cells[place].requests if place in status.cells else 0)
    # Of thousands of cells, an estimate costs more than all else; without a limit of time it decides nothing.
    has_deadline = sweep.limits.seconds_left(status.spent_seconds) is not None
    return sweep.limits.keeps_out(
        status.spent_seconds, sent, status.estimate(place) if has_deadline else None, requests
    )


def _progress(status: SweepStatus, place: Place | None) -> Progress:
    sweep, known_cells = status.sweep, status.known_cells
    waiting = [cell for cell in sorted(known_cells.askable) if cell not in known_cells.asked]
    spent, sent = status.spent_seconds, status.sent_requests
    bounds = [sweep.limits.seconds_left(spent)]
    if sweep.full:
        estimates = [status.estimate(cell) for cell in waiting]
        bounds.append(None if None in estimates else sum(seconds for seconds in estimates if seconds is not None))
    elif sweep.limits.requests is not None and sent:
        bounds.append((sweep.limits.requests - sent) * spent / sent)
    seconds_left = 0.0 if place is None else min((bound for bound in bounds if bound is not None), default=None)
    usd = sweep.limits.cost(spent)
    return Progress(place, len(known_cells.asked), len(waiting), sent, spent, usd, seconds_left)
