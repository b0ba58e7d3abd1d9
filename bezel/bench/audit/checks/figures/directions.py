"""Check for fault 13: input and output tokens in one figure, or a rate of tokens without its direction.

    tokens/s = requests/s x context                 input tokens
    output tokens/s x seconds = input + output      both, labelled as output
    USD per million = USD/h / 3600 / tokens/s x 1e6 of whichever tokens were counted

An output token costs many times what an input token does. Needs the unit, or the totals.
"""

from collections.abc import Iterator

from bezel.bench.audit.findings import UNITS, Finding, Open, Severity
from bezel.bench.audit.table import INPUT, OUTPUT, REQUESTS, TOKENS, TOTAL, Claim, ResultSource, Row, Table
from bezel.bench.audit.units import rate_of

_WITHIN = 0.03
_REPAIR = "give input and output tokens a second apart, and a price for each"


def find(table: Table) -> Iterator[Finding | Open]:
    """Yield findings for claims of rates and costs, for tables and for single runs."""
    claims = {claim.item: claim for claim in table.claims}
    for claim in table.claims:
        if text := _claimed(claim, claims.get(str(claim.said.get("compared_with")))):
            severity: Severity = "not comparable" if " compared " in text else "suspect"
            yield Finding(UNITS, severity, (claim.item,), text, _REPAIR)
    for source in table.sources:
        yield from _table(source)


def _claimed(claim: Claim, other: Claim | None) -> str | None:
    row, counts = claim.row, str(claim.said.get("throughput_counts") or claim.said.get("direction") or "")
    told = []
    cost = "cost" in claim.metric and "token" in claim.metric
    rate = next((found for name in (TOTAL, INPUT, OUTPUT, TOKENS) if (found := row.figure(name))), None)
    if rate and row.figure(TOTAL):
        told.append(f"{rate.value:,.0f} tokens/s count input and output together")
    elif rate and row.figure(TOKENS):
        told.append(f"{rate.value:,.0f} tokens/s do not say of which tokens")
    if rate and (requests := row.figure(REQUESTS)) and row.context:
        made = requests.value * row.context
        if abs(made / rate.value - 1) <= _WITHIN:
            told.append(f"{requests.value:g} requests/s x {row.context} = {made:,.0f}: input tokens")
    price, whole_cost = claim.said.get("price_per_h"), cost and claim.value
    if whole_cost and rate and isinstance(price, int | float) and claim.value:
        made = price / 3600 / rate.value * 1e6
        told.append(
            f"{price:g} USD/h / 3600 / {rate.value:,.0f} x 1e6 = {made:.3f} USD per million {counts or 'such'} tokens"
        )
    if other and counts:
        others = str(other.said.get("throughput_counts") or other.said.get("direction") or "")
        if others and others != counts:
            return "; ".join([*told, f"{counts} tokens here are compared with {others} tokens of {other.item}"])
    mixed = bool(rate and (row.figure(TOTAL) or row.figure(TOKENS)))
    unnamed = cost and counts and counts not in claim.metric
    return "; ".join(told) if told and (mixed or unnamed) else None


def _table(source: ResultSource) -> Iterator[Finding | Open]:
    bare = [row for row in source.rows if row.figure(TOKENS)]
    whole = [row for row in source.rows if row.figure(TOTAL) and not row.figure(OUTPUT) and not row.figure(INPUT)]
    if bare:
        first = bare[0]
        text = f"{len(bare)} rates of tokens do not say of which tokens ({first.cell}: {first.figures[TOKENS].value:g})"
        yield Finding(UNITS, "suspect", (source.item,), text, _REPAIR, tuple(row.cell for row in bare))
    elif whole:
        text = (
            f"{len(whole)} rates count input and output together ({whole[0].cell}: {whole[0].figures[TOTAL].value:g}), "
            "as they say; a rate or a price of output tokens does not follow from them"
        )
        yield Open((UNITS,), source.item, text)
    yield from _one_column(source)
    found = [(row, both) for row in source.rows if row.good and (both := _both(row))]
    if found:
        cells = tuple(row.cell for row, _ in found)
        yield Finding(UNITS, "contradiction", (source.item,), f"{found[0][0].where}: {found[0][1]}", _REPAIR, cells)


def _one_column(source: ResultSource) -> Iterator[Finding]:
    """Report rates of several kinds in one column, unless each cell has each of them."""
    cells: dict[str, set[tuple[int | None, int | None]]] = {}
    for unit in source.units:
        if kind := rate_of(unit):
            cells[unit] = {(row.context, row.users) for row in source.rows if row.figure(kind)}
    kinds = {rate_of(unit) for unit in cells}
    if len(kinds) < 2:
        return
    everywhere = set.intersection(*cells.values())
    if 2 * len(everywhere) >= len(set.union(*cells.values())):
        return
    counts = ", ".join(f"{len(found)} cells in {unit}" for unit, found in cells.items())
    text = f"one column holds {counts}: figures of different kinds side by side"
    yield Finding(UNITS, "suspect", (source.item,), text, "one column for each unit, every cell in each")


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
