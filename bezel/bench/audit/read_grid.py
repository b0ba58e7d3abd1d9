"""CSV: one row a cell, with a header. Other people name the columns in their own way; those names are here.

Leaves out rows that are no cells: a file with a line that does not fit its header is refused, not guessed at.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from bezel.bench.audit.figure import Figure, figure, whole
from bezel.bench.audit.systems import system_of
from bezel.bench.audit.table import Row, Source
from bezel.bench.audit.units import latency_of, rate_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COLUMNS = {
    "context": ("context_tokens", "context", "context_length", "input_tokens", "prompt_tokens", "input_len", "isl"),
    "users": ("users", "concurrency", "concurrent_users", "num_users", "max_concurrency"),
    "rate": ("rate", "request_rate", "offered_rate"),
    "output": ("output_tokens", "output_len", "max_tokens", "osl"),
    "value": ("value", "throughput"),
    "unit": ("unit", "units"),
    "success": ("success_pct", "success_rate", "success"),
    "state": ("status", "state"),
    "reason": ("reason", "error", "note"),
    "repeat": ("repeat", "run", "run_id"),
    "requests": ("requests", "num_prompts", "total_requests"),
    "completed": ("completed", "successful_requests", "succeeded"),
    "failed": ("failed", "errors", "failed_requests"),
    "seconds": ("seconds", "duration", "duration_s"),
    "timeout": ("timeout_s", "timeout"),
    "cap": ("requests_cap", "client_limit", "pool_limit", "max_connections"),
    "counted": ("counted",),
    "cached": ("cached_tokens",),
}
_ROWS = 200_000


def read_grid(text: str, item: str, label: str) -> Source:
    """The rows of a CSV.

    Args:
        text: of the file.
        item: what the file is called.
        label: words for what no column says.

    Raises:
        ValueError: it is no CSV of results; the text says what is missing.
    """
    lines = text.splitlines()
    delimiter = max(",;\t", key=lines[0].count)
    try:
        table = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise ValueError(f"it is no CSV ({error})") from None
    header = [name.strip().lower().replace(" ", "_") for name in table[0]]
    at = {
        kind: next((header.index(name) for name in names if name in header), None) for kind, names in _COLUMNS.items()
    }
    rates = {index: rate for index, name in enumerate(header) if (rate := _rate(name)) and index != at["value"]}
    latencies = {index: found for index, name in enumerate(header) if (found := latency_of(name))}
    if at["users"] is None and at["rate"] is None:
        raise ValueError(f"its first line names no column of users or of a rate ({', '.join(header[:8])})")
    if at["value"] is None and not rates:
        raise ValueError(f"its first line names no column with a rate ({', '.join(header[:8])})")
    if len(table) > _ROWS:
        raise ValueError(f"{len(table):,} rows, more than the {_ROWS:,} that are read")
    rows, units = [], dict[str, None]()
    for number, line in enumerate(table[1:], start=2):
        if not any(cell.strip() for cell in line):
            continue
        if len(line) != len(header):
            raise ValueError(f"line {number} has {len(line)} fields, the header {len(header)}")
        cells = {kind: line[index].strip() if index is not None else "" for kind, index in at.items()}
        if cells["unit"]:
            units[cells["unit"]] = None
        said = {name: cell.strip() for name, cell in zip(header, line, strict=True)}
        figures = {rate: told for index, rate in rates.items() if (told := figure(line[index]))}
        figures |= {
            name: told.scaled(factor) for index, (name, factor) in latencies.items() if (told := figure(line[index]))
        }
        rows.append(_row(cells, said, figures, number, label))
    if not rows:
        raise ValueError("it has a header and no row")
    placed = [row for row in rows if row.context is not None and row.users is not None]
    return Source(item=item, format="CSV grid", rows=tuple(rows), grid=len(placed) == len(rows), units=tuple(units))


def _row(
    cells: Mapping[str, str], said: Mapping[str, str], figures: Mapping[str, Figure], number: int, label: str
) -> Row:
    given = dict(figures)
    if value := figure(cells["value"]):
        given[rate_of(cells["unit"] or "req/s") or cells["unit"]] = value
    users, where = whole(cells["users"]), f"line {number}"
    if cells["users"] and users is None:
        raise ValueError(f"{where}: users {cells['users']!r} is no whole number")
    success, rate, seconds = figure(cells["success"]), figure(cells["rate"]), figure(cells["seconds"])
    if success and ("success_pct" in said or "%" in cells["success"] or success.value > 1):
        success = success.scaled(0.01)
    timeout = figure(cells["timeout"])
    return Row(
        where=where,
        order=number,
        context=whole(cells["context"]),
        users=users,
        rate=rate.value if rate else None,
        output_tokens=whole(cells["output"]),
        repeat=whole(cells["repeat"]),
        state=cells["state"].lower() or None,
        reason=cells["reason"],
        success=success,
        figures=given,
        seconds=seconds.value if seconds else None,
        requests=whole(cells["requests"]),
        completed=whole(cells["completed"]),
        failed=whole(cells["failed"]),
        cached_tokens=_total(whole(cells["cached"]), whole(cells["completed"])),
        timeout=timeout.value if timeout else None,
        cap=whole(cells["cap"]),
        counted=cells["counted"] or None,
        system=system_of(said, label),
    )


def _total(each: int | None, requests: int | None) -> int | None:
    return each * requests if each is not None and requests else None


def _rate(column: str) -> str | None:
    """Which rate a column of its own holds, e.g. "output_tokens_per_second" or "req_per_s"."""
    words: Sequence[str] = column.split("_")
    return (
        rate_of(" ".join(words)) if words[-1] in ("s", "sec", "second", "rps", "tps", "qps") or "/" in column else None
    )
