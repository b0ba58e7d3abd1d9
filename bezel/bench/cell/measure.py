"""One load measured whole: its prompts made, then its cell measured by sending them.

The usual way from a load to a cell; many machines send in this one's stead where ``send`` says so.
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
    """Measures a load.

    Args:
        cell: Id of the cell, unique in its document.
        load: What is sent.
        server: What answers.
        headers: What authorises each request.
        show: Takes a message about what is waited for, also from other threads.
        vocabulary: Learned before from the same server.
        variant: Of the document's servers.
        repeat: How often the load was measured before.
        slos: What a request must keep to count for goodput.
        send: Sends it.

    Returns:
        The cell with its samples, and what a reader must know of the prompts.

    Raises:
        UserError: The prompts cannot be made, or the load cannot be sent.
    """
    prompts = make_prompts(load, server.ask, vocabulary)
    plan = CellPlan(cell, load, prompts.bodies, variant=variant, repeat=repeat, slos=slos)
    return measure_cell(plan, lambda: send(load, prompts.bodies, headers, show), server, show), prompts.notes
