"""Check for finding 8: fewer users than stated, because the client limited the requests under way.

    a stated cap < users; requests < users; the most requests under way at once < users
    Little: requests/s x mean e2e = requests under way; far below the users, the rest was waiting in the client

Needs the cap, single requests or their number, or a rate with a mean latency. A rate alone that stays the same with
more users can be a cap or a queue: that is reported as an open question.
"""

from collections.abc import Iterator, Sequence

from bezel_bench.audit.figure import StatedFigure
from bezel_bench.audit.findings import CAPS, QUEUES, AuditFinding, Open, Rule
from bezel_bench.audit.grids import series
from bezel_bench.audit.table import REQUESTS, AuditTable, Claim, ResultSource, Row
from bezel_bench.audit.words import count, group_by

_REACHED = 0.9  # of the users, where single requests are known
_MEAN = 0.6  # of the users on average: start and end of the load lower it
_ROUNDS = 4  # requests a user, from which on _MEAN holds
_BURST = 0.45  # with fewer or an unknown number: a burst of one request a user, served in turn, averages half of them
_FLAT = 0.15
_ANSWERED = 0.95  # of the requests: with fewer, the requests under way are another load
_RULE = Rule(
    CAPS,
    "raise the client's limit (pools of 100 and 128 are common), check it by the requests under way, measure again",
)


def find(table: AuditTable) -> Iterator[AuditFinding | Open]:
    """Yield findings for rows, claims with a cap, and the files of the machine that such a claim is about."""
    for claim in table.claims:
        if _below_users(claim.row):
            yield _cap_finding((claim.item,), [claim.row], claim.row.cap or 0, "")
        yield from _one_side(claim)
    for source in table.sources:
        if stated := [row for row in source.rows if _below_users(row)]:
            yield _cap_finding((source.item,), stated, stated[0].cap or 0, "")
            continue
        if missing := [(row, text) for row in source.rows if (text := _missing_users(row))]:
            more = f"; the same in {len(missing) - 1} more" if len(missing) > 1 else ""
            text = f"{missing[0][0].where}: {missing[0][1]}{more}"
            yield _RULE.finding("contradiction", source.item, text, (row for row, _ in missing))
            continue
        yield from _flat(source, table.claims)


def _below_users(row: Row) -> bool:
    return bool(row.cap and row.users and row.cap < row.users)


def _cap_finding(items: tuple[str, ...], rows: Sequence[Row], cap: int, origin: str) -> AuditFinding:
    worst = max(rows, key=lambda row: row.users or 0)
    text = (
        f"the client sends at most {cap} requests at once{origin}: {worst.users} users are {cap}, and "
        f"{(worst.users or 0) - cap} wait in the client"
    )
    return _RULE.finding("contradiction", items, text, rows)


def _one_side(claim: Claim) -> Iterator[AuditFinding]:
    caps = {row.cap for row in claim.sides}
    if len(caps) > 1:
        stated = " and ".join(f"{row.system.label}: {row.cap or 'none stated'}" for row in claim.sides)
        text = f"the client's cap on requests at once differs between the sides ({stated})"
        repair = "measure both sides with the same client and no cap"
        yield _RULE.finding("not comparable", claim.item, text, repair=repair)


def _missing_users(row: Row) -> str | None:
    """Return why there were fewer users than stated."""
    users = row.users
    if not users or users < 2 or row.rate is not None or not row.good:
        return None
    sent = row.planned or row.requests or row.completed
    if sent is not None and sent < users:
        return f"{sent} requests cannot keep {users} users busy"
    success = row.success.value if row.success else row.completed / sent if row.completed is not None and sent else 1.0
    if success < _ANSWERED:
        return None
    if row.peak_in_flight is not None:
        peak = row.peak_in_flight
        return f"at most {peak} requests were under way at once, of {users} users" if peak < _REACHED * users else None
    rate, e2e = row.figure(REQUESTS), row.figure("e2e")
    lower = (_MEAN if sent is not None and sent >= _ROUNDS * users else _BURST) * users
    if row.in_flight is not None and row.in_flight < lower:
        return f"{row.in_flight:.1f} requests were under way on average, of {users} users"
    if row.in_flight is None and rate and e2e and rate.high * e2e.high < lower:
        return (
            f"{rate.value:.4g} requests/s x {e2e.value:.4g} s = {rate.value * e2e.value:.1f} requests under way, of "
            f"{users} users"
        )
    return None


def _flat(source: ResultSource, claims: Sequence[Claim]) -> Iterator[AuditFinding | Open]:
    """Report cells above the load where the rate stops changing; a finding only where the machine's cap is known."""
    for cells in series(source.rows):
        contexts = group_by(cells, lambda cell: cell[0].context)
        flat = [span for group in contexts.values() if (span := _span(group))]
        if not flat:
            continue
        system = cells[0][0].system
        for claim in claims:
            cap, other = claim.row.cap, claim.row.system
            if cap and other.machine and other.machine == system.machine and other.shape in (None, system.shape):
                above = [row for span in flat for row, _ in span if row.users and row.users > cap]
                if above:
                    yield _cap_finding((source.item, claim.item), above, cap, f" (stated by {claim.item})")
                    return
        if system.capacity or cells[0][0].figure("e2e"):
            continue
        first, last = flat[0][0], flat[0][-1]
        context = f"{first[0].context} tokens; so in {count(len(flat), 'context')}"
        text = (
            f"from {first[0].users} to {last[0].users} users the rate stays at {first[1].value:g} to {last[1].value:g} "
            f"({context}): a full server, a queue before it, or a cap in the client. Mean latencies, or concurrency x "
            "instances, would show which"
        )
        yield Open((QUEUES, CAPS), source.item, text)


def _span(cells: Sequence[tuple[Row, StatedFigure]]) -> list[tuple[Row, StatedFigure]]:
    """Return the heaviest cells of one context over which the rate stays the same for four times the users."""
    mine = sorted((cell for cell in cells if cell[0].good), key=lambda cell: cell[0].users or 0)
    if not mine or (mine[-1][0].success and mine[-1][0].success.value < 0.98) or not mine[-1][1].value:
        return []
    level = mine[-1][1].value
    first = len(mine) - 1
    while first and abs(mine[first - 1][1].value / level - 1) <= _FLAT:
        first -= 1
    span = mine[first:]
    return span if len(span) > 2 and (span[-1][0].users or 0) >= _ROUNDS * (span[0][0].users or 1) else []
