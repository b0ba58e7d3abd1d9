"""Accuracy of adaptive sweeps on completely measured grids: the cells that they measure, and errors of inferred ones.

    .venv/bin/python -m tools.bench.sweep_grids FOLDER [--write]

FOLDER holds one CSV for each measured grid: context_tokens, users, value, unit, success_pct, status. Each stands in for
a server: a cell has the file's value, and failed where less than 98 % of its requests succeeded. Two simulated servers
in virtual time follow. With --write the table goes into docs/sweeps.md. Nothing was fitted to these grids.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bezel.bench.result.document import Cell
from bezel.bench.result.records import Metric
from bezel.bench.sweep.budget import Limits
from bezel.bench.sweep.grid import Bounds, Grid
from bezel.bench.sweep.journal import Ledger
from bezel.bench.sweep.knees import knee
from bezel.bench.sweep.run import SHARE, Sweep, run_sweep
from bezel.bench.sweep.summarize import conclude
from bezel.bench.sweep.validity import usable_cells
from bezel.simulated_vllm.scheduling.virtual_load import load
from tools.docs.generated_sections import ROOT, put
from tools.docs.timing_curves import MACHINES, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bezel.bench.sweep.cell_request import CellRequest
    from bezel.bench.sweep.grid import Place

METRIC = "requests_per_second"
SUCCEEDED = 98.0
SIMULATED_CONTEXTS = (128, 256, 512, 1024, 2048, 4096)
SIMULATED_USERS = (1, 2, 4, 8, 16, 32, 64, 128)
SIMULATED_OUTPUT = 64
DOCUMENT = ROOT / "docs" / "sweeps.md"


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
        rows = list(csv.DictReader(opened))
    grid = Grid(
        tuple(sorted({int(row["context_tokens"]) for row in rows})),
        tuple(sorted({int(row["users"]) for row in rows})),
        output_tokens=1,
    )
    return Oracle(file.stem, grid, {(int(row["context_tokens"]), int(row["users"])): row for row in rows})


@dataclass(frozen=True)
class Score:
    """Result of one grid; errors are of the cells that are inferred and valid in the file."""

    cells: int
    share: float
    excluded: int
    inferred: int
    compared: int
    error: float
    covered: float
    knees: int
    knees_within: int
    ended: str


def score(oracle: Oracle) -> Score:
    """Sweep the grid and compare."""
    grid = oracle.grid
    sweep = Sweep(grid, Bounds(), Limits(requests=int(SHARE * grid.full_requests())), METRIC)
    ended = run_sweep(sweep, oracle.measure, Ledger("oracle"), lambda: 0.0, lambda _: None)
    summary = conclude(ended)
    whole = {place: oracle.measure(grid.request(place)) for place in grid.places()}
    truth, _ = usable_cells(grid, whole, METRIC)
    inferred = {(grid.contexts.index(one.context_tokens), grid.users.index(one.users)): one for one in summary.inferred}
    compared = [(one, truth[place]) for place, one in inferred.items() if place in truth]
    found = ended.status.judged[0] | {place: one.value for place, one in inferred.items()}
    steps = [step for row in range(len(grid.contexts)) if (step := _steps(grid, row, truth, found)) is not None]
    return Score(
        cells=len(ended.status.cells),
        share=ended.status.sent / grid.full_requests(),
        excluded=len(ended.status.judged[1]),
        inferred=len(inferred),
        compared=len(compared),
        error=median(abs(one.value / true - 1) for one, true in compared),
        covered=sum(one.low <= true <= one.high for one, true in compared) / len(compared),
        knees=len(steps),
        knees_within=sum(step <= 1 for step in steps),
        ended=ended.reason,
    )


def _steps(grid: Grid, row: int, truth: dict[Place, float], found: dict[Place, float]) -> int | None:
    """Steps between the knee by the sweep and that of the whole file; None where either shows no plateau."""
    columns = [column for column in range(len(grid.users)) if (row, column) in truth and (row, column) in found]
    users = [grid.users[one] for one in columns]
    true, estimated = (
        knee(users, [values[row, one] for one in columns]) if columns else None for values in (truth, found)
    )
    return None if true is None or estimated is None else abs(true - estimated)


def simulated() -> list[Oracle]:
    """Two simulated servers, each cell in virtual time; requests vary in length, so no two cells agree exactly."""
    found = []
    grid = Grid(SIMULATED_CONTEXTS, SIMULATED_USERS, output_tokens=SIMULATED_OUTPUT)
    for machine in MACHINES:
        settings = settings_of(machine)
        rows = {}
        for place, (context, users) in {
            one: (grid.contexts[one[0]], grid.users[one[1]]) for one in grid.places()
        }.items():
            rounds = -(-grid.requests(place) // users)
            point = load(settings, users, prompt=context, output=SIMULATED_OUTPUT, rounds=rounds, seed=sum(place) + 1)
            value = f"{point.rate / SIMULATED_OUTPUT:.4g}"
            rows[context, users] = {"value": value, "success_pct": "100", "status": "ok"}
        found.append(Oracle(f"simulated {machine}, 12B", grid, rows))
    return found


def table(oracles: Iterable[Oracle]) -> str:
    """The table of some grids."""
    columns = (
        *("grid", "cells asked", "requests, of a full sweep's", "asked and left out", "inferred (with a valid cell)"),
        *("median error", "within the 90 % range", "knee within one step", "ended"),
    )
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for oracle in oracles:
        found = score(oracle)
        ended = "error" if found.ended.startswith("the surface") else "limit" if "limits" in found.ended else "all"
        lines.append(
            f"| {oracle.name} | {found.cells} of {len(oracle.grid.places())} | {found.share:.1%} | {found.excluded} "
            f"| {found.inferred} ({found.compared}) | {found.error:.1%} | {found.covered:.0%} "
            f"| {found.knees_within} of {found.knees} | {ended} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    measured = [read(file) for file in sorted(options.folder.glob("*.csv"))]
    made = table([*measured, *simulated()])
    print(made)
    if options.write:
        put(DOCUMENT, "tools.bench.sweep_grids", made)
