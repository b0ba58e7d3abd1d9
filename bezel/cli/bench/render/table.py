"""Text of the result of a run: one column a cell, one row a figure, then the checks' findings."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bezel.bench.result.document import Cell, Result

_COLUMNS = 120
_RATES = (
    *("offered_requests_per_second", "requests_per_second", "output_tokens_per_second", "input_tokens_per_second"),
    *("goodput", "cached_share", "acceptance_length", "cost_per_million_output_tokens"),
)
_LATENCIES = ("ttft", "tpot", "itl", "e2e", "schedule_delay")
_PERCENTILES = ("p50", "p90", "p99", "max")
_MARKS = {"passed": "ok", "failed": "FAILED", "suspect": "suspect", "unknown": "unknown"}


def table(result: Result) -> str:
    """Render the text, at most 120 columns wide."""
    lines: list[str] = []
    kind = " (simulated: no figure says anything of hardware)" if result.nature == "simulated" else ""
    lines.append(f"{result.manifest.title}, {result.manifest.url}{kind}")
    for cell in result.cells:
        lines += ["", *_cell(cell)]
    if result.findings:
        lines += ["", *(f"  {finding.text}" for finding in result.findings)]
    lines += [line for note in result.notes for line in _wrapped("note", note)]
    return "\n".join(lines) + "\n"


def _cell(cell: Cell) -> Iterator[str]:
    load = f"{cell.users} users" if cell.users else f"{cell.rate:g} requests/s" if cell.rate else cell.pattern
    sizes = f"{cell.context_tokens or 'as the file has them'} + {cell.output_tokens} tokens"
    took = "" if cell.seconds is None else f", {cell.requests} requests in {cell.seconds:.1f} s"
    yield f"{cell.id}: {cell.state.upper() if cell.state != 'ok' else 'ok'} ({load}, {sizes}{took})"
    if cell.reason:
        yield from _wrapped("why", cell.reason)
    if cell.failures:
        told = ", ".join(f"{kind}: {count}" for kind, count in sorted(cell.failures.items()))
        yield from _wrapped("failed", f"{told} (in no latency)")
    yield from _figures(cell)
    yield from _latencies(cell)
    if cell.window:
        yield from _wrapped("counted", f"{cell.window.begins:.1f} to {cell.window.ends:.1f} s: {cell.window.rule}")
    for check in cell.checks:
        yield from _wrapped(f"{check.name}: {_MARKS[check.state]}", check.text)


def _figures(cell: Cell) -> Iterator[str]:
    for name in _RATES:
        metric = cell.metrics.get(name)
        if metric is None or metric.value is None:
            continue
        interval = "" if metric.low is None or metric.high is None else f"  {metric.low:,.4g} to {metric.high:,.4g}"
        yield f"  {name:32}{_number(metric.value):>12} {metric.unit}{interval}"


def _latencies(cell: Cell) -> Iterator[str]:
    rows = [(name, cell.distributions[name]) for name in _LATENCIES if name in cell.distributions]
    if not rows:
        return
    yield "  " + f"{'ms':16}" + "".join(f"{name:>12}" for name in (*_PERCENTILES, "n"))
    for name, spread in rows:
        values: Sequence[float | None] = [getattr(spread, percentile) for percentile in _PERCENTILES]
        yield "  " + f"{name:16}" + "".join(f"{_number(value):>12}" for value in values) + f"{spread.n:>12}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.4g}"


def _wrapped(name: str, text: str) -> list[str]:
    return textwrap.wrap(f"{name}: {text}", _COLUMNS, initial_indent="  ", subsequent_indent="    ")
