"""A server of known figures as what measures cells: for sweeps, searches and comparisons without one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel_bench.result.document import Cell
from bezel_bench.result.records import Metric
from bezel_bench.sweep.measurement.budget import Limits
from bezel_bench.sweep.measurement.journal import Ledger
from bezel_bench.sweep.measurement.run_once import Once

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel_bench.sweep.cell_request import CellRequest, Measure

RATE = "requests_per_second"
NO_LIMITS = Limits()


def cell_of(wanted: CellRequest, *, reason: str = "", **figures: float) -> Cell:
    """A cell with such figures, or one that failed for that reason."""
    return Cell(
        id=wanted.id,
        variant=wanted.variant,
        context_tokens=wanted.context_tokens,
        users=wanted.users,
        rate=wanted.rate,
        output_tokens=wanted.output_tokens,
        pattern="closed",
        prompts="unique",
        repeat=wanted.repeat,
        state="failed" if reason else "ok",
        reason=reason,
        metrics={name: Metric(value=value, unit="1/s") for name, value in figures.items()},
        failures={"timeout": wanted.requests} if reason else {},
        requests=wanted.requests,
    )


def run_once(
    measure: Measure,
    ledger: Ledger | None = None,
    limits: Limits = NO_LIMITS,
    clock: Callable[[], float] = float,  # no time passes
) -> Once:
    """What measures each load once; nothing was measured before where no ledger is given."""
    return Once(measure, ledger or Ledger("run"), limits, clock)


@dataclass
class Oracle:
    """Answers with `figures(context, users)` requests a second; None fails.

    Keeps the time that cells would take; like a real load, none takes longer than its deadline.
    """

    figures: Callable[[int, int], float | None]
    asked: list[CellRequest] = field(default_factory=list)
    now: float = 0.0

    def measure(self, wanted: CellRequest) -> Cell:
        """A `Measure`."""
        self.asked.append(wanted)
        value = self.figures(wanted.context_tokens, wanted.users or 0)
        seconds = 10.0 if value is None else wanted.requests / value
        self.now += min(seconds, seconds if wanted.deadline_seconds is None else wanted.deadline_seconds)
        return cell_of(wanted, reason="every request timed out") if value is None else cell_of(wanted, **{RATE: value})

    def clock(self) -> float:
        """Seconds that only grow."""
        return self.now
