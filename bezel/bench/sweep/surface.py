"""Surface of a sweep: throughput of the cells that were not measured, with a range for each.

Pure. The logarithm of the throughput is linear between measured numbers of users. Beyond the last one it falls as much
as at the contexts that were measured further, linear between them, and is constant where they do not fall; a context
without a measured cell is linear between its neighbours. No law of saturation is assumed: three models were
worse on grids that none of their constants was chosen on (docs/sweeps.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from bezel.bench.sweep.grid import Place

Array = npt.NDArray[np.float64]

# Half of the 90 % range in units of `Surface.unit`: holds 90 % of the cells of measured and simulated grids.
WIDTH = 1.5
# The least unit: two measurements of a cell differ by about as much.
_LEAST = 0.01


@dataclass(frozen=True)
class Surface:
    """Throughput of all cells.

    Attributes:
        log: Its natural logarithm, (contexts, users).
        unit: What a range is a multiple of, in the same form: how much the last doubling of the users changed, there
            and at the middle context.
        noise: The change of the middle context, in ln.
    """

    log: Array
    unit: Array
    noise: float

    @property
    def value(self) -> Array:
        """Return the throughput, (contexts, users)."""
        return np.exp(self.log)

    def interval(self, width: float = WIDTH) -> tuple[Array, Array]:
        """Return the least and the largest throughput that nine of ten measurements of a cell would have."""
        return np.exp(self.log - width * self.unit), np.exp(self.log + width * self.unit)


def surface_of(contexts: Sequence[int], users: Sequence[int], values: Mapping[Place, float]) -> Surface:
    """Interpolate measured values.

    Args:
        contexts: Rising.
        users: Rising.
        values: By row and column; each above 0; at least one.
    """
    doublings, place = np.log2(np.asarray(users, float)), np.log(np.asarray(contexts, float))
    lines = {
        row: sorted((column, float(np.log(value))) for (at, column), value in values.items() if at == row)
        for row in sorted({row for row, _ in values})
    }
    rows, last = list(lines), {row: line[-1][0] for row, line in lines.items()}
    noise = median(abs(_last_change(line, doublings)) for line in lines.values())
    logs = {
        row: np.interp(doublings, doublings[[at for at, _ in line]], [log for _, log in line])
        for row, line in lines.items()
    }
    units = {row: _units(line, doublings, noise) for row, line in lines.items()}
    for row in rows:
        fall, deepest = 0.0, 0.0
        for column in range(last[row] + 1, len(users)):
            if far := [other for other in rows if last[other] >= column]:
                falls = [min(0.0, logs[other][column] - logs[other][last[row]]) for other in far]
                fall, deepest = float(np.interp(place[row], place[far], falls)), min(falls)
            logs[row][column] += fall
            units[row][column] = np.hypot(units[row][column], deepest / 2)

    def between(of_rows: Mapping[int, Array]) -> Array:
        columns = np.stack([of_rows[row] for row in rows], axis=1)
        return np.array([np.interp(place, place[rows], column) for column in columns]).T

    # A context between two others may be as far from the line as they are from each other.
    near = [rows[int(np.argmin(np.abs(place[rows] - at)))] for at in place]
    log = between(logs)
    return Surface(log, np.hypot(between(units), np.abs(log - log[near]) / 2), noise)


def _last_change(line: Sequence[tuple[int, float]], doublings: Array, before: int | None = None) -> float:
    """Return the change of a context's logarithm over the last doubling of the users below a column.

    A single cell says nothing of the next: twice the users may have twice the throughput.
    """
    below = [point for point in line if before is None or point[0] < before][-2:]
    if len(below) < 2:
        return float(np.log(2))
    (left, low), (right, high) = below
    return float((high - low) / (doublings[right] - doublings[left]))


def _units(line: Sequence[tuple[int, float]], doublings: Array, noise: float) -> Array:
    measured = {column for column, _ in line}
    units = []
    for column in range(len(doublings)):
        between = 0.0
        above = next((log for at, log in line if at > column), None)
        below = next((log for at, log in reversed(line) if at < column), None)
        if column not in measured and above is not None and below is not None:
            between = abs(above - below) / 2
        change = 0.0 if column in measured else _last_change(line, doublings, column)
        units.append(float(np.hypot(np.hypot(_LEAST, noise), max(abs(change), between) if between else change)))
    return np.array(units)
