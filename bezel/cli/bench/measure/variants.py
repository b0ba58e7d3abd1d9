"""The servers of a comparison: those that run, or the one that is started anew for each turn.

Owns when an arm is reached, and what all arms together cost. Leaves out the command that starts one (`bench_start`).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.cli.bench.measure.cell_runner import reached_arm
from bezel.cli.bench.measure.target import reach

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bezel.bench.sweep.cell_request import CellWanted
    from bezel.cli.bench.measure.variant import Variant
    from bezel.cli.bench.render.status_line import Line
    from bezel.pulumi_engine.project import Project


@dataclass(frozen=True)
class Arms:
    """The servers of a comparison.

    Attributes:
        usd_per_hour: Of all that stand while it runs; None where one of them has no known price.
        ready: The server of a cell, ready to be asked.
        end: Leaves nothing that was started here.
    """

    usd_per_hour: float | None
    ready: Callable[[CellWanted], Variant]
    end: Callable[[], None]


def arms_of(
    project: Project, options: argparse.Namespace, what: Mapping[str, str], wanted: CellWanted, show: Line
) -> Arms:
    """The arms that the options name.

    Args:
        project: Of the stacks.
        options: `arm`, or `start` and `url`.
        what: Each arm's name with what it is.
        wanted: Any cell.
        show: Takes a message about what is waited for.

    Raises:
        UserError: One that should run cannot be reached.
    """
    title = f"{', '.join(what)} against each other"
    if options.arm:
        arms = {}
        for name, place in what.items():
            url = place if "://" in place else None
            mine = argparse.Namespace(**{**vars(options), "url": url, "stack": None if url else place})
            arms[name] = reached_arm(project, mine, reach(project, mine), wanted, title, show)
        prices = [arm.server.manifest.price.usd_per_hour for arm in arms.values()]
        together = None if None in prices else sum(one for one in prices if one is not None)
        return Arms(together, lambda cell: arms[cell.variant], lambda: None)
    from bezel.cli.bench.measure.server_process import Started

    started = Started(options.start, options.url, options.start_seconds, show)

    def fresh(cell: CellWanted) -> Variant:
        key, _, value = cell.variant.partition("=")
        started.anew(key, value, cell.deadline_seconds)
        return reached_arm(project, options, reach(project, options), cell, title, show)

    return Arms(options.usd_per_hour, fresh, started.end)
