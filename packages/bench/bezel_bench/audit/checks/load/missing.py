"""Check for finding 16: failed cells that were dropped, or are listed as if they were good.

    contexts x users - cells that are there = cells that were dropped
    "ok", or no state, with no response; "ok" with less than nine of ten
    no state, with less than nine of ten where a heavier load lost nothing: no load explains it

Needs a grid for the first, a state beside a success rate for the second, or the intended number of requests.
"""

from collections.abc import Iterator, Mapping, Sequence

from bezel_bench.audit.findings import MISSING, AuditFinding, Rule, Severity
from bezel_bench.audit.grids import main_rate, success_share
from bezel_bench.audit.table import AuditTable, ResultSource, Row
from bezel_bench.audit.words import count, group_by

_FULL = 0.5  # of contexts x users: below it no full grid was intended
_SIDES = 3
_GOOD = 0.9
_WHOLE = 0.98
_TIMES = 10
_SLOWEST = 900.0  # seconds
_RULE = Rule(MISSING, "keep every planned cell, with its state (failed, timeout, infeasible) and its reason")


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield findings for holes, failures listed as good, and unaccounted requests."""
    for source in table.sources:
        if source.grid:
            yield from _holes(source)
        yield from _reported_good(source)
        yield from _RULE.findings("contradiction", source.statements(), _unaccounted_requests, where=True)


def _holes(source: ResultSource) -> Iterator[AuditFinding]:
    there = {(row.context, row.users) for row in source.rows} | source.absent
    contexts = sorted({context for context, _ in there if context is not None})
    users = sorted({user for _, user in there if user is not None})
    if len(contexts) < _SIDES or len(users) < _SIDES or len(there) < _FULL * len(contexts) * len(users):
        return
    planned = {(context, user) for context in contexts for user in users}
    holes = [f"{context} tokens, {user} users" for context, user in sorted(planned - there)]
    if holes:
        text = (
            f"{len(contexts)} contexts x {len(users)} loads = {len(planned)} cells, {len(there)} are listed: "
            f"{len(holes)} are missing without a reason, {holes[0]} first"
        )
        yield _RULE.finding("suspect", source.item, text, holes)


def _reported_good(source: ResultSource) -> Iterator[AuditFinding]:
    rows = [row for row in source.rows if row.good]
    none = [row for row in rows if _success(row) == 0 and (row.state is not None or main_rate(row))]
    empty = [row for row in rows if row.state is not None and main_rate(row) is None]
    whole = _heaviest_whole(rows)
    few = [row for row in rows if 0 < (_success(row) or 0) < _GOOD and (row.state is not None or _lone(row, whole))]
    alike = group_by(rows, lambda row: row.context)
    zero = [stalled for row in rows if (stalled := _between(row, alike[row.context]))]
    texts = [f"{count(len(none), 'cell')} {_state(none[0])} with a success of 0 ({none[0].cell})"] if none else []
    texts += [f"{count(len(empty), 'cell')} {_state(empty[0])} without a figure ({empty[0].cell})"] if empty else []
    if few:
        worst = min(few, key=lambda row: _success(row) or 0)
        cells = f"{count(len(few), 'cell')} {_state(worst)}"
        texts.append(f"{cells} although requests failed ({worst.cell}: {1 - (_success(worst) or 0):.0%} of them)")
    if zero:
        texts.append(f"{count(len(zero), 'cell')} {_state(zero[0][0])} without a response ({zero[0][1]})")
    if texts:
        severity: Severity = "contradiction" if none or empty else "suspect"
        accused = (*none, *empty, *few, *(row for row, _ in zero))
        yield _RULE.finding(severity, source.item, "; ".join(texts), accused)


def _state(row: Row) -> str:
    return repr(row.state) if row.state else "without a state"


def _success(row: Row) -> float | None:
    success = success_share(row)
    return success.value if success else None


def _heaviest_whole(rows: Sequence[Row]) -> dict[int | None, int]:
    """Return for each context the most users that lost nothing."""
    heaviest: dict[int | None, int] = {}
    for row in rows:
        if (_success(row) or 0) >= _WHOLE:
            heaviest[row.context] = max(heaviest.get(row.context, 0), row.users or 0)
    return heaviest


def _lone(row: Row, whole: Mapping[int | None, int]) -> bool:
    """Whether a heavier load of the same context lost nothing, so that the load does not explain this row's losses."""
    return whole.get(row.context, 0) > (row.users or 0)


def _between(row: Row, rows: Sequence[Row]) -> tuple[Row, str] | None:
    """Return a rate of zero, without a stated success, between a lighter and a heavier load of its context that worked.

    It was not merely slow: even its users' first requests would have taken longer than any start or compilation.
    """
    rate = main_rate(row)
    if rate is None or rate[1].value or _success(row) is not None or row.users is None:
        return None
    if row.users < _SLOWEST * rate[1].high:
        return None
    alike = [(one.users, figure) for one in rows if (figure := one.figure(rate[0]))]
    upper = _TIMES * rate[1].high
    lighter = [figure for users, figure in alike if users is not None and users < row.users and figure.low > upper]
    heavier = [figure for users, figure in alike if users is not None and users > row.users and figure.low > upper]
    if not lighter or not heavier:
        return None
    return row, f"{row.cell}: {rate[1].value:g} between {lighter[-1].value:g} of fewer and {heavier[0].value:g} of more"


def _unaccounted_requests(row: Row) -> str | None:
    """Return which requests neither succeeded nor failed, or that a run lost many of its requests."""
    planned = row.planned if row.planned is not None else row.requests
    if not planned or row.completed is None:
        return None
    ended = row.completed + (row.failed or 0)
    if ended < planned and row.failed is not None:
        outcome = f"{row.completed} succeeded and {row.failed} failed"
        return f"{planned} requests were planned, {outcome}: {planned - ended} are unaccounted for"
    if row.state is None and row.success is None and row.completed < _GOOD * planned:
        return f"{row.completed} of {planned} requests succeeded; latencies and rates cover only those"
    return None
