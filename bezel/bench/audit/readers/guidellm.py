"""Reader of guidellm's JSON report: one benchmark a load, each metric as distributions by the requests' outcome.

Traps of the format: time per output token includes the time to the first, so it is not read as `tpot`; inter-token
latencies are (last - first) / (tokens - 1) of a request.
"""

from collections.abc import Mapping
from typing import Any

from bezel.bench.audit.figure import Figure, figure, whole
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
        and all(isinstance(one, Mapping) and isinstance(one.get("metrics"), Mapping) for one in benchmarks)
    )


def read_guidellm(document: Any, item: str, label: str) -> ResultSource:
    """Return the loads of a report."""
    rows = tuple(_row(one, number, label) for number, one in enumerate(document["benchmarks"], start=1))
    return ResultSource(item=item, format="guidellm", rows=rows)


def _row(one: Mapping[str, Any], number: int, label: str) -> Row:
    metrics, config = one["metrics"], one.get("config") or {}
    strategy = config.get("strategy") or (one.get("args") or {}).get("strategy") or {}
    totals = metrics.get("request_totals") or {}
    completed, failed = whole(totals.get("successful")), whole(totals.get("errored"))
    figures: dict[str, Figure] = {}
    for name, (rate, factor) in _FIGURES.items():
        found = figure(_part(metrics.get(name), "successful").get("mean"))
        if found and (found.value or rate not in LATENCIES):
            figures[rate] = found.scaled(factor)
        if rate in LATENCIES and (middle := figure(_part(metrics.get(name), "successful").get("median"))):
            figures[median_of(rate)] = middle.scaled(factor)
    output, prompt = _sum(metrics.get("output_token_count")), _sum(metrics.get("prompt_token_count"))
    in_flight = figure(_part(metrics.get("request_concurrency"), "total").get("mean"))
    seconds, rate_ = figure(one.get("duration")), figure(strategy.get("rate"))
    streams = whole(strategy.get("streams")) or (1 if strategy.get("type_") == "synchronous" else None)
    backend = config.get("backend") or {}
    return Row(
        where=f"benchmark {number}",
        order=number,
        context=round(prompt / completed) if prompt and completed else None,
        users=streams,
        rate=rate_.value if rate_ and streams is None else None,
        output_tokens=round(output / completed) if output and completed else None,
        figures=figures,
        seconds=seconds.value if seconds else None,
        requests=(completed or 0) + (failed or 0) if completed is not None else None,
        completed=completed,
        failed=failed,
        prompt_tokens=prompt,
        generated_tokens=output,
        in_flight=in_flight.value if in_flight else None,
        system=system_of(backend if isinstance(backend, Mapping) else {}, label),
    )


def _part(metric: Any, ended: str) -> Mapping[str, Any]:
    part = metric.get(ended) if isinstance(metric, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def _sum(metric: Any) -> int | None:
    found = figure(_part(metric, "successful").get("total_sum"))
    return round(found.value) if found else None
