"""Grid view of rows: cells by context and users, with the table's main rate."""

from collections.abc import Iterable
from dataclasses import dataclass

from bezel_bench.audit.figure import StatedFigure
from bezel_bench.audit.table import INPUT, OUTPUT, RATES, REQUESTS, TOTAL, ResultSource, Row
from bezel_bench.audit.words import group_by

# Context, users, response length and name of the rate.
Key = tuple[int | None, int | None, int | None, str]


def main_rate(row: Row) -> tuple[str, StatedFigure] | None:
    """Return the main rate of a row, with its name; requests before tokens."""
    return next(((name, figure) for name in RATES if (figure := row.figure(name))), None)


def success_share(row: Row) -> StatedFigure | None:
    """Return the share of a load's requests that succeeded, as stated or from their numbers."""
    if row.success is None and row.users is not None and row.completed is not None and row.requests:
        return StatedFigure(min(1.0, row.completed / row.requests), 0.0)
    return row.success


def rates_by_key(source: ResultSource) -> dict[Key, StatedFigure]:
    """Return the rates of a file's good cells, the first of each key; empty for a file of single runs."""
    cells: dict[Key, StatedFigure] = {}
    for row in source.rows:
        rate = main_rate(row)
        if rate and row.good and row.users is not None and row.context is not None:
            cells.setdefault((row.context, row.users, row.output_tokens, rate[0]), rate[1])
    return cells


def series(rows: Iterable[Row]) -> list[list[tuple[Row, StatedFigure]]]:
    """Group rows of one system, response length and rate, in their order: the rows that may be compared."""
    rated = [(row, *rate) for row in rows if row.users and (rate := main_rate(row))]
    groups = group_by(rated, lambda cell: (cell[0].system, cell[0].output_tokens, cell[1]))
    return [[(row, rate) for row, _, rate in group] for group in groups.values()]


@dataclass(frozen=True, slots=True)
class ResponseRate:
    """The rate of a row in responses, whatever unit it is printed in.

    Attributes:
        rate: Requests per second; of output tokens without a length, responses of one token.
        printed: The printed figure, and what it is divided by.
        unit: Unit of a time computed as a number of requests over the rate.
    """

    row: Row
    rate: StatedFigure
    printed: str
    unit: str


def response_rate(row: Row, rate: StatedFigure) -> ResponseRate | None:
    """Return the rate in responses; None where the tokens of a request are not stated."""
    name = next((name for name in RATES if row.figure(name)), None)
    if name == REQUESTS:
        return ResponseRate(row, rate, f"{rate.value:g}", "s")
    if name == OUTPUT and row.output_tokens is None:
        return ResponseRate(row, rate, f"{rate.value:g}", "s for each token of a response")
    prompt, output = row.context if name in (INPUT, TOTAL) else 0, row.output_tokens if name in (OUTPUT, TOTAL) else 0
    if name not in (INPUT, OUTPUT, TOTAL) or prompt is None or output is None or not prompt + output:
        return None
    each = f"({prompt} + {output})" if name == TOTAL else str(prompt + output)
    return ResponseRate(row, rate.scale(1 / (prompt + output)), f"({rate.value:g} / {each})", "s")
