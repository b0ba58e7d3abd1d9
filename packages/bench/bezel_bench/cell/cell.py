"""Measurement of one load as a cell, from its prompts to a record: drain, read counters, load, read counters, build.

Owns the order of these steps. Each is another module's: bezel_bench.server.drain, bezel_bench.server.counters,
bezel_bench.cell.build_cell. The sender of the load is passed in, so that a load of many machines, or a test double, can
take its place. What only the record needs (numpy, the models of a result) is imported after the load, so that the load
begins sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bezel_bench.cell.plan import CellPlan, ServerView
from bezel_bench.client.load_engine import run_load
from bezel_bench.load.plan import Bodies, Load, TokenSource
from bezel_bench.prompts.prompts import make_prompts
from bezel_bench.result import cell_status
from bezel_bench.result.lean_imports import lean_imports
from bezel_bench.result.sample import Measured
from bezel_bench.server.drain import drain, read_metrics
from bezel_bench.server.sampling import MetricsSampler

if TYPE_CHECKING:
    from bezel_bench.prompts.token_calibration import Vocabulary
    from bezel_bench.result.columns import Columns
    from bezel_bench.result.document import Cell, Slo

Send = Callable[[Load, Bodies, TokenSource, Callable[[str], None]], Measured]


@dataclass(frozen=True)
class MeasuredCell:
    """A cell and its samples: None where nothing was sent; `began` is the origin of their instants."""

    cell: Cell
    samples: Columns | None = None
    began: int = 0


def measure_cell(
    plan: CellPlan, send: Callable[[], Measured], server: ServerView, show: Callable[[str], None]
) -> MeasuredCell:
    """Measure one cell.

    Args:
        plan: The cell's plan.
        send: Sends its load and waits for the responses.
        server: The server under load.
        show: Receives progress messages of each wait.

    Raises:
        UserError: As `send` does.
    """
    if rule := _rule_against(plan.load, server):
        from bezel_bench.cell.build_cell import planned_fields
        from bezel_bench.result.document import Cell

        return MeasuredCell(Cell(**planned_fields(plan), state="infeasible", reason=rule))
    idle = drain(server.ask, show, clock=server.clock, deadline_seconds=server.drain_seconds)
    before = read_metrics(server.ask)
    started_at = datetime.now(UTC)
    with MetricsSampler(server.ask, server.sample_seconds) as sampler:
        measured = send()
    # A server without one successful response is sent nothing more: its last failures show the reason.
    after = None
    if any(not sample.failure for sample in measured.samples):
        # Requests that the client gave up on still run, and are counted when they end.
        try:
            drain(server.ask, show, clock=server.clock, deadline_seconds=server.drain_seconds)
            after = read_metrics(server.ask)
        except KeyboardInterrupt:
            # Its samples are kept, as those of a load that was interrupted while it was sent.
            measured = replace(measured, client=replace(measured.client, interrupted=True))
    with lean_imports():
        from bezel_bench.cell.build_cell import cell_record
        from bezel_bench.result.columns import Columns
        from bezel_bench.server.counters import over

    # The metrics are those of the first address.
    urls = len(set(plan.load.urls))
    instances = server.manifest.platform.instances if urls == 1 else max(urls, server.manifest.platform.instances or 1)
    counted = over(before, after, instances=instances)
    columns = Columns.of(measured.samples)
    cell = cell_record(plan, server, idle, counted, measured, columns)
    # Each read reaches one instance of several, whose figures are no series together.
    single = (instances or 1) == 1
    added = {"started_at": started_at, "server_series": sampler.series(measured.began) if single else None}
    return MeasuredCell(cell.model_copy(update=added), columns, measured.began)


def _rule_against(load: Load, server: ServerView) -> str:
    """Return the rule by which the load's longest request can never be served, "" where there is none."""
    prompts = load.prompts
    # Requests of a file or a distribution have any length: the server refuses one that is too long.
    if prompts.kind in ("file", "lengths", "trace"):
        return ""
    earlier = prompts.turns - 1 if prompts.kind == "multi_turn" else 0
    return cell_status.infeasible(
        prompts.input_tokens + earlier * (prompts.input_tokens + prompts.output_tokens),
        prompts.output_tokens,
        max_model_len=server.max_model_len,
        kv_cache_tokens=server.kv_cache_tokens,
    )


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
