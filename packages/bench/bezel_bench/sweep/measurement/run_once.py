"""Measurement of each load once, within limits, across all processes that one command takes.

Shared by sweeps, searches and comparisons: earlier measurements, the limits, and the way from a requested load to a
stored cell. Leaves out the choice of the next load.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from bezel_base.errors import UserError, one_line
from bezel_bench.result.document import Cell
from bezel_bench.result.failures import FAILED_SHARE
from bezel_bench.result.sample import NO_ANSWER, REFUSED, RESET
from bezel_bench.sweep.cell_request import CellRequest, Measure
from bezel_bench.sweep.measurement.budget import Limits
from bezel_bench.sweep.measurement.journal import Ledger, Taken
from bezel_bench.sweep.measurement.second_try import is_disturbed

INTERRUPTED = "it was interrupted"
_NOBODY = (REFUSED, RESET, NO_ANSWER)


class LostError(UserError):
    """A load could not be sent although earlier ones were; the caller ends with the cells so far."""


@dataclass(frozen=True)
class Once:
    """Measures loads, stores their cells, and knows the loads measured before.

    Attributes:
        measure_cell: Sends one load and returns its cell.
        ledger: An open ledger; its cells are not measured again.
        limits: Limits of all cells in it.
        clock: Monotonic seconds.
    """

    measure_cell: Measure
    ledger: Ledger
    limits: Limits
    clock: Callable[[], float]

    @property
    def conclusive_runs(self) -> dict[str, Taken]:
        """Return the last measurement by id, except those that a limit cut off or whose server was unreachable.

        Cells under which the server died or hung are excluded too, and those that the client or its machine disturbed:
        they are inconclusive, and the next process repeats them.
        """
        return {
            result.cell.id: result
            for result in self.ledger.taken
            if not (result.cut or is_unreached(result.cell) or died(result.cell) or is_disturbed(result.cell))
        }

    @property
    def lost_seconds(self) -> float:
        """Return seconds of cells that do not count: killed, cut by a limit, unreachable server, or repeated."""
        conclusive, ledger = self.conclusive_runs, self.ledger
        return ledger.lost_seconds + sum(
            result.seconds for result in ledger.taken if conclusive.get(result.cell.id) is not result
        )

    def keeps_out(self, seconds: float | None) -> str:
        """Return why a load of that estimate is not begun, "" where it is."""
        return self.limits.keeps_out(self.ledger.spent_seconds, 0, seconds, 0)

    def measure(self, request: CellRequest, estimate: float | None) -> Taken:
        """Measure a load and store its cell.

        Args:
            request: The load. Its `run`, or else its id, names its prompts: a repeated attempt sends others.
            estimate: Its estimated seconds.

        Raises:
            KeyboardInterrupt: It was interrupted; the ledger holds all earlier cells.
            LostError: It could not be sent; the ledger holds all earlier cells, at least one.
            UserError: It could not be sent, and there is no earlier cell.
        """
        left = self.limits.seconds_left(self.ledger.spent_seconds)
        before = self.ledger.begin(request.id, estimate)
        begun = self.clock()
        run = f"{self.ledger.run}-{request.run or request.id}-{before}"
        try:
            cell = self.measure_cell(replace(request, run=run, deadline_seconds=left))
        except UserError as error:
            if not self.ledger.taken:
                raise
            raise LostError(f"{request.id} could not be measured: {one_line(error).rstrip('.')}") from None
        if cell.client and cell.client.interrupted:
            raise KeyboardInterrupt
        seconds = self.clock() - begun
        whole = cell.requests == request.requests and not cell.failures
        taken = Taken(cell, seconds, cut=left is not None and seconds >= left and not whole)
        self.ledger.end(taken)
        return taken


def died(cell: Cell) -> bool:
    """Whether the server died or hung under a load: many requests could not connect, or silence ended the load."""
    gone = sum(cell.failures.get(kind, 0) for kind in (REFUSED, RESET))
    hung = cell.client is not None and bool(cell.client.silent_seconds)
    return cell.state == "failed" and (hung or gone > FAILED_SHARE * cell.requests)


def is_unreached(cell: Cell) -> bool:
    """Whether the server was unreachable: such a cell is inconclusive about its load."""
    return (
        cell.state == "failed"
        and cell.requests > 0
        and sum(cell.failures.get(kind, 0) for kind in _NOBODY) == cell.requests
    )
