"""Recovery of the samples of a killed `bezel bench run`: stored as a separate result before the load is repeated.

A part of a load is another load, so none of its samples enter the new measurement. Leaves out how samples survive a
kill (`bezel.bench.result.spill`).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel.bench.cell.plan import ServerView
    from bezel.bench.load.plan import Load
    from bezel.bench.prompts.token_calibration import Vocabulary
    from bezel.bench.result.document import Slo
    from bezel.cli.bench.measure.checkpoint import ResultFiles

_WHY = "the run was killed before they were read"


def keep_killed(
    beside: ResultFiles,
    name: str,
    attempt: int,
    load: Load,
    server: ServerView,
    vocabulary: Vocabulary | None,
    slos: Sequence[Slo],
    *,
    simulated: bool,
) -> None:
    """Write the samples of an earlier attempt beside the result and print a note; do nothing where there are none.

    Args:
        beside: Files beside the result.
        name: Name of the cell.
        attempt: Number of the earlier attempt, from 1.
        load: The load that it sent.
        server: The measured server.
        vocabulary: Vocabulary of the server.
        slos: Limits that a request must keep to count for goodput.
        simulated: Whether the server was a simulated one.
    """
    from bezel.bench.result.spill import spilled

    measured = spilled(beside.spills(name))
    if measured is None:
        beside.clear(name)
        return
    from bezel.bench.cell.build_cell import recorded
    from bezel.bench.cell.plan import CellPlan
    from bezel.bench.prompts.prompts import make_prompts
    from bezel.bench.result.columns import Columns
    from bezel.bench.result.document import Counters, Result
    from bezel.bench.server.drain import Drained
    from bezel.cli.bench.measure.cell_runner import write

    columns = Columns.of(measured.samples)
    plan = CellPlan(f"{name}-killed-{attempt}", load, make_prompts(load, server.ask, vocabulary).bodies, slos=slos)
    unread = Counters(before=None, after=None, gained=None, why=_WHY)
    cell = recorded(plan, server, Drained(None, 0.0, why=_WHY), unread, measured, columns)
    answers = cell.requests - sum(cell.failures.values())
    reason = f"the run was killed after {answers} answers: what is here is what it had seen"
    out = beside.killed(attempt)
    result = Result(
        kind="run",
        nature="simulated" if simulated else "measured",
        manifest=server.manifest,
        cells=[cell.model_copy(update={"reason": reason})],
        notes=["Of a run that was killed: its counters were not read, and no load of it is whole."],
    )
    write(result, {cell.id: (columns, measured.began)}, out)
    beside.clear(name)
    sys.stderr.write(f"an earlier run was killed after {answers} answers, which are kept in {out}; measures anew\n")


def attempted(load: Load, attempt: int, *, again: bool) -> Load:
    """The load of an attempt: from the second on with its own prompts, unless the same prompts are requested again."""
    if not attempt or again:
        return load
    return replace(load, prompts=replace(load.prompts, run=f"{load.prompts.run}~{attempt}"))
