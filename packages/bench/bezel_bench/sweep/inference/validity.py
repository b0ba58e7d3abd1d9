"""Selection of the measured cells that may enter the surface, with the reasons against the others.

Owns the rule that needs several cells. The results of a cell's own checks are in its state
(`bezel_bench.validity.checks`).
"""

from collections.abc import Mapping

from bezel_base.text.counting import format_count
from bezel_bench.result.document import Cell
from bezel_bench.sweep.grid import Grid, Place

# An additional user never makes the others faster. Two runs of one system have differed by 14 %.
SUPERLINEAR = 1.3


def usable_cells(grid: Grid, cells: Mapping[Place, Cell], metric: str) -> tuple[dict[Place, float], dict[Place, str]]:
    """Return the values that enter the surface, and for each other cell the reason why it does not.

    Args:
        grid: The grid.
        cells: The measured cells.
        metric: A throughput, of all users together.
    """
    values: dict[Place, float] = {}
    excluded: dict[Place, str] = {}
    for place, cell in cells.items():
        value = cell.value(metric)
        if cell.state != "ok":
            excluded[place] = f"{cell.state}: {cell.reason}"
        elif value is None:
            excluded[place] = f"no {metric}: {cell.metrics[metric].why if metric in cell.metrics else 'not reported'}"
        elif value <= 0:
            excluded[place] = (
                f"{metric} of {value:g} without a failed request: a server that responds has a rate above 0"
            )
        else:
            values[place] = value
    for row in range(len(grid.contexts)):
        _superlinear(grid, row, values, excluded)
    return values, excluded


def _superlinear(grid: Grid, row: int, values: dict[Place, float], excluded: dict[Place, str]) -> None:
    """Remove cells of a row where few users each get less than many do, those with most contradictions first."""
    while True:
        share = {place: value / grid.users[place[1]] for place, value in values.items() if place[0] == row}
        conflicts: dict[Place, list[Place]] = {place: [] for place in share}
        for few, less in share.items():
            for many, more in share.items():
                if few[1] < many[1] and more > SUPERLINEAR * less:
                    conflicts[few].append(many)
                    conflicts[many].append(few)
        worst = max(conflicts, key=lambda place: (len(conflicts[place]), -place[1]), default=None)
        if worst is None or not conflicts[worst]:
            return
        other = conflicts[worst][0]
        times = max(share[worst], share[other]) / min(share[worst], share[other])
        excluded[worst] = (
            f"{values[worst]:.3g} for {format_count(grid.users[worst[1]], 'users')} and {values[other]:.3g} for "
            f"{grid.users[other[1]]} at the same context: {times:.1f} x as much for each of more users. An additional "
            "user makes no other faster: the lower cell began before the server was idle or warm, or the higher cell "
            "did not compute its prompts"
        )
        del values[worst]
