"""Fault 16: cells that failed and were dropped, or stand there as if they were good.

    contexts x users - cells that are there = cells that were dropped
    "ok" with no answer, or with less than nine of ten

Needs a grid for the first, a state beside a success rate for the second, or the number of requests that were wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.bench.audit.faults import MISSING, Finding
from bezel.bench.audit.grids import main_rate
from bezel.bench.audit.words import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.bench.audit.faults import Severity
    from bezel.bench.audit.table import Row, Source, Table

_FULL = 0.5  # of contexts x users: below it nobody meant a full grid
_SIDES = 3
_GOOD = 0.9
_REST = 0.5
_REPAIR = "keep every cell that was wanted, with its state (failed, timeout, infeasible) and its reason"


def find(table: Table) -> Iterator[Finding]:
    """Holes, failures told as good, and requests that nobody accounts for."""
    for source in table.sources:
        if source.grid:
            yield from _holes(source)
        yield from _told_good(source)
        yield from _requests(source)


def _holes(source: Source) -> Iterator[Finding]:
    there = {(row.context, row.users) for row in source.rows} | source.absent
    contexts = sorted({context for context, _ in there if context is not None})
    users = sorted({user for _, user in there if user is not None})
    if len(contexts) < _SIDES or len(users) < _SIDES or len(there) < _FULL * len(contexts) * len(users):
        return
    wanted = {(context, user) for context in contexts for user in users}
    holes = sorted(wanted - there)
    if not holes:
        return
    named = tuple(f"{context} tokens, {user} users" for context, user in holes)
    yield Finding(
        MISSING,
        "suspect",
        (source.item,),
        f"{len(contexts)} contexts x {len(users)} loads = {len(wanted)} cells, {len(there)} are there: "
        f"{len(holes)} are missing without a word, {named[0]} first",
        _REPAIR,
        named,
    )


def _told_good(source: Source) -> Iterator[Finding]:
    stated = [row for row in source.rows if row.state is not None and row.good]
    none = [row for row in stated if row.success is not None and row.success.value == 0]
    empty = [row for row in stated if main_rate(row) is None]
    few = [row for row in stated if row.success is not None and 0 < row.success.value < _GOOD]
    told = [f"{count(len(none), 'cell')} {none[0].state!r} with a success of 0 ({none[0].cell})"] if none else []
    told += [f"{count(len(empty), 'cell')} {empty[0].state!r} without a figure ({empty[0].cell})"] if empty else []
    if few:
        worst = min(few, key=lambda row: row.success.value if row.success else 1.0)
        share = worst.success.value if worst.success else 0.0
        cells_ = f"{count(len(few), 'cell')} {worst.state!r}"
        told.append(f"{cells_} although requests failed ({worst.cell}: {1 - share:.0%} of them)")
    if told:
        cells = tuple(row.cell for row in (*none, *empty, *few))
        severity: Severity = "contradiction" if none or empty else "suspect"
        yield Finding(MISSING, severity, (source.item,), "; ".join(told), _REPAIR, cells)


def _requests(source: Source) -> Iterator[Finding]:
    """Requests that are neither answered nor failed, and runs of which hardly anything is left."""
    found = [(row, text) for row in source.rows if row.good and (text := _unaccounted(row))]
    if found:
        cells = tuple(row.cell for row, _ in found)
        text = f"{found[0][0].where}: {found[0][1]}"
        yield Finding(MISSING, "contradiction", (source.item,), text, _REPAIR, cells)


def _unaccounted(row: Row) -> str | None:
    wanted = row.wanted if row.wanted is not None else row.requests
    if not wanted or row.completed is None:
        return None
    ended = row.completed + (row.failed or 0)
    if ended < wanted and row.failed is not None:
        ended_how = f"{row.completed} succeeded and {row.failed} failed"
        return f"{wanted} requests were wanted, {ended_how}: {wanted - ended} are gone"
    if row.state is None and row.completed < _REST * wanted:
        return f"{row.completed} of {wanted} requests succeeded; the latencies and rates are of that rest"
    return None
