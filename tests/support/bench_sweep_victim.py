"""A sweep of a known server in a process of its own that is killed at its n-th change of a file.

A change is a write (before it, in its middle, after it) or a sync (before it, after it). Each cell that is measured
leaves a line in the folder's file `measured`. The process is a fork: a hundred of them take no second.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from bench_oracle import RATE, Oracle

from bezel.bench.sweep.budget import Limits
from bezel.bench.sweep.grid import Bounds, Grid
from bezel.bench.sweep.journal import Journal
from bezel.bench.sweep.run import Sweep, run_sweep

if TYPE_CHECKING:
    from pathlib import Path

    from bezel.bench.result import Cell
    from bezel.bench.sweep.wanted import CellWanted

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


def sweep(folder: Path) -> None:
    """The sweep."""
    oracle = Oracle(lambda context, users: min(users, 20.0) / (1 + context / 1000))

    def measure(wanted: CellWanted) -> Cell:
        cell = oracle.measure(wanted)
        with (folder / "measured").open("a", encoding="utf-8") as file:
            file.write(f"{wanted.id} {wanted.run}\n")
        return cell

    with Journal(folder / "journal", SETTINGS) as journal:
        run_sweep(Sweep(GRID, Bounds(), Limits(), RATE, None), measure, journal, oracle.clock, lambda _: None, "run")


def run(folder: Path, change: int) -> int:
    """The sweep in a process that is killed at that change; its exit code, negative where a signal ended it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        changes = Changes(change)
        os.write, os.fsync = changes.write, changes.sync  # type: ignore[assignment]
        sweep(folder)
        code = 0
    finally:
        os._exit(code)
