"""One cell, from an idle server to a record: drained, counted, loaded, counted, computed, checked, judged.

Owns the order of these steps. Each is another module's: bezel.bench.drain, counters, steady, metrics, checks, states.
What sends the load is passed in, so that a many-machine load, or a twin, can take its place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from bezel.bench import counters, states, statistics
from bezel.bench.checks import Evidence, beginnings, check_all, most_in_flight
from bezel.bench.columns import Columns
from bezel.bench.drain import DEADLINE_SECONDS, Clock, drain, readings
from bezel.bench.facts import Facts
from bezel.bench.metric_latencies import distributions
from bezel.bench.metrics import measure
from bezel.bench.plan import Burst, Closed, Constant, Poisson, Replay, Staged, is_closed, to_json
from bezel.bench.result import Cell, ClientFigures, Counters, Window
from bezel.bench.steady import steady_window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bezel.bench.asking import Ask
    from bezel.bench.drain import Drained
    from bezel.bench.plan import Bodies, Load
    from bezel.bench.result import Manifest, ServedBy, Slo
    from bezel.bench.sample import ClientHealth, Measured, Sample
    from bezel.bench.steady import Steady

_DETAIL = 300
# Longer traces stand in the samples, as `planned`.
_INSTANTS = 1000


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
        return MeasuredCell(Cell(**_planned(plan), state="infeasible", reason=rule))
    idle = drain(server.ask, show, clock=server.clock, deadline_seconds=server.drain_seconds)
    before = readings(server.ask)
    started_at = datetime.now(UTC)
    measured = send()
    # A server that answered nothing is asked nothing more: who wants to know why reads what it said last.
    counted = Counters(before=before[-1] if before else None, after=None, gained=None, why="no request succeeded")
    if any(not one.failure for one in measured.samples):
        # What a client gave up on still runs, and is counted when it ends.
        drain(server.ask, show, clock=server.clock, deadline_seconds=server.drain_seconds)
        counted = counters.gained(before, readings(server.ask), instances=server.manifest.platform.instances)
    columns = Columns.of(measured.samples)
    cell = _recorded(plan, server, idle, counted, measured, columns)
    return MeasuredCell(cell.model_copy(update={"started_at": started_at}), columns, measured.began)


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


def _recorded(
    plan: CellPlan, server: ServerView, idle: Drained, counted: Counters, measured: Measured, columns: Columns
) -> Cell:
    """Everything that follows from what was seen: figures, checks, state."""
    load, price = plan.load, server.manifest.price.usd_per_hour
    steady = _steady(load, columns, measured)
    facts = Facts(columns, steady, not is_closed(load.pattern), counted.gained, price, plan.slos)
    metrics = measure(facts)
    looked_at = beginnings(plan.bodies, len(columns)) if load.prompts.kind in ("unique", "file") else []
    found = check_all(Evidence(load, facts, metrics, counted, idle, server.manifest, server.served, looked_at))
    client = client_figures(measured.client, columns)
    failures, examples = columns.failures(), _examples(measured.samples)
    platform = server.manifest.platform
    state, reason = states.state_of(
        found,
        interrupted=client.interrupted,
        requests=len(columns),
        failures=failures,
        examples=examples,
        client_limits=states.limits_of_client(client, None if is_closed(load.pattern) else achieved(columns)),
        queueing=states.queued(most_in_flight(columns), instances=platform.instances, concurrency=platform.concurrency),
    )
    seconds = (measured.ended - measured.began) / 1e9
    return Cell(
        **_planned(plan),
        state=state,
        reason=reason,
        checks=found,
        metrics=metrics,
        distributions=distributions(facts),
        failures=failures,
        failure_examples=examples,
        counters=counted,
        acceptance=counters.acceptance(counted.gained),
        tokens_per_chunk=metrics["tokens_per_chunk"].value,
        client=client,
        seconds=seconds,
        window=_window(steady, facts, measured),
        requests=len(columns),
        cost_usd=None if price is None else price * seconds / 3600,
    )


def client_figures(health: ClientHealth, columns: Columns) -> ClientFigures:
    """How the client fared, as the document has it."""
    sent = columns.where(columns["sent"] > 0)
    delays = (sent["sent"] - sent["planned"]) / 1e6
    return ClientFigures(
        workers=health.workers,
        cpu_seconds=health.cpu_seconds,
        busiest_cpu_share=health.busiest_cpu_share,
        wall_seconds=health.wall_seconds,
        loop_lag_p99_ms=health.loop_lag_p99_ms,
        loop_lag_max_ms=health.loop_lag_max_ms,
        schedule_delay_p99_ms=max(0.0, statistics.percentile(delays, 0.99)) if len(delays) else None,
        connections=health.connections,
        reconnections=health.reconnections,
        connect_failures=health.connect_failures,
        interrupted=health.interrupted,
    )


def achieved(columns: Columns) -> float | None:
    """The rate at which requests were sent, by the planned rate; None where there is no rate to speak of."""
    sent = columns["sent"][columns["sent"] > 0]
    planned = columns["planned"]
    if len(sent) < 2 or planned.max() == planned.min():
        return None
    took = max(int(np.ptp(sent)), 1)
    return float(len(sent) - 1) / took / (float(len(planned) - 1) / int(np.ptp(planned)))


def _steady(load: Load, columns: Columns, measured: Measured) -> Steady:
    return steady_window(
        columns,
        measured.began,
        measured.ended,
        users=load.pattern.users if isinstance(load.pattern, Closed) else 0,
        changing=isinstance(load.pattern, Staged | Replay),
    )


def _planned(plan: CellPlan) -> dict[str, Any]:
    """The fields of a cell that are known before it is measured."""
    load = plan.load
    record = json.loads(to_json(load))
    pattern = record["pattern"]
    if len(pattern.get("instants", ())) > _INSTANTS:
        pattern["instants"] = f"{len(pattern['instants'])} instants: see `planned` in the samples"
    of_file = load.prompts.kind == "file"
    return {
        "id": plan.id,
        "variant": plan.variant,
        "context_tokens": None if of_file else load.prompts.input_tokens,
        "users": load.pattern.users if isinstance(load.pattern, Closed) else None,
        "rate": load.pattern.rate if isinstance(load.pattern, Constant | Poisson | Burst) else None,
        "output_tokens": load.prompts.output_tokens,
        "pattern": pattern["kind"],
        "prompts": load.prompts.kind,
        "repeat": plan.repeat,
        "slos": list(plan.slos),
        "load": record,
    }


def _window(steady: Steady, facts: Facts, measured: Measured) -> Window:
    counts = steady.counts(facts.columns)
    late = int((facts.columns["done"] > steady.ends).sum())
    return Window(
        begins=(steady.begins - measured.began) / 1e9,
        ends=(steady.ends - measured.began) / 1e9,
        rule=steady.rule,
        requests_before=len(counts) - int(counts.sum()) - late,
        requests_after=late,
    )


def _examples(samples: Sequence[Sample]) -> dict[str, str]:
    """What the first failure of each kind said."""
    first: dict[str, str] = {}
    for one in samples:
        if one.failure and one.failure not in first:
            first[one.failure] = one.detail[:_DETAIL]
    return first
