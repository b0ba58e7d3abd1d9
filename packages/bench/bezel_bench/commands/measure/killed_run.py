"""Recovery of the samples of a killed `bezel bench run`: stored as a separate result before the load is repeated.

A part of a load is another load, so none of its samples enter the new measurement. Leaves out how samples survive a
kill (`bezel_bench.result.spill`).
"""

from collections.abc import Sequence

from bezel_base.console import note
from bezel_base.text.counting import format_count
from bezel_bench.cell.build_cell import cell_record
from bezel_bench.cell.plan import CellPlan, ServerView
from bezel_bench.commands.measure.checkpoint import ResultFiles, write
from bezel_bench.load.plan import Load
from bezel_bench.prompts.prompts import make_prompts
from bezel_bench.prompts.token_calibration import Vocabulary
from bezel_bench.result.columns import Columns
from bezel_bench.result.document import Counters, Result, Slo
from bezel_bench.result.sample_file import write_samples
from bezel_bench.result.spill import read_spilled
from bezel_bench.server.drain import Drained

_WHY = "the run was killed before they were read"


def keep_killed(
    files: ResultFiles,
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
        files: Files beside the result.
        name: Name of the cell.
        attempt: Number of the earlier attempt, from 1.
        load: The load that it sent.
        server: The measured server.
        vocabulary: Vocabulary of the server.
        slos: Limits that a request must keep to count for goodput.
        simulated: Whether the server was a simulated one.
    """
    measured = read_spilled(files.spills(name))
    if measured is None:
        files.clear(name)
        return
    columns = Columns.of(measured.samples)
    plan = CellPlan(f"{name}-killed-{attempt}", load, make_prompts(load, server.ask, vocabulary).bodies, slos=slos)
    unread = Counters(before=None, after=None, gained=None, why=_WHY)
    cell = cell_record(plan, server, Drained(None, 0.0, why=_WHY), unread, measured, columns)
    responses = cell.requests - sum(cell.failures.values())
    reason = f"the run was killed after {format_count(responses, 'responses')}: these are the samples until then"
    out = files.killed_file(attempt)
    result = Result(
        kind="run",
        nature="simulated" if simulated else "measured",
        manifest=server.manifest,
        cells=[cell.model_copy(update={"reason": reason})],
        notes=["The run was killed: its counters were not read, and its load is incomplete."],
    )
    write(result, lambda path: write_samples(path, {cell.id: (columns, measured.began)}), out)
    files.clear(name)
    note(f"an earlier run was killed after {format_count(responses, 'responses')}, stored in {out}; measuring again")
