"""Check for finding 3: a figure above what the hardware can do, so something else was counted than computed.

    computed tokens/s x 2 x active parameters > peak FLOP/s x chips x instances       impossible; above 60 %: suspect
    output tokens/s > steps/s x sequences x tokens a step, by the memory bandwidth    impossible
    1 / tpot > steps/s x tokens a step, of one sequence                               impossible

Cached prompt tokens are subtracted where they are stated. Needs machine and model, of the catalogue or described,
and a rate. One
prompt for all requests is a finding by itself, because the prefix cache serves it.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from bezel_bench.audit.findings import ROOFLINE, AuditFinding, Open, Rule, Severity
from bezel_bench.audit.limits import Roof, compute_roof, decode_roof, flops, token_roof
from bezel_bench.audit.machines import EXAMPLE
from bezel_bench.audit.models import EXAMPLE as MODEL_EXAMPLE
from bezel_bench.audit.table import (
    INPUT,
    OUTPUT,
    RATES,
    REQUESTS,
    TOKENS,
    TOTAL,
    AuditTable,
    Claim,
    ResultSource,
    Row,
    System,
    median_of,
)
from bezel_bench.audit.words import count, group_by

# No known server exceeds this share of the dense peak: kernels, scheduling and attention take the rest.
SUSPECT = 0.60
_RULE = Rule(
    ROOFLINE,
    "count computed prompt tokens (without cached ones), with another prompt for each request; check the label",
)
_HELD_BACK = (
    "take the times where the chunks arrive: responses that a proxy or the client holds back come in one piece, "
    "and their first token is as late as their last"
)
_CACHED = "send another prompt with each request, or report a study of the prefix cache with the cached tokens"
_SHARES = ("share of peak", "mfu", "flops utilization", "flops utilisation")
_FULL = 0.4  # of the context's best: cells at or above it are of a full server, whatever the noise
_SEVERAL = 3
_NAME, _SHOWN = 60, 3  # characters of a model's name, and claims, that are shown
_FORMS = {"machine": EXAMPLE, "model": MODEL_EXAMPLE}
_CERTAIN = 6.0  # above this even unstated drafts would not explain a rate of output tokens


def find(table: AuditTable) -> Iterator[AuditFinding | Open]:
    """Yield the worst row of each item with the number of rows like it."""
    above: dict[str, list[tuple[float, Row, str]]] = {}
    beside = {source.item: _shares(source) for source in table.sources}
    for item, row in table.statements():
        if row.good and (verdict := judge(row)):
            if verdict[0] <= 1 and _scatter(row.context, beside.get(item, {})):
                continue
            above.setdefault(item, []).append((verdict[0], row, verdict[1]))
    for item, rows in above.items():
        rows.sort(key=lambda judged: -judged[0])
        worst, row, text = rows[0]
        more = f"; {count(len(rows) - 1, 'more cell')} above {SUSPECT:.0%} of the peak" if len(rows) > 1 else ""
        same = "; one prompt for all requests: the prefix cache served it" if row.system.prompts == "identical" else ""
        severity: Severity = "impossible" if worst > 1 else "suspect"
        yield _RULE.finding(severity, item, f"{text}{same}{more}", (row for _, row, _ in rows))
    for claim in table.claims:
        yield from _share_of_peak(claim)
        if claim.item not in above:
            yield from _one_prompt(claim)
    yield from _token_times(table)
    for source in table.sources:
        yield from _open_questions(source)
        identical = [row for row in source.rows if _identical(row)]
        if identical and source.item not in above:
            yield _same_prompt(source.item, "", identical)


def _open_questions(source: ResultSource) -> Iterator[Open]:
    """Yield an open question for what no roof is known of: rows or claims without machine or model, by their model."""
    rows = [("", row) for row in source.rows] + [(claim.item, claim.row) for claim in source.claims]
    open_ = [(item, row.system) for item, row in rows if _has_rate(row) and _missing(row.system)]
    for (missing, model), alike in group_by(open_, lambda each: (_missing(each[1]), each[1].model_name)).items():
        unnamed = [name for name in missing if name != "model" or not model]
        reasons = [f"it names no {' and no '.join(unnamed)} of the catalogue"] if unnamed else []
        reasons += [f"its model {model[:_NAME]!r} is not in the catalogue"] if model and "model" in missing else []
        claims = [item for item, _ in alike if item]
        more = f" and {len(claims) - _SHOWN} more" if len(claims) > _SHOWN else ""
        whose = f"{', '.join(claims[:_SHOWN])}{more}: " if claims else ""
        options = " and ".join(f"--{name}" for name in missing)
        forms = " and ".join(f"a {name} outside of the catalogue as {_FORMS[name]!r}" for name in missing)
        text = f"{whose}{' and '.join(reasons)}: give {options} to have it judged ({forms})"
        yield Open((ROOFLINE,), source.item, f"not judged by the roofline: {text}")


def _missing(system: System) -> tuple[str, ...]:
    facts = {"machine": system.machine, "model": system.shape or system.stated_model}
    return tuple(name for name, value in facts.items() if value is None)


def _has_rate(row: Row) -> bool:
    return any(row.figure(name) for name in (*RATES, "tpot", median_of("tpot")))


def judge(row: Row) -> tuple[float, str] | None:
    """Return the share of the roof that a row needs, with the arithmetic, where it exceeds any known server."""
    readings = [roof for roof in (_compute(row), _decode(row)) if roof]
    if row.figure(TOKENS) and not row.figure(INPUT) and not row.figure(OUTPUT):
        return _judge_undirected(row)
    worst = max(readings, key=lambda roof: roof.share, default=None)
    return (worst.share, worst.text) if worst else None


def _shares(source: ResultSource) -> dict[int | None, list[float]]:
    """Return the shares of the peak of a grid's cells by context, the small ones included."""
    roofs = [(row, roof.share) for row in source.rows if source.grid and row.good and (roof := _prompt_roof(row))]
    return {
        context: [share for _, share in cells]
        for context, cells in group_by(roofs, lambda cell: cell[0].context).items()
    }


def _scatter(context: int | None, shares: Mapping[int | None, list[float]]) -> bool:
    """Whether the full cells of the context, or of all, stay on average below what any known server reaches.

    Noise lifts one of many, so the test uses their mean less twice its error.
    """
    alike = _full(shares.get(context, []))
    if len(alike) < _SEVERAL:
        alike = _full([share for group in shares.values() for share in group])
    if len(alike) < _SEVERAL:
        return False
    return statistics.fmean(alike) - 2 * statistics.stdev(alike) / math.sqrt(len(alike)) <= math.log(SUSPECT)


def _full(shares: Sequence[float]) -> list[float]:
    """Return the logarithms of the shares that a full server gives."""
    return [math.log(share) for share in shares if share > 0 and share >= _FULL * max(shares)]


def _compute(row: Row) -> Roof | None:
    """Return the compute roof of a row's computed prompt and output tokens, where they exceed any known server."""
    roof = _prompt_roof(row)
    return roof if roof and roof.share > SUSPECT else None


def _prompt_roof(row: Row) -> Roof | None:
    cached = row.cached_tokens / row.completed if row.cached_tokens is not None and row.completed else None
    requests, taken = row.figure(REQUESTS), row.figure(INPUT) or row.figure(TOTAL)
    if row.system.cache_study and cached is None and not row.figure(INPUT):
        return None
    if row.figure(INPUT) is None and requests and row.context is not None:
        computed = max(0.0, row.context - (cached or 0.0))
        rate = requests.low * (computed + (row.output_tokens or 0))
        kept = f" ({row.context} - {cached:.0f} cached)" if cached else f" {computed:.0f}"
        what = f"{requests.value:g} requests/s x{kept} prompt tokens = {requests.value * computed:,.0f} tokens/s"
    elif taken:
        rate, what = taken.low, f"{taken.value:,.0f} prompt tokens/s"
    else:
        return None
    return compute_roof(row.system, rate, what)


def _decode(row: Row) -> Roof | None:
    output, requests = row.figure(OUTPUT), row.figure(REQUESTS)
    if output is not None:
        rate = output.low
    elif requests is not None and row.output_tokens and row.output_tokens > 1:
        rate = requests.low * (row.output_tokens - 1)  # the prompt's step yields the first token
    else:
        return None
    roof = decode_roof(row.system, rate, row.users, row.context)
    peak = 1.0 if row.system.speculation is not None else _CERTAIN
    return roof if roof and roof.share > peak else None


def _token_times(table: AuditTable) -> Iterator[AuditFinding]:
    """Report mean and median times per token that are shorter than any step."""
    short: dict[str, list[tuple[float, Row, str]]] = {}
    for item, row in table.statements():
        for name, label in (("tpot", "tpot"), (median_of("tpot"), "the median tpot")):
            seconds = row.figure(name)
            if not (row.good and seconds and seconds.value):
                continue
            roof = token_roof(row.system, seconds, row.context)
            if roof.share > 1:
                short.setdefault(item, []).append((roof.share, row, f"{label}: {roof.text}"))
    for item, rows in short.items():
        _, row, text = max(rows, key=lambda judged: judged[0])
        cells = dict.fromkeys(row.cell for _, row, _ in rows)
        yield _RULE.finding("impossible", item, f"{row.where}: {text}", cells, _HELD_BACK)


def _judge_undirected(row: Row) -> tuple[float, str] | None:
    """Judge a rate of tokens of unstated direction: above the roof only if both readings are."""
    rate = row.figures[TOKENS]
    compute = compute_roof(row.system, rate.low, f"{rate.value:,.0f} tokens/s")
    decode = decode_roof(row.system, rate.low, row.users, row.context)
    if compute is None or compute.share <= SUSPECT:
        return None
    if decode is None:
        return compute.share, f"as prompt tokens: {compute.text}"
    text = f"as prompt tokens: {compute.text}; as output tokens: {decode.text}"
    return (min(compute.share, decode.share), text) if decode.share > 1 else None


def _share_of_peak(claim: Claim) -> Iterator[AuditFinding]:
    """Report a claim that itself states the share of the peak that was reached."""
    if claim.value is None or not any(word in claim.metric for word in _SHARES):
        return
    share = claim.value.value / 100 if claim.unit == "%" else claim.value.value
    if share <= SUSPECT:
        return
    machine = claim.row.system.machine
    peak = f" of {flops(machine.flops('bf16'))} ({machine.id})" if machine else ""
    text = (
        f"{share:.1%}{peak} are claimed; serving stays below {SUSPECT:.0%} of the dense peak, so cached tokens or "
        "another peak were counted"
    )
    yield _RULE.finding("impossible" if share > 1 else "suspect", claim.item, text)


def _one_prompt(claim: Claim) -> Iterator[AuditFinding]:
    for row in (claim.row, *claim.sides):
        if _identical(row):
            side = f"of {row.system.label} " if row is not claim.row else ""
            yield _same_prompt(claim.item, side, ())


def _identical(row: Row) -> bool:
    return row.system.prompts == "identical" and not row.system.cache_study


def _same_prompt(item: str, whose: str, rows: Sequence[Row]) -> AuditFinding:
    text = (
        f"the figure {whose}rests on one prompt for all requests: from the second one on the prefix cache serves it, "
        "and prompt tokens are counted that were not computed"
    )
    return _RULE.finding("suspect", item, text, rows, _CACHED)
