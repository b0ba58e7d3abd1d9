"""Fault 4: a cell that was measured while the server still worked off the one before.

    closed loop: rate(n) <= n x rate(1), so rate(u) >= u / n x rate(n) for every n > u at the same context
    prompts:     rate(context) does not rise with the context, users being the same

A cell that stands at less than half of either bound, right after one with at least eight times its users, shows the
queue of that one. Needs rates by users, in the order in which they were measured; where the order is not known, three
such cells.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from bezel.bench.audit.faults import DRAIN, Finding
from bezel.bench.audit.grids import series
from bezel.bench.audit.table import REQUESTS
from bezel.bench.audit.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bezel.bench.audit.figure import Figure
    from bezel.bench.audit.table import Row, Source, Table

_FACTOR = 2.0
_HEAVIER = 8
_CELLS = 3
_SOUND = 0.9  # success of a cell that promises anything


def find(table: Table) -> Iterator[Finding]:
    """The cells of each file that are too slow for what the others show."""
    for source in table.sources:
        slow = [found for rows in series(source.rows) if len(rows) > 2 for found in _slow(rows)]
        before = {row.order: previous for previous, row in zip(source.rows, source.rows[1:], strict=False)}
        after = [one for one in slow if _heavier(before.get(one[0].order), one[0])]
        if after:
            yield _finding(source, after, before)
        elif len(slow) >= _CELLS:
            yield _finding(source, slow, {})


def _slow(rows: Sequence[tuple[Row, Figure]]) -> Iterator[tuple[Row, Figure, float, str]]:
    """Cells below half of what others promise, with the promise and where it comes from."""
    if rows[0][0].system.cache_study:
        return
    by_context: dict[int | None, list[tuple[int, float, str]]] = {}
    by_users: dict[int | None, list[tuple[int, float, str]]] = {}
    for row, rate in rows:
        sound = row.good and not (row.success and row.success.value < _SOUND)
        users, context, low = row.users or 1, row.context or 0, rate.low if sound else 0.0
        by_context.setdefault(row.context, []).append((users, low / users, f"{rate.value:g} / {users} x "))
        by_users.setdefault(row.users, []).append((context, low, f"{rate.value:g} at {context} tokens"))
    of_loads = {context: _best_above(told) for context, told in by_context.items()}
    of_lengths = {users: _best_above(told) for users, told in by_users.items()}
    for row, rate in rows:
        if not row.good or row.users is None:
            continue
        share, said = of_loads[row.context][row.users]
        most, why = share * row.users, f"{said}{row.users}"
        longer, at = of_lengths[row.users][row.context or 0]
        if longer > most:
            most, why = longer, at
        if rate.high * _FACTOR < most:
            yield row, rate, most, why


def _best_above(told: list[tuple[int, float, str]]) -> dict[int, tuple[float, str]]:
    """For each number the largest figure, with its text, among those of larger numbers."""
    best: dict[int, tuple[float, str]] = {}
    most: tuple[float, str] = (0.0, "")
    for number, group in itertools.groupby(sorted(told, reverse=True), key=lambda one: one[0]):
        best[number] = most
        most = max([most, *((value, text) for _, value, text in group)])
    return best


def _heavier(before: Row | None, row: Row) -> bool:
    return bool(before and before.users and row.users and before.users >= _HEAVIER * row.users)


def _finding(source: Source, slow: Sequence[tuple[Row, Figure, float, str]], previous: Mapping[int, Row]) -> Finding:
    row, rate, promised, why = max(slow, key=lambda one: one[2] / max(one[1].high, 1e-9))
    before = previous.get(row.order)
    took = f" ({row.users / rate.high:.0f} s a request or more)" if row.users and row.figure(REQUESTS) else ""
    follows = f" right after a cell of {before.users} users" if before else " (the order of the cells is not told)"
    return Finding(
        DRAIN,
        "contradiction",
        (source.item,),
        f"{row.cell}: {rate.value:g}{took}, where {why} promises at least {promised:.2g}; {count(len(slow), 'cell')} "
        f"at less than half of what the neighbours promise{follows}: the server still worked off what that had left",
        "wait until the server has no request running or waiting before each cell, and measure these again",
        tuple(one[0].cell for one in slow),
    )
