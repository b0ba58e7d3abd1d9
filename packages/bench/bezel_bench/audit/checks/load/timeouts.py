"""Check for finding 5: a success rate that measures only how long the client waited.

    success = timeout x requests/s / users

With one request a user, a server that completes X requests per second has completed T x X when the client gives up
after T seconds; the rest counts as failed. Detected where one T explains cells that differ in load and rate, or where T
is stated. Needs the success rate, the rate and the users; where more requests than users were sent the formula does not
apply.
"""

from collections.abc import Iterator, Sequence

from bezel_bench.audit.findings import TIMEOUTS, AuditFinding, Rule
from bezel_bench.audit.table import REQUESTS, AuditTable, ResultSource, Row

# A success above the first does not come from a timeout, and one below the second (3 %) is inconclusive.
_MOST, _LEAST = 0.985, 0.03
# The load takes a little longer than its timeout: requests are sent and cancelled.
_WITHIN = 0.08
_CELLS = 4
_ROUND = (30, 60, 120, 300, 600)  # seconds; the usual settings
_VARIES = 1.25
_TRIED = 100
_RULE = Rule(
    TIMEOUTS, "send a load that the service can take, or let requests finish; the rate is a figure, the success is not"
)


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield findings for rows with a stated timeout, and for files whose failures one timeout explains."""
    for item, row in table.statements():
        if row.timeout and (finding := _explain_success(item, row)):
            yield finding
    for claim in table.claims:
        if not claim.row.timeout and (finding := _explain_success(claim.item, claim.row)):
            yield finding
    for source in table.sources:
        rows = [row for row in source.rows if _fits(row) and not row.timeout]
        if finding := _conclude_timeout(source, rows):
            yield finding


def _fits(row: Row) -> bool:
    share, rate = row.success, row.figure(REQUESTS)
    alone = row.requests is None or row.users is None or row.requests <= row.users
    return bool(share and rate and rate.value and row.users and row.good and alone and _LEAST <= share.value <= _MOST)


def _seconds(row: Row) -> tuple[float, float]:
    """Return the range of the timeout that would explain a row."""
    share, rate, users = row.success, row.figures[REQUESTS], row.users
    if share is None or users is None:
        raise ValueError("the row has no success rate or no users")
    return share.low * users / rate.high, share.high * users / max(rate.low, 1e-9)


def _explain_success(item: str, row: Row) -> AuditFinding | None:
    """Report a success that the stated timeout explains, or, where none is stated, a round one."""
    if not _fits(row) or row.success is None:
        return None
    low, high = _seconds(row)
    timeouts, over = ((row.timeout,), 2) if row.timeout else (_ROUND, 1)
    fitting = (each for each in timeouts if low <= each * (1 + over * _WITHIN) and high >= each * (1 - _WITHIN / 2))
    seconds = next(fitting, None)
    if seconds is None:
        return None
    text = (
        f"{seconds:g} s x {row.figures[REQUESTS].value:g} requests/s / {row.users} users = "
        f"{seconds * row.figures[REQUESTS].value / (row.users or 1):.2f}; reported as a success of "
        f"{row.success.value:.2f}" + ("" if row.timeout else f": what a timeout of {seconds:g} s would leave")
    )
    return _RULE.finding("contradiction" if row.timeout else "suspect", item, text, [row])


def _conclude_timeout(source: ResultSource, rows: Sequence[Row]) -> AuditFinding | None:
    """Report the timeout that explains most failing cells, if they differ enough to be evidence."""
    spans = [(row, *_seconds(row)) for row in rows]
    best: list[Row] = []
    seconds = 0.0
    for _, lower, upper in spans[:: max(1, len(spans) // _TRIED)]:
        middle = (lower + upper) / 2
        near = [
            row
            for row, low, high in spans
            if low <= middle * (1 + _WITHIN) and high >= middle * (1 - _WITHIN) and high <= low * (1 + 4 * _WITHIN)
        ]
        if len(near) > len(best):
            best, seconds = near, middle
    shares = [row.success.value for row in best if row.success]
    if len(best) < max(_CELLS, len(rows) / 3) or max(shares) < _VARIES * min(shares):
        return None
    first = best[0]
    rate, share = first.figures[REQUESTS].value, first.success.value if first.success else 0.0
    text = (
        f"one timeout of about {seconds:.0f} s explains the success of {len(best)} of {len(rows)} failing cells, e.g. "
        f"{first.cell}: {seconds:.0f} s x {rate:g} requests/s / {first.users} = "
        f"{min(1.0, seconds * rate / (first.users or 1)):.2f}, reported {share:.2f}"
    )
    return _RULE.finding("contradiction", source.item, text, best)
