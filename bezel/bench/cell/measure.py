"""Measurement of one load: make its prompts, then measure its cell by sending them.

The usual way from a load to a cell; ``send`` may be replaced, e.g. by a load of many machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.bench.cell.cell import measure_cell
from bezel.bench.cell.plan import CellPlan
from bezel.bench.client.load_engine import run_load
from bezel.bench.prompts.prompts import make_prompts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bezel.bench.cell.cell import MeasuredCell
    from bezel.bench.cell.plan import ServerView
    from bezel.bench.load.plan import Bodies, Load, TokenSource
    from bezel.bench.prompts.token_calibration import Vocabulary
    from bezel.bench.result.document import Slo
    from bezel.bench.result.sample import Measured

    Send = Callable[[Load, Bodies, TokenSource, Callable[[str], None]], Measured]


def measure_load(
    cell: str,
    load: Load,
    server: ServerView,
    headers: TokenSource,
    show: Callable[[str], None],
    *,
    vocabulary: Vocabulary | None = None,
    variant: str = "",
    repeat: int = 0,
    slos: Sequence[Slo] = (),
    send: Send = run_load,
) -> tuple[MeasuredCell, tuple[str, ...]]:
    """Measure a load.

    Args:
        cell: Id of the cell, unique in its document.
        load: The load to send.
        server: The server under load.
        headers: Source of the headers that authorise each request.
        show: Receives progress messages of each wait, also from other threads.
        vocabulary: The vocabulary, if already learned from the same server.
        variant: The name of the server among the document's variants.
        repeat: The number of earlier measurements of the load.
        slos: Limits that a request must meet to count for goodput.
        send: Sends the load.

    Returns:
        The cell with its samples, and notes on the prompts for the reader.

    Raises:
        UserError: The prompts cannot be made, or the load cannot be sent.
    """
    prompts = make_prompts(load, server.ask, vocabulary)
    plan = CellPlan(cell, load, prompts.bodies, variant=variant, repeat=repeat, slos=slos)
    return measure_cell(plan, lambda: send(load, prompts.bodies, headers, show), server, show), prompts.notes
