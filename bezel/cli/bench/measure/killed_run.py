"""What a killed `bezel bench run` had measured: kept as a result of its own, before the load is measured anew.

A load is whole or it is another one, so nothing of it enters the new measurement. Leaves out how requests outlast a
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
    """Writes what an earlier attempt at a load had measured beside the result, and says so; nothing where that is none.

    Args:
        beside: Where it lies.
        name: Of the cell.
        attempt: Which one it was, from 1.
        load: What it sent.
        server: What answered.
        vocabulary: Of the server.
        slos: What a request must keep to count for goodput.
        simulated: Whether a simulated server answered.
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
    """The load of an attempt: with prompts of its own from the second on, unless the same ones were asked for again."""
    if not attempt or again:
        return load
    return replace(load, prompts=replace(load.prompts, run=f"{load.prompts.run}~{attempt}"))
