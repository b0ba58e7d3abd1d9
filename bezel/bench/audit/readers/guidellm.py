"""Reader of guidellm's JSON report: one benchmark a load, each metric as distributions by the requests' outcome.

Traps of the format: time per output token includes the time to the first, so it is not read as `tpot`; inter-token
latencies are (last - first) / (tokens - 1) of a request.
"""

from collections.abc import Mapping
from typing import Any

from bezel.bench.audit.figure import Figure, figure, number, whole
from bezel.bench.audit.systems import system_of
from bezel.bench.audit.table import INPUT, LATENCIES, OUTPUT, REQUESTS, TOTAL, ResultSource, Row, median_of

# Metric of the report -> figure, factor to seconds.
_FIGURES = {
    "requests_per_second": (REQUESTS, 1.0),
    "output_tokens_per_second": (OUTPUT, 1.0),
    "prompt_tokens_per_second": (INPUT, 1.0),
    "tokens_per_second": (TOTAL, 1.0),
    "time_to_first_token_ms": ("ttft", 1e-3),
    "inter_token_latency_ms": ("tpot", 1e-3),
    "request_latency": ("e2e", 1.0),
}


def is_guidellm(document: Any) -> bool:
    """Whether JSON is a guidellm report."""
    benchmarks = document.get("benchmarks") if isinstance(document, Mapping) else None
    return (
        isinstance(benchmarks, list)
        and bool(benchmarks)
        and all(isinstance(load, Mapping) and isinstance(load.get("metrics"), Mapping) for load in benchmarks)
    )


def read_guidellm(document: Any, item: str, label: str) -> ResultSource:
    """Return the loads of a report."""
    rows = tuple(_row(load, order, label) for order, load in enumerate(document["benchmarks"], start=1))
    return ResultSource(item=item, format="guidellm", rows=rows)


def _row(load: Mapping[str, Any], order: int, label: str) -> Row:
    metrics, config = load["metrics"], load.get("config") or {}
    strategy = config.get("strategy") or (load.get("args") or {}).get("strategy") or {}
    totals = metrics.get("request_totals") or {}
    completed, failed = whole(totals.get("successful")), whole(totals.get("errored"))
    figures: dict[str, Figure] = {}
    for name, (rate, factor) in _FIGURES.items():
        part = _part(metrics.get(name), "successful")
        mean = figure(part.get("mean"))
        if mean and (mean.value or rate not in LATENCIES):
            figures[rate] = mean.scaled(factor)
        if rate in LATENCIES and (middle := figure(part.get("median"))):
            figures[median_of(rate)] = middle.scaled(factor)
    output, prompt = _sum(metrics.get("output_token_count")), _sum(metrics.get("prompt_token_count"))
    streams = whole(strategy.get("streams")) or (1 if strategy.get("type_") == "synchronous" else None)
    backend = config.get("backend") or {}
    return Row(
        where=f"benchmark {order}",
        order=order,
        context=round(prompt / completed) if prompt and completed else None,
        users=streams,
        rate=number(strategy.get("rate")) if streams is None else None,
        output_tokens=round(output / completed) if output and completed else None,
        figures=figures,
        seconds=number(load.get("duration")),
        requests=(completed or 0) + (failed or 0) if completed is not None else None,
        completed=completed,
        failed=failed,
        prompt_tokens=prompt,
        generated_tokens=output,
        in_flight=number(_part(metrics.get("request_concurrency"), "total").get("mean")),
        system=system_of(backend if isinstance(backend, Mapping) else {}, label),
    )


def _part(metric: Any, ended: str) -> Mapping[str, Any]:
    part = metric.get(ended) if isinstance(metric, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def _sum(metric: Any) -> int | None:
    total = number(_part(metric, "successful").get("total_sum"))
    return None if total is None else round(total)
