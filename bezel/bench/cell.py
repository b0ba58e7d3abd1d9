"""One cell, from an idle server to a record: drained, counted, loaded, counted, computed, checked, judged.

Owns the order of these steps. Each is another module's: bezel.bench.drain, counters, recorded. What sends the load is
passed in, so that a many-machine load, or a twin, can take its place. What is needed after the load only (numpy, the
models of a result) is imported then: a load begins sooner by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bezel.bench import states
from bezel.bench.drain import DEADLINE_SECONDS, Clock, drain, looks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bezel.bench.asking import Ask
    from bezel.bench.columns import Columns
    from bezel.bench.described import Manifest, ServedBy
    from bezel.bench.plan import Bodies, Load
    from bezel.bench.result import Cell, Slo
    from bezel.bench.sample import Measured


@dataclass(frozen=True)
class ServerView:
    """A server beside its load.

    Attributes:
        ask: Asks it.
        manifest: What is known of it.
        served: What answers; the manifest's where there are no variants.
        kv_cache_tokens: That its cache holds; None where that is not known.
        drain_seconds: How long it may take to become idle.
    """

    ask: Ask
    manifest: Manifest
    served: ServedBy
    kv_cache_tokens: int | None = None
    drain_seconds: float = DEADLINE_SECONDS
    clock: Clock = field(default_factory=Clock)


@dataclass(frozen=True)
class CellPlan:
    """What a cell is to be.

    Attributes:
        id: Unique in its document.
        slos: What a request must keep to count for goodput.
    """

    id: str
    load: Load
    bodies: Bodies
    variant: str = ""
    repeat: int = 0
    slos: Sequence[Slo] = ()


@dataclass(frozen=True)
class MeasuredCell:
    """A cell and its samples: None where nothing was sent; `began` is the origin of their instants."""

    cell: Cell
    samples: Columns | None = None
    began: int = 0


def measure_cell(
    plan: CellPlan, send: Callable[[], Measured], server: ServerView, show: Callable[[str], None]
) -> MeasuredCell:
    """Measures one cell.

    Args:
        plan: What it is.
        send: Sends its load and waits for the answers.
        server: What answers.
        show: Takes a message about what is waited for.

    Raises:
        UserError: As `send` does.
    """
    rule = _rule_against(plan.load, server)
    if rule:
        return _infeasible(plan, rule)
    idle = drain(server.ask, show, clock=server.clock, deadline_seconds=server.drain_seconds)
    before = looks(server.ask)
    started_at = datetime.now(UTC)
    measured = send()
    # A server that answered nothing is asked nothing more: who wants to know why reads what it said last.
    after = None
    if any(not one.failure for one in measured.samples):
        # What a client gave up on still runs, and is counted when it ends.
        drain(server.ask, show, clock=server.clock, deadline_seconds=server.drain_seconds)
        after = looks(server.ask)
    from bezel.bench.columns import Columns
    from bezel.bench.counters import over
    from bezel.bench.recorded import recorded

    counted = over(before, after, instances=server.manifest.platform.instances)
    columns = Columns.of(measured.samples)
    cell = recorded(plan, server, idle, counted, measured, columns)
    return MeasuredCell(cell.model_copy(update={"started_at": started_at}), columns, measured.began)


def _infeasible(plan: CellPlan, rule: str) -> MeasuredCell:
    from bezel.bench.recorded import planned
    from bezel.bench.result import Cell

    return MeasuredCell(Cell(**planned(plan), state="infeasible", reason=rule))


def _rule_against(load: Load, server: ServerView) -> str:
    """The rule by which the load's longest request can never be served, "" where there is none."""
    prompts = load.prompts
    # Texts of a file are as long as they are: the server says when one is too long.
    if prompts.kind == "file":
        return ""
    earlier = prompts.turns - 1 if prompts.kind == "multi_turn" else 0
    return states.infeasible(
        prompts.input_tokens + earlier * (prompts.input_tokens + prompts.output_tokens),
        prompts.output_tokens,
        max_model_len=server.served.max_model_len,
        kv_cache_tokens=server.kv_cache_tokens,
    )
