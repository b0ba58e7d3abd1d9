"""Fully measured grids as servers for sweeps: those of CSV files, of the simulated servers, and made-up ones.

A file has the columns context_tokens, users, value, unit, success_pct, status. A cell has the file's value, and failed
where less than 98 % of its requests succeeded.
"""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_bench.result.document import Cell
from bezel_bench.result.records import Metric
from bezel_bench.sweep.grid import Grid
from tools.bench.sweeps import made_up
from tools.bench.sweeps.twins import FILE

if TYPE_CHECKING:
    from pathlib import Path

    from bezel_bench.sweep.cell_request import CellRequest

METRIC = "requests_per_second"
SUCCEEDED = 98.0


@dataclass(frozen=True)
class Oracle:
    """A measured grid: the value of each cell, or the reason why it has none."""

    name: str
    grid: Grid
    rows: dict[tuple[int, int], dict[str, str]]

    def measure(self, request: CellRequest) -> Cell:
        """The cell from the file."""
        row = self.rows.get((request.context_tokens, request.users or 0))
        share = float(row["success_pct"] or 0) if row else 0.0
        reason = ""
        if row is None:
            reason = "the file has no such cell"
        elif row["status"] != "ok":
            reason = row["status"]
        elif share < SUCCEEDED:
            reason = f"{share:g} % of the requests succeeded"
        failed = (
            request.requests if row is None or row["status"] != "ok" else round(request.requests * (1 - share / 100))
        )
        value = float(row["value"]) if row and not reason else None
        return Cell(
            id=request.id,
            context_tokens=request.context_tokens,
            users=request.users,
            output_tokens=request.output_tokens,
            pattern="closed",
            prompts="unique",
            state="failed" if reason else "ok",
            reason=reason,
            metrics={METRIC: Metric(value=value, unit="1/s", why=reason)},
            failures={"timeout": failed} if failed else {},
            requests=request.requests,
        )


def read(file: Path) -> Oracle:
    """The grid of a file."""
    with file.open(newline="", encoding="utf-8") as opened:
        return oracle(file.stem, list(csv.DictReader(opened)))


def made_up_grids(count: int) -> list[Oracle]:
    """The first made-up grids, as many of each shape where the count is a multiple of the shapes."""
    return [oracle(made.name, list(made.rows())) for made in map(made_up.grid, range(count))]


def oracle(name: str, rows: list[dict[str, str]]) -> Oracle:
    """The grid of a file's rows."""
    by_load = {(int(row["context_tokens"]), int(row["users"])): row for row in rows}
    contexts, users = zip(*by_load, strict=True)
    return Oracle(name, Grid(tuple(sorted(set(contexts))), tuple(sorted(set(users))), output_tokens=1), by_load)


def twins() -> list[Oracle]:
    """The grids of the simulated servers."""
    made = json.loads(FILE.read_text("utf-8"))
    grid = Grid(tuple(made["contexts"]), tuple(made["users"]), output_tokens=1)
    return [
        Oracle(
            f"simulated: {name}",
            grid,
            {
                (context, users): {"value": f"{value:g}", "success_pct": "100", "status": "ok"}
                for context, row in zip(grid.contexts, rows, strict=True)
                for users, value in zip(grid.users, row, strict=True)
            },
        )
        for name, rows in made["servers"].items()
    ]
