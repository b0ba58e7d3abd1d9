"""Conversion of a measured cell into a stack's outputs. Pure. A figure that cannot be measured is absent, never 0."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bezel.bench.cell.cell import MeasuredCell
    from bezel.bench.result.document import Cell

_RATES = {"requests_per_second": 3, "input_tokens_per_second": 1, "output_tokens_per_second": 1}
_LATENCIES = ("ttft", "tpot", "e2e")


def figures(measured: "MeasuredCell", told: Sequence[str], *, simulated: bool) -> dict[str, Any]:
    """The record of a short benchmark, fit for a stack's outputs.

    Args:
        measured: The cell of the load.
        told: Notes about the prompts for the reader.
        simulated: Whether the server is a simulated one: then no figure describes hardware.
    """
    cell = measured.cell
    failed = sum(cell.failures.values())
    prompts = (cell.load or {}).get("prompts", {})
    record: dict[str, Any] = {
        "simulated": simulated,
        "state": cell.state,
        "requests": cell.requests,
        "completed": cell.requests - failed,
        "failed": dict(cell.failures),
        "concurrency": cell.users,
        "seed": prompts.get("seed"),
        "run": prompts.get("run"),
        "seconds": round(cell.seconds or 0.0, 3),
        "checks": {check.name: check.state for check in cell.checks},
        "notes": _notes(cell, told, simulated=simulated),
    }
    if measured.samples is not None and record["completed"]:
        good = measured.samples.good()
        record |= {name: int(good[name].sum()) for name in ("prompt_tokens", "output_tokens")}
    record |= {name: round(value, digits) for name, digits in _RATES.items() if (value := cell.value(name)) is not None}
    for name in _LATENCIES:
        if spread := cell.distributions.get(name):
            values = {"p50": spread.p50, "p99": spread.p99, "max": spread.max}
            record[f"{name}_ms"] = {key: round(value, 2) for key, value in values.items() if value is not None}
    return record


def _notes(cell: "Cell", told: Sequence[str], *, simulated: bool) -> list[str]:
    notes = ["simulated: the server is a simulated one, no figure says anything of hardware"] if simulated else []
    if failed := sum(cell.failures.values()):
        notes.append(f"{failed} of {cell.requests} requests failed and are in no figure but `failed`")
    stop = (cell.load or {}).get("stop", {})
    if cell.requests < (stop.get("requests") or 0):
        notes.append(f"only {cell.requests} of {stop['requests']} requests were begun within {stop['seconds']:g} s")
    notes += [f"{check.name}: {check.text}" for check in cell.checks if check.state in {"failed", "suspect"}]
    if cell.state in {"client_limited", "queueing"}:
        notes.append(cell.reason)
    return [*notes, *told]
