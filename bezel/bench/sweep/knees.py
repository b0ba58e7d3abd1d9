"""Knees of a sweep: for each context its knee, or a note that no plateau was seen. Pure.

A plateau counts as seen where cells up to it were measured: at that context, or at both a shorter and a longer one,
between which the surface only interpolates. Anything else is an extrapolation of the model, and no basis for a load to
run at.
"""

from collections.abc import Mapping

from bezel.bench.result.document import Finding
from bezel.bench.sweep.grid import Grid, Place
from bezel.bench.sweep.knee import SHARE, knee
from bezel.bench.sweep.wording import counted

_SHOWN = 3


def knees(grid: Grid, metric: str, measured: Mapping[Place, float], inferred: Mapping[Place, float]) -> list[Finding]:
    """Return for each context with figures its knee, or a finding that no plateau was seen.

    Args:
        grid: The grid.
        metric: The metric of the values.
        measured: The measured values that count, by place.
        inferred: The surface's values, of other places.
    """
    rows = range(len(grid.contexts))
    seen = [row for row in rows if _at(grid, _row(measured, row)) is not None]
    findings = []
    for row in rows:
        known = _row(measured, row)
        figures = _row(inferred, row) | known
        inside = bool(seen) and seen[0] <= row <= seen[-1]
        found = _at(grid, figures) if inside else None
        if found is None and row in seen:
            figures, found = known, _at(grid, known)
        if found is not None:
            findings.append(_knee(grid, metric, row, figures, found, measured))
        elif figures:
            findings.append(_no_plateau(grid, metric, row, known))
    return findings


def _row(values: Mapping[Place, float], row: int) -> dict[int, float]:
    return {column: value for (at, column), value in sorted(values.items()) if at == row}


def _at(grid: Grid, figures: Mapping[int, float]) -> int | None:
    """Return the column of the knee."""
    columns = sorted(figures)
    place = knee([grid.users[one] for one in columns], [figures[one] for one in columns]) if columns else None
    return None if place is None else columns[place]


def _knee(
    grid: Grid, metric: str, row: int, figures: Mapping[int, float], found: int, measured: Mapping[Place, float]
) -> Finding:
    context, users, value = grid.contexts[row], grid.users[found], figures[found]
    most = max(figures, key=lambda column: figures[column])
    kind = "measured" if (row, found) in measured else "inferred"
    return Finding(
        name="knee",
        text=f"At a context of {counted(context, 'tokens')} {counted(users, 'users')} "
        f"{'gets' if users == 1 else 'get'} {SHARE:.0%} of the plateau: {value:.4g} {metric} ({kind}).",
        numbers={
            "context_tokens": context,
            "users": users,
            "value": value,
            "kind": kind,
            "highest": figures[most],
            "highest_users": grid.users[most],
        },
        cells=_cells(grid, row, figures, measured),
    )


def _no_plateau(grid: Grid, metric: str, row: int, known: Mapping[int, float]) -> Finding:
    context = grid.contexts[row]
    last = sorted(known)[-_SHOWN:]
    levels = ", ".join(f"{known[column]:.4g} at {counted(grid.users[column], 'users')}" for column in last)
    told = f"{metric} was {levels}" if known else f"no {metric} was measured there"
    most = max(known, key=lambda column: known[column], default=None)
    return Finding(
        name="no_plateau",
        text=f"At a context of {counted(context, 'tokens')} no plateau was seen, so no knee is named: {told}. "
        "More users show one, if there is one.",
        numbers={
            "context_tokens": context,
            "highest": None if most is None else known[most],
            "highest_users": None if most is None else grid.users[most],
        },
        cells=[grid.wanted((row, column)).id for column in sorted(known)],
    )


def _cells(grid: Grid, row: int, figures: Mapping[int, float], measured: Mapping[Place, float]) -> list[str]:
    return [grid.wanted((row, column)).id for column in sorted(figures) if (row, column) in measured]
