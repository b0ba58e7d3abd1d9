"""Builder of a cell's record from its samples: figures, checks, state.

Separate from `bezel_bench.cell.cell` so that a load is sent before the computing modules are imported. Each step is
another module's: bezel_bench.metrics.steady, bezel_bench.metrics.definitions, bezel_bench.validity.checks,
bezel_bench.result.cell_status.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from bezel_bench.cell.plan import CellPlan, ServerView
from bezel_bench.cell.stages import stage_figures, without_levels
from bezel_bench.cell.urls import url_figures
from bezel_bench.load.plan import GENERATING, Burst, Closed, Constant, Load, Poisson, Replay, Staged, is_closed, to_json
from bezel_bench.metrics import statistics
from bezel_bench.metrics.definitions import distributions, measure
from bezel_bench.metrics.metric_inputs import MetricInputs
from bezel_bench.metrics.saturation import completed_share
from bezel_bench.metrics.steady import Steady, steady_window
from bezel_bench.result import cell_status
from bezel_bench.result.columns import Columns
from bezel_bench.result.document import Cell, ClientFigures, Counters, Window
from bezel_bench.result.records import Distribution
from bezel_bench.result.sample import ClientHealth, Measured, Sample
from bezel_bench.server import counters
from bezel_bench.server.drain import Drained
from bezel_bench.validity.checks import Evidence, beginnings, check_all
from bezel_bench.validity.ttft_part import ttft_part

_DETAIL = 300
# Longer traces are stored in the samples only, as `planned`.
_INSTANTS = 1000


def cell_record(
    plan: CellPlan, server: ServerView, idle: Drained, counted: Counters, measured: Measured, columns: Columns
) -> Cell:
    """Build the record of a measured cell: figures, checks, state."""
    load, manifest = plan.load, server.manifest
    price = manifest.price.usd_per_hour
    steady = _steady(load, columns, measured)
    facts = MetricInputs(columns, steady, not is_closed(load.pattern), counted.gained, price, plan.slos)
    metrics = measure(facts)
    looked_at = beginnings(plan.bodies, len(columns)) if load.prompts.kind in ("unique", "lengths", "file") else []
    pattern, stages = load.pattern, []
    if isinstance(pattern, Staged):
        stages = stage_figures(pattern, load.stop, facts, measured)
    evidence = Evidence(load, facts, metrics, counted, idle, manifest, manifest.served_by, looked_at)
    checks = check_all(evidence)
    client = client_figures(measured.client, columns, ttft_part(columns, steady))
    failures, examples = columns.failures(), _examples(measured.samples)
    platform = manifest.platform
    ttft = metrics["ttft_p50"].value or metrics["e2e_p50"].value
    limits = cell_status.limits_of_client(client, None if is_closed(load.pattern) else relative_rate(columns), ttft)
    state, reason = cell_status.state_of(
        checks,
        interrupted=client.interrupted,
        silent_seconds=client.silent_seconds,
        failing_requests=client.failing_requests,
        failed_share=client.failed_share,
        requests=len(columns),
        failures=failures,
        examples=examples,
        client_limits=limits,
        busy=cell_status.busy_machine(client, limits, ttft),
        saturated=cell_status.crowding_reason(client.crowd)
        or cell_status.backlog_reason(
            completed_share(load, columns, measured.began),
            metrics["offered_requests_per_second"].value,
            metrics["requests_per_second"].value,
        ),
        queueing=cell_status.queueing_reason(
            evidence.at_once, instances=platform.instances, concurrency=platform.concurrency
        ),
    )
    seconds = (measured.ended - measured.began) / 1e9
    return Cell(
        **planned_fields(plan),
        state=state,
        reason=reason,
        checks=checks,
        metrics=without_levels(metrics) if isinstance(pattern, Staged) else metrics,
        distributions={} if isinstance(pattern, Staged) else distributions(facts),
        stages=stages,
        urls=url_figures(load, facts),
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


def client_figures(health: ClientHealth, columns: Columns, part: Distribution | None = None) -> ClientFigures:
    """Return the client's figures in the document's shape; `part` is that of `ttft_part`."""
    is_begun = columns["begun"] > 0
    # Only until the request was begun: a request that then waits for a connection waits for the server.
    delays = (columns["begun"][is_begun] - columns["planned"][is_begun]) / 1e6
    late = max(0.0, statistics.percentile(delays, 0.99)) if len(delays) else None
    same = {name: getattr(health, name) for name in ClientFigures.model_fields if hasattr(health, name)}
    ends = {"silent_seconds": health.silent_seconds or None, "failing_requests": health.failing_requests or None}
    ends |= {name: getattr(health, name) or None for name in ("failed_share", "crowd", "waited")}
    return ClientFigures(**same | ends | {"schedule_delay_p99_ms": late, "ttft_part": part})


def relative_rate(columns: Columns) -> float | None:
    """Return the rate at which requests were begun, relative to the planned rate; None where there is no rate."""
    begun = columns["begun"][columns["begun"] > 0]
    due = columns["planned"]
    if len(begun) < 2 or due.max() == due.min():
        return None
    took = max(int(np.ptp(begun)), 1)
    return float(len(begun) - 1) / took / (float(len(due) - 1) / int(np.ptp(due)))


def _steady(load: Load, columns: Columns, measured: Measured) -> Steady:
    return steady_window(
        columns,
        measured.began,
        measured.ended,
        users=load.pattern.users if isinstance(load.pattern, Closed) else 0,
        changing=isinstance(load.pattern, Staged | Replay),
    )


def planned_fields(plan: CellPlan) -> dict[str, Any]:
    """Return the fields of a cell that are known before it is measured."""
    load = plan.load
    record = json.loads(to_json(load))
    pattern = record["pattern"]
    if len(pattern.get("instants", ())) > _INSTANTS:
        pattern["instants"] = f"{len(pattern['instants'])} instants: see `planned` in the samples"
    of_file = load.prompts.kind in ("file", "trace") or load.prompts.input_lengths
    drawn = load.prompts.kind == "trace" or load.prompts.output_lengths or load.prompts.length_column
    unknown_output = drawn or load.target.endpoint not in GENERATING
    return {
        "id": plan.id,
        "variant": plan.variant,
        "context_tokens": None if of_file else load.prompts.input_tokens,
        "users": load.pattern.users if isinstance(load.pattern, Closed) else None,
        "rate": load.pattern.rate if isinstance(load.pattern, Constant | Poisson | Burst) else None,
        "output_tokens": None if unknown_output else load.prompts.output_tokens,
        "pattern": pattern["kind"],
        "prompts": load.prompts.kind,
        "repeat": plan.repeat,
        "slos": list(plan.slos),
        "load": record,
    }


def _window(steady: Steady, facts: MetricInputs, measured: Measured) -> Window:
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
    """Return the detail of the first failure of each kind."""
    first: dict[str, str] = {}
    for sample in samples:
        if sample.failure and sample.failure not in first:
            first[sample.failure] = sample.detail[:_DETAIL]
    return first
