"""Knees of a sweep: for each context the fewest users with which a server gives nearly all that it can. Pure.

A knee requires an observed plateau behind it: cells that agree, and none far above them. While throughput still rises,
or a single low cell is all that ends the rise, the server's maximum is unknown, and so is the knee.

Only measured cells show it: an inferred plateau is no basis for a load to run at.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

from bezel_base.text.counting import format_count
from bezel_bench.result.document import Finding
from bezel_bench.sweep.grid import Grid, Place

SHARE = 0.9
CELLS = 3  # from the knee on: the rise of fewer may have been ended by one stalled cell
TIMES = 2  # times the users of the knee: the least extent of a plateau
AGREEING = ((3, 0.2), (2, 0.1))  # so many cells agree where they differ by less than this in ln; two are closer
FAR = 1.3  # times the plateau: a cell above shows that the server can do more
GROWTH = 0.2  # the most growth in ln per ln(users) over a plateau: 15 % for twice the users
NEAR = 0.8  # of the plateau: with noise such a cell may be the knee
RISE = 1.15  # less than this is no rise beyond noise
RISES = "it still rises at the most users"
SPARSE = 0.6  # of the numbers of users up to the most: a context between that was measured less has no plateau to see
_SHOWN = 4
_LEFT_OUT = 1  # numbers of users below a knee: with more of them unmeasured it is not known to one step


@dataclass(frozen=True)
class Verdict:
    """The knee of one context.

    Attributes:
        index: The index of its cell; None where none is named.
        why: Why none is named; "" otherwise.
    """

    index: int | None
    why: str = ""


def knee(users: Sequence[float], values: Sequence[float]) -> Verdict:
    """Return the first cell that reaches nine tenths of the plateau.

    The plateau is the median of the highest cells that agree. One stalled cell in ten neither makes a knee nor hides
    one; two in a row hide it, as it may lie at either.

    Args:
        users: Rising.
        values: Throughput of each, above 0; at least one.
    """
    verdict = Verdict(None)
    for least, tolerance in AGREEING:
        agreeing = _highest_that_agree(values, least, tolerance)
        verdict = _judge(users, values, agreeing) if agreeing else Verdict(None, verdict.why)
        if verdict.index is not None:
            return verdict
    rises = values[-1] >= SHARE * max(values)
    return Verdict(None, verdict.why or (RISES if rises else "the highest differ too much"))


def _highest_that_agree(values: Sequence[float], least: int, tolerance: float) -> list[int]:
    """Return the cells about the highest one that has enough others near it; none where no cell has."""
    factor = exp(tolerance)
    for high in sorted(values, reverse=True):
        near = [at for at, value in enumerate(values) if high / factor <= value <= high * factor]
        if len(near) >= least:
            return near
    return []


def _judge(users: Sequence[float], values: Sequence[float], agreeing: Sequence[int]) -> Verdict:
    plateau = median(values[at] for at in agreeing)
    if max(values) > FAR * plateau:
        return Verdict(None, f"one reaches {max(values) / plateau:.1f} x what the others agree on")
    first = next(at for at, value in enumerate(values) if value >= SHARE * plateau)
    last = max(agreeing)
    if len(values) - first < CELLS or users[-1] < TIMES * users[first]:
        return Verdict(None, "too few users were measured beyond those that reach the highest")
    if last > first and log(values[last] / values[first]) > GROWTH * log(users[last] / users[first]):
        return Verdict(None, RISES)
    if doubt := _doubt(users, values, plateau, first):
        return Verdict(None, f"{doubt} just below {format_count(users[first], 'users')}")
    return Verdict(first)


def _doubt(users: Sequence[float], values: Sequence[float], plateau: float, first: int) -> str:
    """Return why the knee may lie two cells or more below the first that reaches the plateau; "" where it does not."""
    if first >= 2 and values[first - 1] < values[first - 2] and values[first - 2] >= NEAR * plateau:
        return "one that nearly reaches the plateau is followed by a lower one,"
    earlier = values[: max(0, first - 2)]
    apart = bool(earlier) and users[first - 1] >= TIMES * users[first - 3]  # nearer ones need not rise
    if apart and max(values[first - 2 : first]) <= RISE * max(earlier):
        return "two in a row are no higher than with fewer users,"
    return ""


def knees(grid: Grid, metric: str, measured: Mapping[Place, float]) -> list[Finding]:
    """Return for each context with figures its knee, or a finding that none is named.

    Args:
        grid: The grid.
        metric: The metric of the values.
        measured: The measured values that count, by place.
    """
    findings = []
    for row in range(len(grid.contexts)):
        if values := {column: value for (at, column), value in sorted(measured.items()) if at == row}:
            columns = list(values)
            verdict = knee([grid.users[column] for column in columns], list(values.values()))
            if verdict.index and columns[verdict.index] - columns[verdict.index - 1] > 1 + _LEFT_OUT:
                users = format_count(grid.users[columns[verdict.index]], "users")
                verdict = Verdict(None, f"too few numbers of users below {users} were measured")
            findings.append(
                _sparse(grid, row, values)
                if verdict.index is None and len(columns) < SPARSE * (columns[-1] + 1)
                else _no_plateau(grid, metric, row, values, verdict.why)
                if verdict.index is None
                else _knee(grid, metric, row, values, columns[verdict.index])
            )
    return findings


def _knee(grid: Grid, metric: str, row: int, figures: Mapping[int, float], column: int) -> Finding:
    context, users, value = grid.contexts[row], grid.users[column], figures[column]
    highest = max(figures, key=lambda column: figures[column])
    return Finding(
        name="knee",
        text=f"At a context of {format_count(context, 'tokens')} {format_count(users, 'users')} "
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


def _sparse(grid: Grid, row: int, values: Mapping[int, float]) -> Finding:
    context = grid.contexts[row]
    numbers = f"{len(values)} of {max(values) + 1} numbers of users up to {grid.users[max(values)]}"
    return Finding(
        name="no_plateau",
        text=f"At a context of {format_count(context, 'tokens')} no knee is named: only {numbers} were measured.",
        numbers={"context_tokens": context},
        cells=[grid.request((row, column)).id for column in sorted(values)],
    )


def _no_plateau(grid: Grid, metric: str, row: int, values: Mapping[int, float], why: str) -> Finding:
    context = grid.contexts[row]
    last = sorted(values)[-_SHOWN:]
    levels = ", ".join(f"{values[column]:.4g} at {format_count(grid.users[column], 'users')}" for column in last)
    highest = max(values, key=lambda column: values[column])
    return Finding(
        name="no_plateau",
        text=f"At a context of {format_count(context, 'tokens')} no plateau was seen, so no knee is named: "
        f"{metric} was {levels}; {why}.",
        numbers={"context_tokens": context, "highest": values[highest], "highest_users": grid.users[highest]},
        cells=[grid.request((row, column)).id for column in sorted(values)],
    )
