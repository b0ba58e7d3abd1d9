"""Check for findings 7, 17 and 18 of a load at a rate: what was offered, sent and completed.

    completed/s > offered/s                                a contradiction: no more is answered than is asked
    completed/s < offered/s, allowing for the last ones    the rest waited: latencies grow with the length of the load
    sent/s / requested/s < 98 %                            the client did not send what was asked
    p99 of the wait before sending > 10 ms and 5 % of ttft tools that start their clock after it leave it out

The limits of the last two are those of the benchmark's own state client_limited. Needs an open loop's rate with the
completed rate, or the client's own rate and delay of sending.
"""

import math
from collections.abc import Iterator

from bezel_bench.audit.checks.figures.totals import tolerance
from bezel_bench.audit.findings import QUEUES, SENDING, TOTALS, AuditFinding, Open, Rule
from bezel_bench.audit.table import REQUESTS, AuditTable, Row, median_of

_SENT = 0.98
_COMPLETED = 0.90
_CHANCE = 4.0  # standard deviations of a Poisson number of requests
_DELAY, _SHARE_OF_TTFT = 0.010, 0.05
_OFFERED = Rule(TOTALS, "recompute the rates from the single requests; one of the two is of another load")
_SATURATED = Rule(
    QUEUES, "offer less than is completed, or report it as overloaded: its latencies have no steady value"
)
_SENDING = Rule(
    SENDING, "send from more processes, or report the rate that was sent and latencies from the planned instant"
)


def find(table: AuditTable) -> Iterator[AuditFinding | Open]:
    """Yield findings for loads at a rate, and what could not be judged of them."""
    yield from _OFFERED.findings("contradiction", table.statements(), _more_than_offered, where=True)
    yield from _SATURATED.findings("suspect", table.statements(), _less_than_offered, where=True)
    yield from _SENDING.findings("contradiction", table.statements(), _more_than_requested, where=True)
    yield from _SENDING.findings("suspect", table.statements(), _not_sent, where=True)
    for source in table.sources:
        at_rate = [row for row in source.rows if row.rate and not row.users]
        if at_rate and all(_longest(row) is None for row in at_rate):
            text = "offered/s = completed/s: it lacks the longest e2e, or its mean with its standard deviation"
            yield Open((QUEUES,), source.item, text)
        lacking = [row for row in at_rate if row.sent_rate is None and row.delay is None]
        if at_rate and len(lacking) == len(at_rate):
            text = "sent/s = requested/s: it states neither the rate of sending nor the wait before it"
            yield Open((SENDING,), source.item, text)


def _chance(row: Row) -> float | None:
    """Return the share by which a number of requests in random order may miss its mean; None for too few."""
    number = row.planned or row.requests or row.completed
    return _CHANCE / math.sqrt(number) if number else None


def _more_than_offered(row: Row) -> str | None:
    rate, completed, chance = row.rate, row.figure(REQUESTS), _chance(row)
    if not rate or not completed or row.users or chance is None or row.clock is None:
        return None
    if completed.low <= rate * (1 + chance + tolerance(row)):
        return None
    return f"{completed.value:,.4g} requests/s were completed of {rate:,.4g} requests/s offered"


def _less_than_offered(row: Row) -> str | None:
    rate, completed, chance = row.rate, row.figure(REQUESTS), _chance(row)
    number, last = row.planned or row.requests, _longest(row)
    if not rate or not completed or row.users or chance is None or not number or row.clock is None or last is None:
        return None
    fastest = number / (number / rate * (1 + chance) + last)
    share = (row.completed or number) / number
    if completed.high >= _COMPLETED * fastest * share:
        return None
    return (
        f"{completed.value:,.4g} of {rate:,.4g} requests/s offered were completed: the rest waited, and the latencies "
        "depend on how long that went on"
    )


def _longest(row: Row) -> float | None:
    """Return the longest e2e of a load: as stated, or the most that mean and standard deviation allow."""
    spread = row.spreads.get("e2e")
    if spread is None or spread.most is not None or spread.mean is None:
        return spread.most if spread else None
    number = row.completed
    if spread.deviation is None or not number:
        return None
    return spread.mean + spread.deviation * math.sqrt(number)


def _more_than_requested(row: Row) -> str | None:
    rate, sent, chance = row.rate, row.sent_rate, _chance(row)
    if not rate or not sent or not sent.value or chance is None or sent.low <= rate * (1 + chance + 0.02):
        return None
    return f"{sent.value:,.4g} requests/s were sent, but {rate:,.4g} requests/s were requested"


def _not_sent(row: Row) -> str | None:
    rate, sent, chance = row.rate, row.sent_rate, _chance(row)
    if rate and sent and sent.value and chance is not None and sent.high < rate * (_SENT - chance):
        return (
            f"{sent.value:,.4g} requests/s were sent of {rate:,.4g} requested, {sent.value / rate:.0%}: the figures "
            "are of the client's limit"
        )
    return _sending_delay(row)


def _sending_delay(row: Row) -> str | None:
    if row.delay is None or not row.rate:
        return None
    share = next((share for share in (0.99, 0.95, 0.9, 0.5) if share in row.delay.quantiles), None)
    delay = row.delay.quantiles[share] if share is not None else row.delay.mean
    first = row.figure(median_of("ttft")) or row.figure("ttft") or row.figure("e2e")
    if delay is None or delay <= _DELAY or not first or delay <= _SHARE_OF_TTFT * first.value:
        return None
    name = f"p{100 * share:g}" if share is not None else "mean"
    return (
        f"requests waited {delay * 1e3:,.4g} ms ({name}) in the client before they were sent, beside a ttft of "
        f"{first.value * 1e3:,.4g} ms, which does not count that"
    )
