"""Check for finding 10: speculation judged by responses on which it had no effect.

    the first token of a response comes from its prompt; drafts begin with the second
    drafts / generated tokens: below 5 % the rest was generated without drafts

Needs the method and the output length, or the server's counters of drafts. Where a table of requests per second does
not state the length, the memory bandwidth bounds it: requests/s x output tokens <= sequences x tokens a step x steps/s.
"""

import math
from collections.abc import Iterator

from bezel_bench.audit.findings import SPECULATION, AuditFinding, Rule
from bezel_bench.audit.limits import decode_roof
from bezel_bench.audit.table import REQUESTS, AuditTable, Claim, ResultSource, Row
from bezel_bench.audit.words import count

_SHORT = 16
"""Output tokens: below this drafts can change only a handful of steps."""
_BOUND = 64
"""Output tokens that a table must at least allow for, where it does not state them."""
_LOOSE = 0.25
"""Half of the interval by the acceptance, above which it is inconclusive; unless it is a percentage point."""
_POINT = 0.01
_SHARE = 0.05
_RULE = Rule(
    SPECULATION,
    "measure with responses of 128 tokens or more, with and without drafts, the same prompts, and give the acceptance",
)


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield findings for claims, rows with counters or lengths, and tables that bound the length."""
    for claim in table.claims:
        text = judge(claim.row) or _ttft_credit(claim)
        if text:
            yield _RULE.finding("contradiction", claim.item, text)
    for source in table.sources:
        yield from list(_RULE.findings("contradiction", source.statements(), judge)) or _short_responses(source)


def judge(row: Row) -> str | None:
    """Return why a row cannot judge drafts."""
    texts = []
    if row.system.drafting and row.output_tokens is not None and row.output_tokens < _SHORT:
        length = row.output_tokens
        texts.append(
            f"responses of {count(length, 'token')}: {count(max(0, length - 1), 'token')} after the first one, which "
            "comes from the prompt without any draft"
        )
    drafts, generated = row.drafts, row.generated_tokens
    if drafts is not None and generated and drafts < _SHARE * generated:
        prompt = f", beside {row.prompt_tokens:,} prompt tokens" if row.prompt_tokens else ""
        texts.append(f"{drafts} drafts for {generated:,} generated tokens{prompt}: {drafts / generated:.1%}")
    elif drafts is not None and (interval := _loose(row)):
        texts.append(f"{count(drafts, 'draft')} in all: {interval}")
    return "; ".join(texts) or None


def _loose(row: Row) -> str | None:
    """Return the acceptance with its 95 % interval (Wilson), where so few drafts fix it no better than to a quarter."""
    if not row.draft_tokens or row.accepted is None or row.accepted > row.draft_tokens:
        return None
    n, p, z = row.draft_tokens, row.accepted / row.draft_tokens, 1.96
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
    if high - low <= max(2 * _LOOSE * p, 2 * _POINT):
        return None
    return f"{row.accepted} of {n} draft tokens accepted = {p:.1%}, 95 % interval {low:.1%} to {high:.1%}"


def _ttft_credit(claim: Claim) -> str | None:
    """Return why a time to the first token cannot be credited to drafts."""
    if claim.metric != "ttft" or not claim.row.system.drafting:
        return None
    return (
        f"a ttft of {claim.value.value:g} {claim.unit} is credited to {claim.row.system.speculation}: the first token "
        "comes from the prompt, drafts begin with the second"
        if claim.value
        else "a ttft is credited to drafts, which begin with the second token"
    )


def _short_responses(source: ResultSource) -> Iterator[AuditFinding]:
    """Report a table of requests per second whose rates leave no room for long enough responses."""
    lower: tuple[float, Row, str] | None = None
    for row in source.rows:
        rate = row.figure(REQUESTS)
        if not (row.system.drafting and rate and rate.low and row.output_tokens is None and row.good):
            continue
        roof = decode_roof(row.system, rate.low, row.users, row.context)
        if roof and (lower is None or roof.peak / rate.low < lower[0]):
            lower = (roof.peak / rate.low, row, roof.supply)
    if lower is None or lower[0] >= _BOUND:
        return
    tokens, row, supply = lower
    reason = (
        f"the length of the responses is not stated, and {row.cell} leave room for {1 + tokens:.0f} tokens at most "
        f"({row.figures[REQUESTS].value:g} requests/s; {supply}): too few to judge drafts by"
    )
    yield _RULE.finding("suspect", source.item, reason, [row])
