"""Reader of reports that hold a metric's statistics below its name: guidellm, aiperf and inference-perf.

Owns the walk along the paths of reports.toml, which names each format's places and traps. A load is a row.
"""

import functools
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bezel.bench.audit.figure import figure, number, whole
from bezel.bench.audit.labels import date_in
from bezel.bench.audit.systems import system_of
from bezel.bench.audit.table import LATENCIES, ResultSource, Row, median_of


@functools.cache
def _formats() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("reports.toml").read_text("utf-8"))


def is_report(document: Any) -> bool:
    """Whether JSON is a report of one of the formats."""
    return _format(document) is not None


def read_report(document: Any, item: str, label: str) -> ResultSource:
    """Return the loads of a report, each with the words of the file's name where it names no model."""
    name = _format(document) or ""
    places = _formats()[name]
    loads = _loads(document, places)
    rows = tuple(_row(places, load, order, label, len(loads)) for order, load in enumerate(loads, start=1))
    return ResultSource(item=item, format=name, rows=rows, dated=date_in(str(_at(document, "start_time") or "")))


def _format(document: Any) -> str | None:
    for name, places in _formats().items():
        loads = _loads(document, places)
        if loads and all(_at(load, path) is not None for load in loads for path in places["known"]):
            return name
    return None


def _loads(document: Any, places: Mapping[str, Any]) -> list[Any]:
    found = _at(document, places["loads"]) if "loads" in places else [document]
    return found if isinstance(found, list) else []


def _row(places: Mapping[str, Any], load: Any, order: int, label: str, of: int) -> Row:
    figures = {}
    for name, (path, factor) in places["figures"].items():
        metric = _at(load, path)
        mean = figure(_at(metric, places["mean"]) if isinstance(metric, Mapping) else metric)
        if mean and (mean.value or name not in LATENCIES):
            figures[name] = mean.scaled(factor)
        if name in LATENCIES and (middle := figure(_at(metric, places["median"]))) and middle.value:
            figures[median_of(name)] = middle.scaled(factor)
    completed, failed = whole(_first(load, places["completed"])), whole(_first(load, places["failed"]))
    prompt, output = (number(_at(_first(load, places[name]), places["mean"])) for name in ("context", "output"))
    users = 1 if _first(load, places["alone"]) == "synchronous" else whole(_first(load, places["users"]))
    model = _first(load, places["model"])
    return Row(
        where=f"benchmark {order}" if of > 1 else "the run",
        order=order,
        context=round(prompt) if prompt else None,
        users=users,
        rate=number(_first(load, places["rate"])) if users is None else None,
        output_tokens=round(output) if output else None,
        figures=figures,
        seconds=number(_first(load, places["seconds"])),
        planned=whole(_first(load, places["planned"])),
        requests=None if completed is None else completed + (failed or 0),
        completed=completed,
        failed=failed,
        prompt_tokens=round(prompt * completed) if prompt and completed else None,
        generated_tokens=round(output * completed) if output and completed else None,
        in_flight=number(_first(load, places["in_flight"])),
        system=system_of({"model": model} if isinstance(model, str) else {}, label),
    )


def _first(load: Any, paths: Iterable[str]) -> Any:
    return next((found for path in paths if (found := _at(load, path)) is not None), None)


def _at(document: Any, path: str) -> Any:
    """Return the value at a dotted path, whose numbers count in lists; None where it leads nowhere."""
    for name in path.split("."):
        if isinstance(document, list) and name.lstrip("-").isdigit():
            document = document[int(name)] if -len(document) <= int(name) < len(document) else None
        else:
            document = document.get(name) if isinstance(document, Mapping) else None
    return document
