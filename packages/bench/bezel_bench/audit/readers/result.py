"""Reader of Bezel's own result: every requested cell, with its state, its figures and the server's counters.

Each stage of a load in stages is a row, whose rates are of what ended in its time and whose latencies are of what was
due in it: requests that cross its borders are in one of them only.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bezel_bench.audit.figure import StatedFigure, figure
from bezel_bench.audit.spread import Spread
from bezel_bench.audit.systems import system_of
from bezel_bench.audit.table import (
    INPUT,
    LATENCIES,
    OUTPUT,
    OUTPUT_LENGTH,
    REQUESTS,
    Clock,
    ResultSource,
    Row,
    System,
    median_of,
)
from bezel_bench.result.document import Cell, Result, parse
from bezel_bench.result.records import ServedBy

_TIMES = [name for name in LATENCIES if name != "itl"]  # gaps between chunks, which merge: no figure of a token
_LATENCIES = {name: f"{name}_mean" for name in _TIMES} | {median_of(name): f"{name}_p50" for name in _TIMES}
_QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}
# docs/metrics.md: rates are of the part that counts, and tokens count by the part of their time inside it.
_CLOCK = Clock(within=0.05, edges=True, tail=0.02, whole=False, totals=False)
_READ = (
    *(f"{name}_{statistic}" for name in _TIMES for statistic in ("mean", *_QUANTILES)),
    REQUESTS, OUTPUT, INPUT, "output_tokens_mean", "prompt_tokens_mean", "cached_share", "in_flight",
    "schedule_delay_p99",
)  # fmt: skip
_WHOLE_LENGTH = 0.999


def is_result(document: Any) -> bool:
    """Whether JSON is a result of any version."""
    return isinstance(document, Mapping) and str(document.get("schema", "")).startswith("bezel.bench/")


def read_result(document: Any, item: str, label: str) -> ResultSource:
    """Return the cells of a result.

    Raises:
        bezel_bench.result.document.ResultError: it is not of the version that this program reads, or violates
        it.
    """
    result = parse(json.dumps(document), item)
    parts = [(cell, part) for cell in result.cells for part in cell.parts()]
    rows = tuple(
        replace(_row(result, part, order, label), clock=_clock_of(cell, part), rated=_rate_basis(cell, part))
        for order, (cell, part) in enumerate(parts)
    )
    grid = result.kind == "sweep" and all(
        cell.users is not None and cell.context_tokens is not None for cell in result.cells
    )
    return ResultSource(
        item=item,
        format="bezel bench",
        rows=rows,
        grid=grid,
        unread=tuple(dict.fromkeys(name for _, part in parts for name in part.metrics if name not in _READ)),
        absent=frozenset((cell.context_tokens, cell.users) for cell in result.inferred),
        dated=result.manifest.started_at.date().isoformat(),
    )


def _row(result: Result, cell: Cell, order: int, label: str) -> Row:
    gained = cell.counters.gained if cell.counters else None
    failed = sum(cell.failures.values())
    completed = cell.requests - failed
    figures = {name: rate for name in (REQUESTS, OUTPUT, INPUT) if (rate := figure(cell.value(name)))}
    figures |= {name: ms.scale(1e-3) for name, metric in _LATENCIES.items() if (ms := figure(cell.value(metric)))}
    mean_output, cached = cell.value("output_tokens_mean"), cell.value("cached_share")
    prompt = cell.value("prompt_tokens_mean")
    return Row(
        where=f"cell {cell.id}",
        order=order,
        context=cell.context_tokens,
        users=cell.users,
        rate=cell.rate,
        output_tokens=cell.output_tokens,
        repeat=cell.repeat,
        state=cell.state,
        reason=cell.reason,
        success=StatedFigure(completed / cell.requests, 0.0) if cell.requests else None,
        figures=figures,
        seconds=cell.seconds,
        requests=cell.requests or None,
        completed=completed,
        failed=failed,
        prompt_tokens=round(prompt * completed) if prompt is not None else None,
        cached_tokens=round(cached * prompt * completed) if cached is not None and prompt is not None else None,
        generated_tokens=round(mean_output * completed) if mean_output is not None else None,
        server_output_tokens=gained.generated_tokens if gained else None,
        drafts=gained.drafts if gained else None,
        draft_tokens=gained.draft_tokens if gained else None,
        accepted=gained.accepted_tokens if gained else None,
        in_flight=cell.value("in_flight"),
        mean_prompt=prompt,
        mean_output=mean_output,
        spreads=_spreads(cell, mean_output),
        system=_system(result, result.variants.get(cell.variant, result.manifest.served_by), cell, label),
    )


def _spreads(cell: Cell, mean_output: float | None) -> dict[str, Spread]:
    """Return the spreads of the times in seconds; of the length where every response has the requested one."""
    spreads = {}
    for name in _TIMES:
        values = {share: ms * 1e-3 for word, share in _QUANTILES.items() if (ms := cell.value(f"{name}_{word}"))}
        if mean := cell.value(f"{name}_mean"):
            spreads[name] = Spread(mean=mean * 1e-3, quantiles=values)
    if mean_output and cell.output_tokens and mean_output >= _WHOLE_LENGTH * cell.output_tokens:
        spreads[OUTPUT_LENGTH] = Spread(mean=mean_output, deviation=0.0)
    return spreads


def _clock_of(cell: Cell, part: Cell) -> Clock:
    """Return how the rates of a cell, or of a stage of it, were taken."""
    if not cell.stages:
        return _CLOCK
    crossing = sum(_under_way(cell, part, edge) for edge in (-1, 0))
    metric = part.metrics.get(REQUESTS)
    completed = (metric.n if metric and metric.n else 0) - crossing
    # A stage may have completed requests of other stages only: then no rate of it fits a latency.
    return replace(_CLOCK, crossing=crossing / max(completed, 1e-3))


def _under_way(cell: Cell, part: Cell, edge: int) -> float:
    """Return the most requests that may cross the begin (-1) or the end (0) of a stage."""
    at = [each.id for each in cell.parts()].index(part.id)
    beside = cell.stages[max(0, at + edge) : at + edge + 2]
    means = [metric.value for stage in beside if (metric := stage.metrics.get("in_flight")) and metric.value]
    # The mean of a queue that grows evenly is half of its end.
    return max((stage.level for stage in beside), default=0.0) if part.users is not None else 2 * max(means, default=0)


def _rate_basis(cell: Cell, part: Cell) -> tuple[float, int] | None:
    metric = part.metrics.get(REQUESTS)
    if metric is None or not metric.n:
        return None
    if cell.stages:
        return (part.seconds, metric.n) if part.seconds else None
    return (cell.window.ends - cell.window.begins, metric.n) if cell.window else None


def _system(result: Result, served: ServedBy, cell: Cell, label: str) -> System:
    platform, manifest = result.manifest.platform, result.manifest
    arguments = served.arguments or []
    return system_of(
        {
            "hardware": platform.accelerator,
            "chips": platform.chips,
            "instances": platform.instances,
            "concurrency_limit": platform.concurrency,
            "model": manifest.checkpoint or manifest.model,
            # Bezel's cells may load an engine above it on purpose: the server counts the requests that wait there.
            "max_num_seqs": served.max_num_seqs if platform.concurrency else None,
            "max_model_len": served.max_model_len,
            "kv_dtype": served.kv_cache_dtype,
            "speculation": _option(arguments, "spec-method") or _option(arguments, "speculative-config"),
            "spec_tokens": _option(arguments, "spec-tokens"),
            "arguments": " ".join(word for word in arguments if "offload" in word),
            "prompts": cell.prompts,
            "nature": result.nature,
        },
        label,
    )


def _option(arguments: list[str], name: str) -> str | None:
    for index, word in enumerate(arguments):
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
        if word == f"--{name}" and index + 1 < len(arguments):
            return arguments[index + 1]
    return None
