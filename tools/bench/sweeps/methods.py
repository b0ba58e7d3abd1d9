"""Methods of sweeping a grid with a share of the requests: the product's, and the coarse grid that is the usual way.

Each measures cells until its share is spent and infers others. Leaves out what is concluded from the errors
(`tools.bench.sweeps.trials`).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bezel_bench.sweep.grid import Bounds, Grid, Place
from bezel_bench.sweep.inference.validity import usable_cells
from bezel_bench.sweep.measurement.budget import Limits
from bezel_bench.sweep.measurement.journal import Ledger
from bezel_bench.sweep.next_cell import beyond
from bezel_bench.sweep.run import SHARE, Sweep, SweepStatus, run_sweep
from bezel_bench.sweep.summarize import conclude
from tools.bench.sweeps.grids import METRIC, Oracle
from tools.docs.generated_sections import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel_bench.result.document import Cell

FORMER_FILE = ROOT / "tests" / "results" / "sweeps" / "former.json"


@dataclass(frozen=True)
class Outcome:
    """Errors of a method on one grid, over the cells that it did not measure and that are valid there.

    Attributes:
        errors: |ln(inferred / measured)| of each cell with a figure.
        held: Whether the measured figure is within the range, of each cell with one.
        figures: The share of the grid's feasible cells, those that do not fail, that were measured or have a figure.
        share: Requests spent, of a full sweep's.
    """

    errors: list[float]
    held: list[bool]
    figures: float
    share: float


def own(oracle: Oracle) -> Outcome:
    """Run the product's sweep, and judge what its result says."""
    grid = oracle.grid
    sweep = Sweep(grid, Bounds(), Limits(requests=_most(oracle)), METRIC)
    ended = run_sweep(sweep, oracle.measure, Ledger("trial"), float, lambda _: None)
    status, valid = ended.status, _valid(oracle)
    place_of = {(grid.contexts[row], grid.users[column]): (row, column) for row, column in grid.places()}
    points = {place_of[point.context_tokens, point.users]: point for point in conclude(ended).inferred}
    inferred = {place: point for place, point in points.items() if place in valid}
    ranges = [
        (point.low, valid[place], point.high)
        for place, point in inferred.items()
        if point.low is not None and point.high is not None
    ]
    return Outcome(
        [abs(math.log(valid[place] / point.value)) for place, point in inferred.items()],
        [low <= value <= high for low, value, high in ranges],
        _figures(oracle, status, points),
        status.sent_requests / grid.full_requests(),
    )


def coarse(oracle: Oracle) -> Outcome:
    """Measure every second context and every second number of users, the last ones too, and interpolate bilinearly.

    Beyond the most measured users throughput stays. No cell has a range of its own.
    """
    grid, most, cells = oracle.grid, _most(oracle), dict[Place, "Cell"]()
    bounds = len(grid.contexts) - 1, len(grid.users) - 1
    chosen = [
        place
        for place in sorted(grid.places(), key=lambda place: place[::-1])
        if all(at % 2 == 0 or at == end for at, end in zip(place, bounds, strict=True))
    ]
    sweep = Sweep(grid, Bounds(), Limits(requests=most), METRIC)
    status = SweepStatus(sweep, {}, cells, {}, 0.0)
    for place in chosen:
        status = SweepStatus(sweep, {}, cells, {}, 0.0)
        if place not in beyond(status.known_cells) and status.sent_requests + grid.requests(place) <= most:
            cells[place] = oracle.measure(grid.request(place))
    status = SweepStatus(sweep, {}, cells, {}, 0.0)
    valid, values = _valid(oracle), status.values_and_exclusions[0]
    left = beyond(status.known_cells)
    logs = _bilinear(grid, values)
    inferred = {place: logs[place] for place in grid.places() if place not in cells and place not in left}
    errors = [abs(math.log(valid[place]) - level) for place, level in inferred.items() if place in valid]
    return Outcome(errors, [], _figures(oracle, status, inferred), status.sent_requests / grid.full_requests())


def former() -> dict[str, Outcome]:
    """Return the stored outcomes of the method that bezel had before, by grid; its code is gone."""
    return {grid: Outcome(**each) for grid, each in json.loads(FORMER_FILE.read_text("utf-8")).items()}


def _bilinear(grid: Grid, values: Mapping[Place, float]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the logarithms of all cells: along the users of each measured context, then between the contexts."""
    contexts, users = np.log(grid.contexts), np.log(grid.users)
    rows = sorted({row for row, _ in values})
    lines = [_along(users, {column: value for (at, column), value in values.items() if at == row}) for row in rows]
    columns = np.stack(lines, axis=1)
    return np.array([np.interp(contexts, contexts[rows], column) for column in columns]).T


def _along(
    users: np.ndarray[tuple[int, ...], np.dtype[np.float64]], values: Mapping[int, float]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    measured = sorted(values)
    logarithms = [math.log(values[column]) for column in measured]
    return np.asarray(np.interp(users, [users[column] for column in measured], logarithms))


def _most(oracle: Oracle) -> int:
    return int(SHARE * oracle.grid.full_requests())


def _valid(oracle: Oracle) -> dict[Place, float]:
    grid = oracle.grid
    return usable_cells(grid, {place: oracle.measure(grid.request(place)) for place in grid.places()}, METRIC)[0]


def _figures(oracle: Oracle, status: SweepStatus, inferred: Mapping[Place, object]) -> float:
    grid = oracle.grid
    feasible = [place for place in grid.places() if oracle.measure(grid.request(place)).state == "ok"]
    return sum(place in status.cells or place in inferred for place in feasible) / len(feasible)


OWN, COARSE, FORMER = "bezel", "coarse and bilinear", "the former method of bezel"
METHODS = {OWN: own, COARSE: coarse}
