"""Check for finding 11: latencies that do not add up, most often a sum reported as a mean.

    ttft + (output tokens - 1) x tpot = e2e     a gap as long as the whole span is a sum; one far too short is of other
                                                requests, or of chunks that arrived together
    requests/s x mean e2e <= users              a closed loop (Little); a mean e2e above it is a sum
    ttft, itl, tpot <= e2e; itl, tpot <= e2e - ttft

Coarse limits for figures of any origin; where a source states spreads, the relations of gaps.py are far closer. A gap
between chunks (itl) covers every token of its chunk, and chunks merge on a busy server, so that no number of tokens
refutes it: it is suspect only where one gap is as long as all. Needs two or three of the figures of one row, means or
medians; the output tokens, where not stated, follow from two rates.
"""

from collections.abc import Iterator

from bezel_bench.audit.checks.figures import gaps
from bezel_bench.audit.checks.relation import open_questions
from bezel_bench.audit.figure import StatedFigure
from bezel_bench.audit.findings import SUMS, AuditFinding, Open, Rule
from bezel_bench.audit.table import OUTPUT, REQUESTS, AuditTable, ResultSource, Row, median_of

_LEAST_TOKENS = 4
_ABOVE = 1.8  # times what the other figures allow; means of ratios and unequal lengths explain less
_LITTLE = 1.35
_WHOLE_SPAN = 0.7  # of a response's time: one gap of that length leaves no room for another
_SHORT = 0.1  # share of e2e; a smaller gap in the sum is ignored
_ONE_GAP, _ROWS = 0.02, 3
_RULE = Rule(SUMS, "divide by the number of gaps (output tokens - 1), for each request, and give the mean of those")


def find(table: AuditTable) -> Iterator[AuditFinding | Open]:
    """Yield a finding for the first such row of each item."""
    findings = list(_RULE.findings("contradiction", table.statements(), judge))
    yield from findings
    accused = {item for finding in findings for item in finding.items}
    rest = ((item, row) for item, row in table.statements() if item not in accused)
    yield from _RULE.findings("suspect", rest, _one_chunk)
    for source in table.sources:
        if source.item not in accused:
            yield from _one_gap(source)
        yield from open_questions(SUMS, source, gaps.RELATIONS)


def judge(row: Row) -> str | None:
    """Return why latencies of a row do not fit each other."""
    coarse = _gaps(row) or _short(row) or _little(row) or _longer(row)
    return coarse or next((text for each in gaps.RELATIONS if each.holds_for(row) and (text := each.judge(row))), None)


def _tokens(row: Row) -> int | None:
    """Return the output tokens of a request, computed from two rates where they are not stated."""
    requests, output = row.figure(REQUESTS), row.figure(OUTPUT)
    if row.output_tokens is None and requests and output and requests.low and requests.high < 1.1 * requests.low:
        return round(output.value / requests.value)
    return row.output_tokens


def _gaps(row: Row) -> str | None:
    tokens = _tokens(row)
    if tokens is None or tokens < _LEAST_TOKENS:
        return None
    span, origin = _span(row)
    if span is None:
        return None
    gap = row.figure("tpot")
    if gap is None or gap.low * (tokens - 1) <= _ABOVE * span.high:
        return None
    product = gap.value * (tokens - 1)
    return f"tpot {_ms(gap.value)} x {tokens - 1} gaps = {product:.3g} s, but {_each(span, origin, tokens)}"


def _one_chunk(row: Row) -> str | None:
    """Return why a mean gap between chunks is as long as all gaps of a response."""
    tokens, gap = _tokens(row), row.figure("itl")
    span, origin = _span(row)
    if tokens is None or tokens < _LEAST_TOKENS or gap is None or span is None:
        return None
    if gap.low * (tokens - 1) <= _ABOVE * span.high or gap.value <= _WHOLE_SPAN * span.value:
        return None
    return f"itl {_ms(gap.value)} is as long as all {tokens - 1} gaps of a response: {_each(span, origin, tokens)}"


def _each(span: StatedFigure, origin: str, tokens: int) -> str:
    mean = _ms(span.value / (tokens - 1))
    return f"{origin} = {span.value:.3g} s; {span.value:.3g} s / {tokens - 1} = {mean}"


def _span(row: Row) -> tuple[StatedFigure | None, str]:
    """Return the time from first to last token, or its upper bound: the whole time, if need be by the rate."""
    ttft, e2e, rate = row.figure("ttft"), row.figure("e2e"), row.figure(REQUESTS)
    if ttft and e2e and e2e.high > ttft.low:
        difference = f"e2e - ttft = {e2e.value:.3g} - {ttft.value:.3g}"
        return StatedFigure(e2e.value - ttft.value, e2e.half + ttft.half), difference
    if e2e and not ttft:
        return e2e, "e2e, the whole of a request,"
    if rate and rate.low and row.users and row.rate is None:
        duration = StatedFigure(row.users / rate.value, row.users / rate.low - row.users / rate.value)
        return duration, f"users / requests/s = {row.users} / {rate.value:.3g}, the whole of a request,"
    return None, ""


def _short(row: Row) -> str | None:
    """Return why gaps are far too short for the time between the first and the last token."""
    tokens = _tokens(row)
    for name, prefix in ((str, ""), (median_of, "median ")):
        ttft, tpot, e2e = (row.figure(name(latency)) for latency in ("ttft", "tpot", "e2e"))
        if not (ttft and tpot and e2e and tokens and tokens >= _LEAST_TOKENS):
            continue
        total = ttft.value + (tokens - 1) * tpot.value
        span = e2e.low - ttft.high
        if tpot.high * (tokens - 1) * _ABOVE < span and e2e.value - total > _SHORT * e2e.value:
            return (
                f"{prefix}ttft {ttft.value:.3g} s + {tokens - 1} gaps x {prefix}tpot {_ms(tpot.value)} = {total:.3g} "
                f"s, but {prefix}e2e = {e2e.value:.3g} s: {e2e.value - total:.3g} s are unaccounted for"
            )
    return None


def _little(row: Row) -> str | None:
    rate, e2e = row.figure(REQUESTS), row.figure("e2e")
    if not (rate and e2e and row.users) or row.rate is not None:
        return None
    if rate.low * e2e.low <= (_LITTLE + (row.clock.crossing if row.clock else 0.0)) * row.users:
        return None
    return (
        f"{rate.value:.4g} requests/s x a mean e2e of {e2e.value:.4g} s = {rate.value * e2e.value:.0f} requests under "
        f"way, of {row.users} users: the mean is too large by {rate.value * e2e.value / row.users:.3g} times"
    )


def _longer(row: Row) -> str | None:
    ttft, e2e = row.figure("ttft"), row.figure("e2e")
    for name in ("ttft", "tpot", "itl"):
        part = row.figure(name)
        if e2e and part and part.low > 1.05 * e2e.high:
            return f"{name} {_ms(part.value)} is longer than the whole request, e2e {_ms(e2e.value)}"
        if name == "ttft" or not (ttft and e2e and part) or e2e.low <= ttft.high:
            continue
        if part.low > _ABOVE * (e2e.high - ttft.low):
            return (
                f"{name} {_ms(part.value)} is longer than all gaps together, e2e - ttft = {_ms(e2e.value)} - "
                f"{_ms(ttft.value)}"
            )
    return None


def _one_gap(source: ResultSource) -> Iterator[AuditFinding]:
    """Report a table without lengths in which the mean gap is the whole span, row by row."""
    like_it: list[tuple[Row, StatedFigure, StatedFigure, StatedFigure]] = []
    for row in source.rows:
        ttft, tpot, e2e = (row.figure(name) for name in ("ttft", "tpot", "e2e"))
        if row.good and ttft and tpot and e2e and _tokens(row) is None and tpot.value:
            if abs(tpot.value - (e2e.value - ttft.value)) > _ONE_GAP * tpot.value + tpot.half + e2e.half + ttft.half:
                return
            like_it.append((row, ttft, tpot, e2e))
    if len(like_it) < _ROWS:
        return
    row, ttft, tpot, e2e = max(like_it, key=lambda row: row[2].value)
    text = (
        f"{row.cell}: tpot {_ms(tpot.value)} = e2e - ttft = {_ms(e2e.value)} - {_ms(ttft.value)}, and so in all "
        f"{len(like_it)} rows: one gap is as long as all, which is so only in responses of 2 tokens"
    )
    yield _RULE.finding("suspect", source.item, text, (row for row, *_ in like_it))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms"
