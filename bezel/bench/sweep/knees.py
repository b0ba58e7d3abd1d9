"""Knees of a sweep: for each context the fewest users with which a server gives nearly all that it can. Pure.

A knee requires an observed plateau behind it: twice the users or more get hardly more. While throughput still rises,
the server's maximum is unknown, and so is the knee.

A plateau counts as seen where cells up to it were measured: at that context, or at both a shorter and a longer one,
between which the surface only interpolates. Anything else is an extrapolation of the model, and no basis for a load to
run at.
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


def knees(grid: Grid, metric: str, measured: Mapping[Place, float], inferred: Mapping[Place, float]) -> list[Finding]:
    """Return for each context with figures its knee, or a finding that no plateau was seen.

    Args:
        grid: The grid.
        metric: The metric of the values.
        measured: The measured values that count, by place.
        inferred: The surface's values, of other places.
    """
    rows = range(len(grid.contexts))
    observed = [row for row in rows if _at(grid, _row(measured, row)) is not None]
    findings = []
    for row in rows:
        known = _row(measured, row)
        figures = _row(inferred, row) | known
        inside = bool(observed) and observed[0] <= row <= observed[-1]
        column = _at(grid, figures) if inside else None
        if column is None and row in observed:
            figures, column = known, _at(grid, known)
        if column is not None:
            findings.append(_knee(grid, metric, row, figures, column, measured))
        elif figures:
            findings.append(_no_plateau(grid, metric, row, known))
    return findings


def _row(values: Mapping[Place, float], row: int) -> dict[int, float]:
    return {column: value for (at, column), value in sorted(values.items()) if at == row}


def _at(grid: Grid, figures: Mapping[int, float]) -> int | None:
    """Return the column of the knee."""
    columns = sorted(figures)
    place = (
        knee([grid.users[column] for column in columns], [figures[column] for column in columns]) if columns else None
    )
    return None if place is None else columns[place]


def _knee(
    grid: Grid, metric: str, row: int, figures: Mapping[int, float], column: int, measured: Mapping[Place, float]
) -> Finding:
    context, users, value = grid.contexts[row], grid.users[column], figures[column]
    highest = max(figures, key=lambda column: figures[column])
    kind = "measured" if (row, column) in measured else "inferred"
    return Finding(
        name="knee",
        text=f"At a context of {counted(context, 'tokens')} {counted(users, 'users')} "
        f"{'gets' if users == 1 else 'get'} {SHARE:.0%} of the plateau: {value:.4g} {metric} ({kind}).",
        numbers={
            "context_tokens": context,
            "users": users,
            "value": value,
            "kind": kind,
            "highest": figures[highest],
            "highest_users": grid.users[highest],
        },
        cells=[grid.request((row, column)).id for column in sorted(figures) if (row, column) in measured],
    )


def _no_plateau(grid: Grid, metric: str, row: int, known: Mapping[int, float]) -> Finding:
    context = grid.contexts[row]
    last = sorted(known)[-_SHOWN:]
    levels = ", ".join(f"{known[column]:.4g} at {counted(grid.users[column], 'users')}" for column in last)
    figures = f"{metric} was {levels}" if known else f"no {metric} was measured there"
    highest = max(known, key=lambda column: known[column], default=None)
    return Finding(
        name="no_plateau",
        text=f"At a context of {counted(context, 'tokens')} no plateau was seen, so no knee is named: {figures}. "
        "A sweep with more users may show one.",
        numbers={
            "context_tokens": context,
            "highest": None if highest is None else known[highest],
            "highest_users": None if highest is None else grid.users[highest],
        },
        cells=[grid.request((row, column)).id for column in sorted(known)],
    )
