"""Export of a result as OpenMetrics text, for Prometheus: figures of each cell, and the server's metrics over its load.

A load in stages has its figures once for each stage, at the stage's end, and as a whole only those that depend on no
level. Every value has its instant, so that `promtool tsdb create-blocks-from openmetrics` takes the file, and any tool
that reads Prometheus' text. Times are in seconds, other figures in their own unit. Unknown figures are left out.
"""

from collections.abc import Iterator
from datetime import timedelta

from bezel_bench.metrics.definitions import DEFINITIONS
from bezel_bench.result.document import Cell, Result

_OF_THE_PLATFORM = {
    "gpu": "Share of time in which the server's GPUs worked, 0 to 1, by its platform.",
    "gpu_memory": "Used share of the memory of the server's GPUs, 0 to 1, by its platform.",
    "instances": "Instances of the server, by its platform.",
}
_SERIES = {
    "running": "Requests that ran at the server.",
    "waiting": "Requests that waited at the server.",
    "kv_cache_used": "Used share of the server's KV cache, 0 to 1.",
    "prompt_tokens": "Prompt tokens that the server counted since the first read.",
    "generated_tokens": "Tokens that the server generated since the first read.",
    "preemptions": "Requests that the server preempted since the first read.",
}


def as_open_metrics(result: Result) -> str:
    """Return the cells that have a start as OpenMetrics text."""
    cells = [cell for cell in result.cells if cell.started_at is not None]
    every = [part for cell in cells for part in ((cell, *cell.parts()) if cell.stages else (cell,))]
    families = (*_figures(result, every), *_server(result, cells), *_platform(result, cells))
    lines = [line for family in families for line in family]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _figures(result: Result, cells: list[Cell]) -> Iterator[list[str]]:
    for metric in DEFINITIONS:
        in_ms = metric.unit == "ms"
        name = f"bezel_bench_{metric.name}" + ("_seconds" if in_ms else "")
        factor = 1e-3 if in_ms else 1.0
        values = [
            f"{name}{_labels(result, cell)} {value * factor!r} {_instant(cell, cell.seconds or 0.0)}"
            for cell in cells
            if (value := cell.value(metric.name)) is not None
        ]
        if values:
            unit = "s" if in_ms else metric.unit
            yield [f"# TYPE {name} gauge", f"# HELP {name} {_escape(metric.name)} ({_escape(unit)}).", *values]


def _server(result: Result, cells: list[Cell]) -> Iterator[list[str]]:
    for field, text in _SERIES.items():
        name = f"bezel_bench_server_{field}"
        values = [
            f"{name}{_labels(result, cell)} {value!r} {_instant(cell, at)}"
            for cell in cells
            if cell.server_series
            for at, value in zip(cell.server_series.at_seconds, getattr(cell.server_series, field) or [], strict=False)
        ]
        if values:
            yield [f"# TYPE {name} gauge", f"# HELP {name} {text}", *values]


def _platform(result: Result, cells: list[Cell]) -> Iterator[list[str]]:
    for of, text in _OF_THE_PLATFORM.items():
        name = f"bezel_bench_platform_{of}"
        values = [
            f"{name}{_labels(result, cell)} {value!r} {_instant(cell, at)}"
            for cell in cells
            for series in cell.platform_series
            if series.of == of
            for at, value in zip(series.at_seconds, series.values, strict=True)
        ]
        if values:
            yield [f"# TYPE {name} gauge", f"# HELP {name} {text}", *values]


def _labels(result: Result, cell: Cell) -> str:
    labels = {
        "cell": cell.id,
        "variant": cell.variant,
        "title": result.manifest.title,
        "model": result.manifest.model,
        "nature": result.nature,
        "state": cell.state,
        "pattern": cell.pattern,
        "users": cell.users,
        "rate": cell.rate,
        "context_tokens": cell.context_tokens,
        "output_tokens": cell.output_tokens,
        "repeat": cell.repeat,
    }
    pairs = [f'{name}="{_escape(str(value))}"' for name, value in labels.items() if value not in (None, "")]
    return "{" + ",".join(pairs) + "}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _instant(cell: Cell, after_seconds: float) -> str:
    assert cell.started_at is not None  # noqa: S101 - cells without one are left out
    return f"{(cell.started_at + timedelta(seconds=after_seconds)).timestamp():.3f}"
