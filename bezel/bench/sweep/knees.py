"""Knees of a sweep: for each context the fewest users with which a server gives nearly all that it can. Pure.

A knee requires an observed plateau behind it: twice the users or more get hardly more. While throughput still rises,
the server's maximum is unknown, and so is the knee.

Only measured cells show it: an inferred plateau is no basis for a load to run at.
"""

from collections.abc import Mapping, Sequence
from statistics import median_low

from bezel.bench.result.document import Finding
from bezel.bench.sweep.grid import Grid, Place
from bezel.bench.sweep.wording import counted

_SHOWN = 3
SHARE = 0.9
TIMES = 2  # times the users of the knee: the least extent of a plateau
_HIGHEST = 3  # their median is the plateau: one lucky measurement does not raise it


def knee(users: Sequence[float], values: Sequence[float]) -> int | None:
    """Return the index of the first value that reaches nine tenths of the plateau; None where no plateau was seen.

    The plateau is the median of the three highest values, or the value at the most users, if that is higher. It was
    seen where the most users are at least twice those of the knee.

    Args:
        users: Rising.
        values: Throughput of each, at least one.

    Returns:
        The index of the knee.
    """
    plateau = max(median_low(sorted(values)[-_HIGHEST:]), values[-1])
    first = next(place for place, value in enumerate(values) if value >= SHARE * plateau)
    return first if users[-1] >= TIMES * users[first] else None


def knees(grid: Grid, metric: str, measured: Mapping[Place, float]) -> list[Finding]:
    """Return for each context with figures its knee, or a finding that no plateau was seen.

    Args:
        grid: The grid.
        metric: The metric of the values.
        measured: The measured values that count, by place.
    """
    findings = []
    for row in range(len(grid.contexts)):
        if known := _row(measured, row):
            column = _at(grid, known)
            findings.append(
                _no_plateau(grid, metric, row, known) if column is None else _knee(grid, metric, row, known, column)
            )
    return findings


def _row(values: Mapping[Place, float], row: int) -> dict[int, float]:
    return {column: value for (at, column), value in sorted(values.items()) if at == row}


def _at(grid: Grid, figures: Mapping[int, float]) -> int | None:
    """Return the column of the knee."""
    columns = sorted(figures)
    place = knee([grid.users[column] for column in columns], [figures[column] for column in columns])
    return None if place is None else columns[place]


def _knee(grid: Grid, metric: str, row: int, figures: Mapping[int, float], column: int) -> Finding:
    context, users, value = grid.contexts[row], grid.users[column], figures[column]
    highest = max(figures, key=lambda column: figures[column])
    return Finding(
        name="knee",
        text=f"At a context of {counted(context, 'tokens')} {counted(users, 'users')} "
        f"{'gets' if users == 1 else 'get'} {SHARE:.0%} of the plateau: {value:.4g} {metric}.",
        numbers={
            "context_tokens": context,
            "users": users,
            "value": value,
            "highest": figures[highest],
            "highest_users": grid.users[highest],
        },
        cells=[grid.request((row, column)).id for column in sorted(figures)],
    )


def _no_plateau(grid: Grid, metric: str, row: int, known: Mapping[int, float]) -> Finding:
    context = grid.contexts[row]
    last = sorted(known)[-_SHOWN:]
    levels = ", ".join(f"{known[column]:.4g} at {counted(grid.users[column], 'users')}" for column in last)
    highest = max(known, key=lambda column: known[column])
    return Finding(
        name="no_plateau",
        text=f"At a context of {counted(context, 'tokens')} no plateau was seen, so no knee is named: {metric} was "
        f"{levels}. A sweep with more users may show one.",
        numbers={
            "context_tokens": context,
            "highest": known[highest],
            "highest_users": grid.users[highest],
        },
        cells=[grid.request((row, column)).id for column in sorted(known)],
    )
