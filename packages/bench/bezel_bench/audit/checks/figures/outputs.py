"""Check for finding 9: responses of different lengths in one table of requests per second.

A request of 100 output tokens takes a hundred times the decoding work of a request of one. Within a table the length
must be the same, or every cell must be present for each length; both sides of a ratio must have the same length. Needs
the output lengths.
"""

from collections.abc import Iterator, Sequence

from bezel_bench.audit.findings import OUTPUTS, AuditFinding, Rule
from bezel_bench.audit.table import REQUESTS, AuditTable, Claim, ResultSource, Row

_TIMES = 1.25
_RULE = Rule(
    OUTPUTS, "compare output tokens a second, or measure all with one fixed length (ignore_eos and max_tokens)"
)


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield findings for ratios, claims compared with another, and tables of requests per second."""
    for claim in table.claims:
        other = table.compared_with(claim)
        yield from _compare_sides(claim, claim.sides or ((claim.row, other.row) if other else ()), other, table.sources)
    for source in table.sources:
        if source.grid:
            yield from _mixed_lengths(source)


def _compare_sides(
    claim: Claim, rows: Sequence[Row], other: Claim | None, sources: Sequence[ResultSource]
) -> Iterator[AuditFinding]:
    """Compare two sides; also name tables of requests per second on their machines that state no length."""
    lengths = [row.output_tokens for row in rows if row.output_tokens]
    if len(lengths) != 2 or max(lengths) < _TIMES * min(lengths):
        return
    machines = [row.system.machine for row in rows if row.system.machine]
    tables = [
        source.item
        for source in sources
        for row in source.rows[:1]
        if row.system.machine in machines and row.figure(REQUESTS) and row.output_tokens is None
    ]
    named = f"; so it is for {' and '.join(tables)}, which state no length" if tables else ""
    text = (
        f"{lengths[0]} output tokens a request on one side, {lengths[1]} on the other: "
        f"{max(lengths) / min(lengths):.3g} times the decoding{named}"
    )
    yield _RULE.finding("not comparable", (claim.item, *([other.item] if other else []), *tables), text)


def _mixed_lengths(source: ResultSource) -> Iterator[AuditFinding]:
    first: dict[int, Row] = {}
    cells: dict[int, set[tuple[int | None, int | None]]] = {}
    for row in source.rows:
        if row.figure(REQUESTS) and row.output_tokens and row.good:
            cells.setdefault(row.output_tokens, set()).add((row.context, row.users))
            first.setdefault(row.output_tokens, row)
    lengths = sorted(cells)
    if len(lengths) < 2 or lengths[-1] < _TIMES * lengths[0]:
        return
    if 2 * len(set.intersection(*cells.values())) >= len(set.union(*cells.values())):
        return  # each cell at each length: the length is a dimension of the table
    text = (
        f"one table of requests/s holds responses of {', '.join(map(str, lengths))} tokens, each in other cells: the "
        f"longest are {lengths[-1] / lengths[0]:.3g} times the decoding of the shortest"
    )
    yield _RULE.finding("not comparable", source.item, text, first.values())
