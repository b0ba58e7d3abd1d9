"""Check for finding 4: a cell measured while the server still worked on the requests of the cell before.

    left over:  lost share x users / rate before = seconds of work that the cell before left behind
    too long:   users / rate - users / promised rate = seconds that a cell took longer than it had to
    promised:   closed loop: rate(u) >= u / n x rate(n) for every n > u at the same context, and in requests per second
                no less than at a longer context

A cell below half of the promised rate is reported where the work left over explains its excess time. A compilation in
the first request, a cold cache or a slow start are as slow, but their seconds are not those of the cell before: where
most cells after such a loss are not late by it, or as many are slow without one, nothing is reported. Needs rates by
users in the order of measuring, of requests or of tokens that can be converted into requests, and success rates.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bezel_bench.audit.findings import DRAIN, AuditFinding, Rule
from bezel_bench.audit.grids import ResponseRate, response_rate, series, success_share
from bezel_bench.audit.table import AuditTable, ResultSource, Row
from bezel_bench.audit.words import count

_RULE = Rule(DRAIN, "wait until the server has no request running or waiting before each cell, and measure these again")
_FACTOR = 2.0
_LOST = 0.03  # of the requests: fewer are errors, not an overload
# Bounds on the excess, as a share of the backlog in seconds: cancelled requests may be dropped, and speed may change.
_LEAST, _MOST = 0.5, 1.5
_SOUND = 0.9  # least success of a cell from which rates are promised


@dataclass(frozen=True, slots=True)
class _Left:
    """Seconds of work that a cell left behind, as a range, with their arithmetic."""

    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True)
class _Slow:
    """A cell below half of the rate that others promise, with its excess time as a range of seconds."""

    row: Row
    low: float
    high: float
    text: str

    def is_explained_by(self, left: _Left) -> bool:
        """Whether the work left by the cell before explains the excess time."""
        return self.low <= _MOST * left.high and self.high >= _LEAST * left.low

    def off(self, left: _Left) -> float:
        """Return how far apart the two are, as a factor's logarithm; values that are only bounded come last."""
        return abs(math.log((self.low + self.high) / (left.low + left.high)))


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield the cells of each file that are late by the work that the cell before them left."""
    for source in table.sources:
        speeds = [
            speed for rows in series(source.rows) if len(rows) > 2 for row in rows if (speed := response_rate(*row))
        ]
        if finding := _late(source, speeds):
            yield finding


def _late(source: ResultSource, speeds: Sequence[ResponseRate]) -> AuditFinding | None:
    by_row = {speed.row.order: speed for speed in speeds}
    promised = _promises(speeds)
    left = {
        row.order: work
        for before, row in zip(source.rows, source.rows[1:], strict=False)
        if before.order in by_row
        and row.order in by_row
        and (work := _work_left(by_row[before.order], by_row[row.order]))
    }
    slow = [slow_cell for speed in speeds if (slow_cell := _slow(speed, *promised[speed.row.order]))]
    late = [
        cell_speed
        for cell_speed in slow
        if cell_speed.row.order in left and cell_speed.is_explained_by(left[cell_speed.row.order])
    ]
    would = [order for order, work in left.items() if _shows(by_row[order], promised[order][0], work)]
    if not late or 2 * len(late) <= len(would) or _slow_anyhow(late, slow, speeds, left):
        return None
    worst = min(late, key=lambda cell_speed: cell_speed.off(left[cell_speed.row.order]))
    text = (
        f"{worst.text}; {left[worst.row.order].text}: {count(len(late), 'cell')} of {len(would)} right after a cell "
        "that lost requests took longer by what that had left"
    )
    return _RULE.finding("contradiction", source.item, text, (slow.row for slow in late))


def _work_left(before: ResponseRate, after: ResponseRate) -> _Left | None:
    """Return the work that the cell before left; None where it lost nothing, or its rate is in another unit."""
    row, rate, success = before.row, before.rate, success_share(before.row)
    if success is None or row.users is None or rate.low <= 0 or before.unit != after.unit:
        return None
    lost, half = 1 - success.value, success.half
    if lost < _LOST:
        return None
    return _Left(
        max(0.0, lost - half) * row.users / rate.high,
        (lost + half) * row.users / rate.low,
        f"the cell before ({row.cell}) had left {lost:.0%} x {row.users} users / {before.printed} = "
        f"{lost * row.users / rate.value:.3g} {before.unit}",
    )


def _slow_anyhow(
    late: Sequence[_Slow], slow: Sequence[_Slow], speeds: Sequence[ResponseRate], left: Mapping[int, _Left]
) -> bool:
    """Whether cells are slow without work left: most with as many users as the late ones, or more than are late."""
    users = {cell_speed.row.users for cell_speed in late}
    alike = [speed.row.order for speed in speeds if speed.row.users in users and speed.row.order not in left]
    anyhow = {cell_speed.row.order for cell_speed in slow if cell_speed.row.order not in left}
    return len(anyhow) >= len(late) or (bool(alike) and 2 * len(anyhow & set(alike)) >= len(alike))


def _promises(speeds: Sequence[ResponseRate]) -> dict[int, tuple[float, str]]:
    """Return for each cell the largest rate that the others promise, and its origin."""
    by_context: dict[object, list[tuple[int, float, str]]] = {}
    by_users: dict[object, list[tuple[int, float, str]]] = {}
    for speed in speeds:
        row = speed.row
        success = success_share(row)
        sound = row.good and not (success and success.value < _SOUND) and not row.system.cache_study
        users, low = row.users or 1, speed.rate.low if sound else 0.0
        kind = row.system, row.output_tokens, speed.unit
        by_context.setdefault((row.context, kind), []).append((users, low / users, f"{speed.printed} / {users} x "))
        by_users.setdefault((users, kind), []).append(
            (row.context or 0, low, f"{speed.printed} at {row.context} tokens")
        )
    of_loads = {key: _best_above(rates) for key, rates in by_context.items()}
    of_lengths = {key: _best_above(rates) for key, rates in by_users.items()}
    promises: dict[int, tuple[float, str]] = {}
    for speed in speeds:
        row = speed.row
        users, kind = row.users or 1, (row.system, row.output_tokens, speed.unit)
        share, origin = of_loads[row.context, kind][users]
        longer = of_lengths[users, kind][row.context or 0]
        promises[row.order] = max((share * users, f"{origin}{users}"), longer)
    return promises


def _best_above(rates: list[tuple[int, float, str]]) -> dict[int, tuple[float, str]]:
    """Return for each number the largest figure, with its text, among those of larger numbers."""
    best: dict[int, tuple[float, str]] = {}
    best_rate: tuple[float, str] = (0.0, "")
    for number, group in itertools.groupby(sorted(rates, reverse=True), key=lambda rate: rate[0]):
        best[number] = best_rate
        best_rate = max([best_rate, *((value, text) for _, value, text in group)])
    return best


def _requests(row: Row) -> int:
    """Return the requests of a cell: one a user, where not stated."""
    return row.completed or row.requests or row.users or 1


def _slow(speed: ResponseRate, most: float, why: str) -> _Slow | None:
    row, rate = speed.row, speed.rate
    if not row.good or row.system.cache_study or rate.high * _FACTOR >= most:
        return None
    sent = _requests(row)
    fewest, longest = sent / rate.high - sent / most, sent / rate.low - sent / most if rate.low else math.inf
    exact = rate.low > 0
    took = f"{sent} / {speed.printed} - {sent} / {most:.3g} = {sent / rate.value - sent / most:.3g}" if exact else ""
    text = took or f"at least {sent} / {rate.high:.3g} - {sent} / {most:.3g} = {fewest:.3g}"
    return _Slow(
        row,
        fewest,
        longest,
        f"{row.cell}: {speed.printed}, where {why} promises {most:.3g}: {text} {speed.unit} too long",
    )


def _shows(speed: ResponseRate, most: float, left: _Left) -> bool:
    """Whether the work left over is so much that the cell after it must be slow."""
    return bool(speed.row.good and most and _LEAST * left.low > (_FACTOR - 1) * _requests(speed.row) / most)
