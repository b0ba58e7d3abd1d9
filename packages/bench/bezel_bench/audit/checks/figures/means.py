"""Check for finding 1: a mean of runs that were not one experiment (a claim's runs, a file written twice, two files).

    claim:  |value - mean(runs)| <= a unit of the last digit, and (max - min) / mean > 5 % of two, 20 % of more runs
    file:   cells of a second pass are appended to it with other values and without the number of their run
    files:  c = (a + b) / 2 within the printed digits, in every cell where a and b differ

Needs the runs, or the files. Two runs give no useful interval: with two values its half-width is 6.4 times their
difference.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from bezel_bench.audit.figure import StatedFigure, figure
from bezel_bench.audit.findings import MEANS, MISSING, AuditFinding, Rule
from bezel_bench.audit.grids import Key, main_rate, rates_by_key
from bezel_bench.audit.table import AuditTable, Claim, ResultSource, Row

# Two repeats of one experiment agree within the first share of their mean, more of them within the second; values
# further apart are of another experiment.
_SPREAD, _SPREAD_OF_MORE = 0.05, 0.20
_RULE = Rule(MEANS, "give each run by itself, or a mean of three or more repeats of one experiment with its interval")
_FAILED_RUN = Rule(MISSING, "record the failed run as failed, and give the other by itself")
# Least cells in which c is the mean of a and b although the two differ by four printed units: one in four is by chance.
_CELLS = 8
_TWICE = 3
_TWO = 2
_MISSED = 3


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield findings for claims, files and triples of files."""
    for claim in table.claims:
        yield from _claim_findings(claim)
    for source in table.sources:
        yield from _appended_passes(source)
    yield from _mean_files([source for source in table.sources if source.rows])


def _claim_findings(claim: Claim) -> Iterator[AuditFinding]:
    stated = claim.fields.get("runs")
    runs = [run for value in stated if (run := figure(value))] if isinstance(stated, list) else []
    if claim.value is None or len(runs) < _TWO:
        return
    values = [run.value for run in runs]
    mean = sum(values) / len(values)
    off = abs(claim.value.value - mean)
    if not mean or off > 2 * claim.value.half + max(run.half for run in runs):
        return
    spread = (max(values) - min(values)) / mean
    if spread <= (_SPREAD if len(runs) == _TWO else _SPREAD_OF_MORE):
        return
    sums = " + ".join(f"{value:g}" for value in values)
    text = (
        f"({sums}) / {len(values)} = {mean:.2f}, reported as {claim.value.value:g} {claim.unit}: the runs differ by "
        f"{spread:.0%} of it, so they are not repeats of one experiment"
    )
    yield _RULE.finding("contradiction", claim.item, text)
    if min(values) == 0:
        text = f"a run that gave 0 {claim.unit} entered the mean as a figure: it failed, and halves the other one"
        yield _FAILED_RUN.finding("contradiction", claim.item, text)


def _appended_passes(source: ResultSource) -> Iterator[AuditFinding]:
    """Report a second pass appended to one file."""
    if any(row.repeat is not None for row in source.rows):
        return
    passes: dict[object, list[tuple[Row, StatedFigure]]] = {}
    for row in source.rows:
        rate = main_rate(row)
        if row.context is not None and row.users is not None and rate:
            key = (row.context, row.users, row.output_tokens, row.system, rate[0])
            passes.setdefault(key, []).append((row, rate[1]))
    twice = [rows for rows in passes.values() if len(rows) > 1]
    if len(twice) < _TWICE or _side_by_side(twice):
        return
    pairs = [(rows[0][1], rows[1][1]) for rows in twice]
    apart = [abs(a.value - b.value) / max(a.value, b.value) for a, b in pairs if max(a.value, b.value) > 0]
    if not any(abs(a.value - b.value) > a.half + b.half for a, b in pairs):
        return
    worst = max(twice, key=lambda rows: abs(rows[0][1].value - rows[1][1].value))
    values = " and ".join(f"{figure.value:g}" for _, figure in worst)
    text = (
        f"it lists {len(twice)} cells {len(worst)} times with other values ({worst[0][0].cell}: {values}, up to "
        f"{max(apart):.0%} apart): a second run was appended, and a mean over the file mixes two runs"
    )
    yield _RULE.finding("suspect", source.item, text, (rows[0][0] for rows in twice))


def _side_by_side(twice: Sequence[Sequence[tuple[Row, StatedFigure]]]) -> bool:
    """Whether repeats follow each other, as they do where a cell was deliberately measured several times."""
    near = sum(1 for rows in twice if rows[1][0].order - rows[0][0].order <= 2)
    return near > len(twice) / 2


def _mean_files(sources: Sequence[ResultSource]) -> Iterator[AuditFinding]:
    cells = {source.item: rates_by_key(source) for source in sources}
    for c in sources:
        for a, b in itertools.combinations([source for source in sources if source is not c], 2):
            if means := _mean_cells(cells[a.item], cells[b.item], cells[c.item]):
                places = [f"{key[0]} tokens, {key[1]} users" for key, *_ in means]
                _, first, second, mean = means[0]
                text = (
                    f"in {len(means)} cells it is the mean of {a.item} and {b.item} to the printed digit; at "
                    f"{places[0]} ({first.value:g} + {second.value:g}) / 2 = {mean.value:g}"
                )
                yield _RULE.finding("contradiction", (c.item, a.item, b.item), text, places)


def _mean_cells(
    a: Mapping[Key, StatedFigure], b: Mapping[Key, StatedFigure], c: Mapping[Key, StatedFigure]
) -> list[tuple[Key, StatedFigure, StatedFigure, StatedFigure]]:
    """Return the cells of c that are means of a and b, if nearly all cells that can show it are."""
    cells, missed = [], 0
    for key in a.keys() & b.keys() & c.keys():
        first, second, third = a[key], b[key], c[key]
        unit = 2 * max(first.half, second.half, third.half)
        if abs(first.value - second.value) < 4 * unit or not third.value:
            continue
        rounding = third.half * 1.001 + (first.half + second.half) / 2
        if abs(third.value - (first.value + second.value) / 2) <= max(rounding, 1e-9 * third.value):
            cells.append((key, first, second, third))
        else:
            missed += 1
            if missed > _MISSED and 9 * missed > len(a):
                return []
    cells.sort(key=lambda figure: -abs(figure[1].value - figure[2].value))
    return cells if len(cells) >= max(_CELLS, 9 * missed) else []
