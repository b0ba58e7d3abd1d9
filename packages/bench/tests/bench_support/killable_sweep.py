"""A sweep, rates, a search or a comparison of known servers in a process that is killed at its n-th change of a file.

A change is a write (before it, in its middle, after it) or a sync (before it, after it). Each cell that is measured
leaves a line in the folder's file `measured`, and who comes to the end the ids of all cells in `result`. The process
is a fork of a small one (`Runner`): a hundred of them take no second. A fork of a worker of pytest takes 30 ms, for all
that was collected.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench_support.oracle import RATE, Oracle, cell_of, run_once
from bezel_bench.sweep.ab import ComparisonPlan, compare
from bezel_bench.sweep.cell_request import CellRequest
from bezel_bench.sweep.goodput import Search, levels, search
from bezel_bench.sweep.grid import Bounds, Grid
from bezel_bench.sweep.measurement.budget import Limits
from bezel_bench.sweep.measurement.journal import Journal
from bezel_bench.sweep.rates import RatePlan, measure_rates
from bezel_bench.sweep.run import Sweep, run_sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel_bench.result.document import Cell
    from bezel_bench.sweep.cell_request import Measure
    from bezel_bench.sweep.measurement.run_once import Once

GRID = Grid((64, 4096), (1, 64), output_tokens=1)
SETTINGS = {"url": "http://127.0.0.1:1", "users": [1, 64]}
_write, _sync = os.write, os.fsync


class Changes:
    """Counts the changes of files, and ends the process at one of them."""

    def __init__(self, last: int) -> None:
        self.left = last

    def at_one(self) -> None:
        """A moment at which a kill may come."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, file: int, data: bytes) -> int:
        """As os.write; a kill may tear it."""
        self.at_one()
        half = len(data) // 2
        written = _write(file, data[:half])
        self.at_one()
        written += _write(file, data[half:])
        self.at_one()
        return written

    def sync(self, file: int) -> None:
        """As os.fsync."""
        self.at_one()
        _sync(file)
        self.at_one()


def with_journal(folder: Path, measure: Measure) -> Once:
    """What measures with a journal, and tells the folder of each cell."""

    def measure_and_note(wanted: CellRequest) -> Cell:
        cell = measure(wanted)
        with (folder / "measured").open("a", encoding="utf-8") as file:
            file.write(f"{wanted.id} {wanted.run}\n")
        return cell

    return run_once(measure_and_note, Journal(folder / "journal", SETTINGS, secrets.token_hex(4)))


def sweep(folder: Path) -> list[Cell]:
    """A full sweep; what it found."""
    oracle = Oracle(lambda context, users: min(users, 20.0) / (1 + context / 1000))
    ready = with_journal(folder, oracle.measure)
    plan = Sweep(GRID, Bounds(), Limits(), RATE, None)
    ended = run_sweep(plan, ready.measure_cell, ready.ledger, oracle.clock, lambda _: None)
    return list(ended.status.cells.values())


def rates(folder: Path) -> list[Cell]:
    """Three rates from the throughput of one user to that of four."""
    plan = RatePlan(CellRequest(64, 1, 16, users=1), steps=3, users=4, seconds=1)
    measure = with_journal(folder, lambda one: cell_of(one, requests_per_second=one.rate or 2.0 * (one.users or 0)))
    return measure_rates(plan, measure, lambda _: None).cells


def highest(folder: Path) -> list[Cell]:
    """A search for the most users whose figure is below a limit."""
    plan = Search(CellRequest(64, 1, 16, users=1), levels(1, 64, 0.2, whole=True), {"ttft_p99": 500.0})
    measure = with_journal(folder, lambda wanted: cell_of(wanted, ttft_p99=62.0 * (wanted.users or 0)))
    return search(plan, measure, lambda _: None).cells


def comparison(folder: Path) -> list[Cell]:
    """Two servers in three rounds."""
    plan = ComparisonPlan(("a", "b"), CellRequest(64, 128, 16, users=2), 3)
    return compare(plan, with_journal(folder, lambda wanted: cell_of(wanted, **{RATE: 3.0})), lambda _: None).cells


WORKS: dict[str, Callable[[Path], list[Cell]]] = {
    "sweep": sweep,
    "rates": rates,
    "highest": highest,
    "comparison": comparison,
}


def run(folder: Path, change: int, work: str) -> int:
    """The work in a process that is killed at that change; its exit code, negative where a signal ended it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        changes = Changes(change)
        os.write, os.fsync = changes.write, changes.sync  # type: ignore[assignment]
        ids = [cell.id for cell in WORKS[work](folder)]
        (folder / "result").write_text("\n".join(ids))
        code = 0
    finally:
        os._exit(code)


class Runner:
    """A process that has imported what a work needs, and nothing else, and runs each in a fork of its own."""

    def __init__(self) -> None:
        program = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, folder: Path, change: int, work: str) -> int:
        """As `run`, in a fork of the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(folder), change, work]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def serve() -> None:
    """Run a work for each line of the standard input, and print its exit code."""
    for line in sys.stdin:
        folder, change, work = json.loads(line)
        print(run(Path(folder), change, work), flush=True)
