"""Reader of CSV: one row a cell, with a header; knows other tools' names of the columns.

Leaves out rows that are not cells: a file with a line that does not fit its header is refused, not guessed at.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bezel_bench.audit.figure import figure, number, whole
from bezel_bench.audit.systems import system_of
from bezel_bench.audit.table import Clock, ResultSource, Row
from bezel_bench.audit.units import latency_of, rate_of
from bezel_bench.audit.words import names

_COLUMNS = names("columns")
_ROWS = 50_000
# A table says nothing of how its rates were taken; a table of `bezel bench export` has them of a part of the load.
_CLOCK = Clock(within=0.10, edges=True, tail=0.05, whole=False)
_OWN = "nature"


def read_grid(text: str, item: str, label: str) -> ResultSource:
    """Return the rows of a CSV.

    Args:
        text: the file's contents.
        item: the file's name.
        label: words for values without a column.

    Raises:
        ValueError: it is not a CSV of results; the text names what is missing.
    """
    text = text.lstrip("\r\n")
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    units: dict[str, None] = {}
    try:
        header = _header(next(reader))
        for line in reader:
            if not any(cell.strip() for cell in line):
                continue
            if len(line) != len(header.names):
                raise ValueError(f"line {reader.line_num} has {len(line)} fields, the header {len(header.names)}")
            if len(rows) == _ROWS:
                raise ValueError(f"the file has more than {_ROWS:,} rows")
            rows.append(_row(header, line, reader.line_num, label))
            units |= {unit: None for unit in [header.cell(line, "unit")] if unit}
    except csv.Error as error:
        raise ValueError(f"the CSV is invalid ({error})") from None
    if not rows:
        raise ValueError("the file has a header and no row")
    placed = all(row.context is not None and row.users is not None for row in rows)
    return ResultSource(
        item=item, format="CSV grid", rows=tuple(rows), grid=placed, units=tuple(units), unread=header.unread
    )


@dataclass(frozen=True)
class _Header:
    """Index of the column of each value."""

    names: Sequence[str]
    columns: Mapping[str, int]
    rates: Mapping[int, str]
    latencies: Mapping[int, tuple[str, float]]

    @property
    def unread(self) -> tuple[str, ...]:
        """Return the columns that are neither read nor a setting."""
        read = {*self.columns.values(), *self.rates, *self.latencies}
        settings = {name for aliases in names("settings").values() for name in aliases} | {_OWN}
        return tuple(name for index, name in enumerate(self.names) if index not in read and name not in settings)

    def cell(self, line: Sequence[str], kind: str) -> str:
        """Return a value of a line; "" where there is no such column."""
        return line[self.columns[kind]].strip() if kind in self.columns else ""


def _header(line: Sequence[str]) -> _Header:
    names = [_name(name) for name in line]
    columns = {
        kind: names.index(column)
        for kind, aliases in _COLUMNS.items()
        if (column := next((name for name in aliases if name in names), None))
    }
    rates = {index: rate for index, name in enumerate(names) if (rate := _rate(name)) and index != columns.get("value")}
    if "input_tokens_per_second" in names:  # all prompt tokens, beside the computed ones, are no second such figure
        rates = {index: rate for index, rate in rates.items() if not names[index].startswith("prompt_tokens")}
    # Nothing of a file that is no grid is repeated: its name may come from an agent.
    first = "the first line"
    if "users" not in columns and "rate" not in columns:
        raise ValueError(f"{first} has no column of users or of a rate")
    if "value" not in columns and not rates:
        raise ValueError(f"{first} has no column with a measured rate")
    latencies = {index: mean for index, name in enumerate(names) if (mean := latency_of(name))}
    return _Header(names, columns, rates, latencies)


def _row(header: _Header, line: Sequence[str], order: int, label: str) -> Row:
    cells = {kind: header.cell(line, kind) for kind in _COLUMNS}
    figures = {rate: parsed for index, rate in header.rates.items() if (parsed := figure(line[index]))}
    for index, (name, factor) in header.latencies.items():
        if parsed := figure(line[index]):
            figures[name] = parsed.scale(factor)
    if value := figure(cells["value"]):
        figures[rate_of(cells["unit"] or "req/s") or cells["unit"]] = value
    fields = dict(zip(header.names, (cell.strip() for cell in line), strict=True))
    users, where = whole(cells["users"]), f"line {order}"
    if cells["users"] and users is None:
        raise ValueError(f"{where}: expected an integer as users, got {cells['users']!r}")
    success, cached, completed = figure(cells["success"]), whole(cells["cached"]), whole(cells["completed"])
    if success and ("success_pct" in fields or "%" in cells["success"] or success.value > 1):
        success = success.scale(0.01)
    return Row(
        where=where,
        order=order,
        context=whole(cells["context"]),
        users=users,
        rate=number(cells["rate"]),
        output_tokens=whole(cells["output"]),
        repeat=whole(cells["repeat"]),
        state=cells["state"].lower() or None,
        reason=cells["reason"],
        success=success,
        figures=figures,
        seconds=number(cells["seconds"]),
        requests=whole(cells["requests"]),
        completed=completed,
        failed=whole(cells["failed"]),
        cached_tokens=cached * completed if cached is not None and completed else None,
        timeout=number(cells["timeout"]),
        cap=whole(cells["cap"]),
        counted=cells["counted"] or None,
        clock=None if _OWN in header.names else _CLOCK,
        system=system_of(fields, label),
    )


def _name(column: str) -> str:
    """Return a column's name in lower case, with the unit from the brackets behind it: "ttft [ms]" is ttft_ms."""
    name, _, unit = column.strip().lower().replace("]", "").partition("[")
    name = name.strip().replace(" ", "_")
    return f"{name}_{unit}" if unit in ("ms", "s") else name


def _rate(column: str) -> str | None:
    """Return the rate that a column holds, e.g. "output_tokens_per_second" or "req_per_s"."""
    parts: Sequence[str] = column.split("_")
    return (
        rate_of(" ".join(parts)) if parts[-1] in ("s", "sec", "second", "rps", "tps", "qps") or "/" in column else None
    )
