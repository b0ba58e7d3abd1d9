"""Loads that are measured once each, within limits, over all processes that one command takes.

What sweeps, searches and comparisons share: what is known already, what may still be begun, and the way from a wanted
load to a kept cell. Leaves out what is wanted next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bezel.bench.result.failures import FAILED_SHARE
from bezel.bench.result.sample import NO_ANSWER, REFUSED, RESET
from bezel.bench.sweep.journal import Taken
from bezel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel.bench.result.document import Cell
    from bezel.bench.sweep.budget import Limits
    from bezel.bench.sweep.cell_request import CellWanted, Measure
    from bezel.bench.sweep.journal import Ledger

INTERRUPTED = "it was interrupted"
_NOBODY = (REFUSED, RESET, NO_ANSWER)


class LostError(UserError):
    """A load could not be sent where others were: who measures them ends with what there is."""


@dataclass(frozen=True)
class Once:
    """What measures loads, keeps them, and knows what was measured before.

    Attributes:
        measure_cell: Sends one load and reads it.
        ledger: An open one; what it holds is not measured again.
        limits: Of all that is in it.
        clock: Seconds that only grow.
    """

    measure_cell: Measure
    ledger: Ledger
    limits: Limits
    clock: Callable[[], float]

    @property
    def answered(self) -> dict[str, Taken]:
        """What is known, by id: the last measurement, without those that found nobody or that a limit cut off.

        Nor those under which the server died or hung: that is no answer to their load, and the next process asks again.
        """
        return {one.cell.id: one for one in self.ledger.taken if not (one.cut or unreached(one.cell) or died(one.cell))}

    @property
    def lost_seconds(self) -> float:
        """Of loads whose cell does not count: a kill or a limit came, nobody answered, or it was asked again."""
        known, ledger = self.answered, self.ledger
        return ledger.lost_seconds + sum(one.seconds for one in ledger.taken if known.get(one.cell.id) is not one)

    def keeps_out(self, seconds: float | None) -> str:
        """Why a load of that estimate is not begun, "" where it is."""
        return self.limits.keeps_out(self.ledger.spent, 0, seconds, 0)

    def measure(self, wanted: CellWanted, estimate: float | None) -> Taken:
        """Measures a load and keeps its cell.

        Args:
            wanted: The load. Its `run`, or else its id, names its prompts: a further attempt sends others.
            estimate: Seconds that it is thought to take.

        Raises:
            KeyboardInterrupt: It was interrupted; the ledger holds all cells before.
            LostError: It could not be sent; the ledger holds all cells before, at least one.
            UserError: Nor could any other.
        """
        left = self.limits.seconds_left(self.ledger.spent)
        before = self.ledger.begin(wanted.id, estimate)
        begun = self.clock()
        run = f"{self.ledger.run}-{wanted.run or wanted.id}-{before}"
        try:
            cell = self.measure_cell(replace(wanted, run=run, deadline_seconds=left))
        except UserError as error:
            if not self.ledger.taken:
                raise
            raise LostError(f"{wanted.id} could not be measured: {str(error).rstrip('.')}") from None
        if cell.client and cell.client.interrupted:
            raise KeyboardInterrupt
        seconds = self.clock() - begun
        whole = cell.requests == wanted.requests and not cell.failures
        taken = Taken(cell, seconds, cut=left is not None and seconds >= left and not whole)
        self.ledger.end(taken)
        return taken


def died(cell: Cell) -> bool:
    """Whether the server went away under a load, or hung: many a request found nobody, or the load was ended for it."""
    gone = sum(cell.failures.get(one, 0) for one in (REFUSED, RESET))
    hung = cell.client is not None and bool(cell.client.silent_seconds)
    return cell.state == "failed" and (hung or gone > FAILED_SHARE * cell.requests)


def unreached(cell: Cell) -> bool:
    """Whether nobody was there to answer: such a cell says nothing of its load."""
    return (
        cell.state == "failed"
        and cell.requests > 0
        and sum(cell.failures.get(one, 0) for one in _NOBODY) == cell.requests
    )
