"""Check for finding 13: input and output tokens in one figure, or a rate of tokens without its direction.

    tokens/s = requests/s x context                 input tokens
    output tokens/s x seconds = input + output      both, labelled as output
    USD per million = USD/h / 3600 / tokens/s x 1e6 of whichever tokens were counted

An output token costs many times what an input token does. Needs the unit, or the totals.
"""

from collections.abc import Iterator

from bezel_bench.audit.findings import UNITS, AuditFinding, Open, Rule, Severity
from bezel_bench.audit.table import INPUT, OUTPUT, REQUESTS, TOKENS, TOTAL, AuditTable, Claim, ResultSource, Row
from bezel_bench.audit.units import rate_of

_WITHIN = 0.03
_RULE = Rule(UNITS, "give input and output tokens a second separately, and a price for each")


def find(table: AuditTable) -> Iterator[AuditFinding | Open]:
    """Yield findings for claims of rates and costs, for tables and for single runs."""
    for claim in table.claims:
        if text := _contradiction(claim, table.compared_with(claim)):
            severity: Severity = "not comparable" if " compared " in text else "suspect"
            yield _RULE.finding(severity, claim.item, text)
    for source in table.sources:
        yield from _table(source)


def _contradiction(claim: Claim, other: Claim | None) -> str | None:
    row, counts = claim.row, claim.counts
    texts = []
    cost = "cost" in claim.metric and "token" in claim.metric
    rate = next((figure for name in (TOTAL, INPUT, OUTPUT, TOKENS) if (figure := row.figure(name))), None)
    if rate and row.figure(TOTAL):
        texts.append(f"{rate.value:,.0f} tokens/s count input and output together")
    elif rate and row.figure(TOKENS):
        texts.append(f"{rate.value:,.0f} tokens/s do not state which tokens")
    if rate and (requests := row.figure(REQUESTS)) and row.context:
        prompts = requests.value * row.context
        if abs(prompts / rate.value - 1) <= _WITHIN:
            texts.append(f"{requests.value:g} requests/s x {row.context} = {prompts:,.0f}: input tokens")
    price = claim.fields.get("price_per_h")
    if cost and rate and isinstance(price, int | float) and claim.value:
        usd = price / 3600 / rate.value * 1e6
        texts.append(
            f"{price:g} USD/h / 3600 / {rate.value:,.0f} x 1e6 = {usd:.3f} USD per million {counts or 'such'} tokens"
        )
    if other and counts and other.counts and other.counts != counts:
        return "; ".join([*texts, f"{counts} tokens here are compared with {other.counts} tokens of {other.item}"])
    mixed = bool(rate and (row.figure(TOTAL) or row.figure(TOKENS)))
    unnamed = cost and counts and counts not in claim.metric
    return "; ".join(texts) if texts and (mixed or unnamed) else None


def _table(source: ResultSource) -> Iterator[AuditFinding | Open]:
    bare = [row for row in source.rows if row.figure(TOKENS)]
    whole = [row for row in source.rows if row.figure(TOTAL) and not row.figure(OUTPUT) and not row.figure(INPUT)]
    if bare:
        first = bare[0]
        text = f"{len(bare)} rates of tokens do not state which tokens ({first.cell}: {first.figures[TOKENS].value:g})"
        yield _RULE.finding("suspect", source.item, text, bare)
    elif whole:
        text = (
            f"{len(whole)} rates count input and output together ({whole[0].cell}: {whole[0].figures[TOTAL].value:g}), "
            "as stated; a rate or a price of output tokens does not follow from them"
        )
        yield Open((UNITS,), source.item, text)
    yield from _one_column(source)
    yield from _RULE.findings("contradiction", source.statements(), _both, where=True)


def _one_column(source: ResultSource) -> Iterator[AuditFinding]:
    """Report rates of several kinds in one column, unless each cell has each of them."""
    cells: dict[str, set[tuple[int | None, int | None]]] = {}
    for unit in source.units:
        if kind := rate_of(unit):
            cells[unit] = {(row.context, row.users) for row in source.rows if row.figure(kind)}
    kinds = {rate_of(unit) for unit in cells}
    if len(kinds) < 2:
        return
    if 2 * len(set.intersection(*cells.values())) >= len(set.union(*cells.values())):
        return
    counts = ", ".join(f"{len(places)} cells in {unit}" for unit, places in cells.items())
    text = f"one column holds {counts}: figures of different kinds side by side"
    yield _RULE.finding("suspect", source.item, text, repair="give one column for each unit, every cell in each")


def _both(row: Row) -> str | None:
    """Return why a rate of output (or input) tokens also counts the other direction."""
    prompt, generated, seconds = row.prompt_tokens, row.generated_tokens, row.seconds
    requests, output = row.figure(REQUESTS), row.figure(OUTPUT)
    if output is None:
        return None
    if prompt and generated and seconds:
        both = (prompt + generated) / seconds
        if generated < 0.8 * (prompt + generated) and abs(output.value / both - 1) <= _WITHIN:
            return (
                f"{output.value:,.0f} output tokens/s x {seconds:.4g} s = {output.value * seconds:,.0f}, but "
                f"{generated:,} were generated; with {prompt:,} of the prompts they are {prompt + generated:,}"
            )
    elif requests and requests.value and row.context and row.output_tokens:
        both = requests.value * (row.context + row.output_tokens)
        within = _WITHIN + requests.half / requests.value
        if within > 2 * _WITHIN:
            return None  # printed too coarsely to tell
        if row.context > 0.25 * row.output_tokens and abs(output.value / both - 1) <= within:
            return (
                f"{output.value:,.0f} output tokens/s = {requests.value:g} requests/s x ({row.context} + "
                f"{row.output_tokens}): the prompts are counted too"
            )
    return None
