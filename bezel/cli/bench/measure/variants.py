"""Servers of a comparison: running ones, or one that is started anew for each turn.

Owns when an arm is reached, and the cost of all arms together. Leaves out the command that starts one
(`bezel.cli.bench.measure.server_process`).
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
        usd_per_hour: Price of all servers up during the comparison; None where one of them has no known price.
        ready: Returns the server of a cell, ready for requests.
        end: Ends every server that was started here.
    """

    usd_per_hour: float | None
    ready: Callable[[CellWanted], Variant]
    end: Callable[[], None]


def arms_of(
    project: Project, options: argparse.Namespace, what: Mapping[str, str], wanted: CellWanted, show: Line
) -> Arms:
    """The arms that the options name.

    Args:
        project: Project of the stacks.
        options: `arm`, or `start` and `url`.
        what: Each arm's name with its URL, stack or value.
        wanted: Any cell.
        show: Takes progress messages.

    Raises:
        UserError: A server that should be running cannot be reached.
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
