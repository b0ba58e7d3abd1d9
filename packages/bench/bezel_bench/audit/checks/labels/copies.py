"""Check for finding 2: figures under two labels that are equal to the last digit.

    evidence of a cell = log2(1 / p), p = unit of the last digit / (2 sqrt(pi) x spread x value)

p is the probability that two measurements of the same mean print the same digits. The spread is 2 % between labels that
differ in machine or model, and 0.3 % where only words differ, in favour of the source. Each value counts once (a flat
curve repeats itself), a requested rate not at all. Needs 30 bits in one stretch of neighbouring cells; cells are
matched by the columns that both files have. Figures that were multiplied by one factor, or rounded differently, are
found by bezel_bench.audit.checks.labels.scaled.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bezel_bench.audit.checks.labels import scaled
from bezel_bench.audit.figure import StatedFigure
from bezel_bench.audit.findings import COPIES, AuditFinding, Rule, Severity
from bezel_bench.audit.table import LATENCIES, RATES, AuditTable, Claim, ResultSource, Row, System

_BITS = 30.0
_CELLS = 3
_OTHER, _SAME = 0.02, 0.003
_Key = tuple[float | None, ...]
_PARTS = ("context", "users", "rate", "output_tokens", "repeat")
_RULE = Rule(COPIES, "measure the second system, or remove its label")
_SAME_SYSTEM = "give both runs' own figures, or state that it is one run"


@dataclass
class _Stretch:
    """Neighbouring equal cells and their evidence: each distinct value counts once."""

    spread: float
    cells: set[_Key] = field(default_factory=set)
    values: set[float] = field(default_factory=set)
    bits: float = 0.0

    def add(self, cell: _Key, figures: Sequence[StatedFigure]) -> None:
        """Add one more equal cell."""
        self.cells.add(cell)
        for figure in figures:
            if figure.value not in self.values:
                self.values.add(figure.value)
                self.bits += -math.log2(max(_chance(figure, self.spread), 1e-6))


def find(table: AuditTable) -> Iterator[AuditFinding]:
    """Yield findings for pairs of files, and for claims that state where their figures come from."""
    sources = [source for source in table.sources if source.rows]
    for first, second in itertools.combinations(sources, 2):
        yield from _pair(first, second)
    for claim in table.claims:
        yield from _shared_files(claim)


def _shared_files(claim: Claim) -> Iterator[AuditFinding]:
    """Report a claim that rests on another system's file, or one file used for several systems."""
    origin, served = claim.fields.get("same_file_as"), claim.fields.get("same_file_for")
    if origin:
        text = f"its figures are those of {origin}, labelled {claim.row.system.label}"
    elif isinstance(served, list) and len(served) > 1:
        text = f"one file is labelled {' and '.join(map(str, served))}: at most one of them was measured"
    else:
        return
    yield _RULE.finding("contradiction", claim.item, text)


def _pair(first: ResultSource, second: ResultSource) -> Iterator[AuditFinding]:
    systems = first.rows[0].system, second.rows[0].system
    differ = differs(*systems)
    if not differ and (systems[0].simulated or systems[1].simulated):
        return  # the same simulation gives the same figures
    spread = _OTHER if differ else _SAME
    columns = _columns(first.rows) & _columns(second.rows)
    ones, others = _cells(first.rows, columns), _cells(second.rows, columns)
    stretch, best = _Stretch(spread), _Stretch(spread)
    for key, figures in ones.items():
        there = others.get(key, {})
        shared = [(name, figure) for name, figure in figures.items() if name in there and _tells(figure, spread)]
        if not shared:
            continue
        if any(figure != there[name] for name, figure in shared):
            stretch = _Stretch(spread)
            continue
        stretch.add(key, [figure for _, figure in shared])
        if stretch.bits > best.bits:
            best = stretch
    labels = f"{systems[0].label or first.item} and {systems[1].label or second.item}"
    claim = f"labelled {labels}" if differ else "reported as two measurements"
    if best.bits < _BITS or len(best.values) < _CELLS:
        yield from _multiples(first, second, columns, claim)
        return
    text = (
        f"{len(best.cells)} neighbouring cells of {len(ones.keys() & others.keys())} are equal to the last printed "
        f"digit, {claim}; by chance one time in 2^{best.bits:.0f}"
    )
    cells = [row for row in first.rows if _key(row, columns) in best.cells]
    severity: Severity = "contradiction" if differ else "suspect"
    yield _RULE.finding(severity, (second.item, first.item), text, cells, "" if differ else _SAME_SYSTEM)


def _multiples(
    first: ResultSource, second: ResultSource, columns: frozenset[str], claim: str
) -> Iterator[AuditFinding]:
    """Report cells that equal another file's cells times one factor."""
    stretch = scaled.best(_cells(first.rows, columns), _cells(second.rows, columns))
    if stretch is None or stretch.bits < _BITS or stretch.values < _CELLS:
        return
    left, right = stretch.example
    factor = f"{stretch.factor:.5g}"
    text = (
        f"{len(stretch.cells)} neighbouring cells are {factor} times those of {first.item} to the last printed digit "
        f"({left.value:g} x {factor} = {right.value:g}), {claim}, where a file's own figures vary by "
        f"{stretch.spread:.1%}; by chance one time in 2^{stretch.bits:.0f}"
    )
    cells = [row for row in first.rows if _key(row, columns) in stretch.cells]
    yield _RULE.finding("suspect", (second.item, first.item), text, cells, f"{_SAME_SYSTEM} and its factor")


def differs(system: System, other: System) -> bool:
    """Whether two systems differ in machine, model or encoding, as far as both are stated."""
    pairs = (
        (system.machine and system.machine.id, other.machine and other.machine.id),
        (system.shape and system.shape.id, other.shape and other.shape.id),
        (system.encoding, other.encoding),
    )
    return any(a is not None and b is not None and a != b for a, b in pairs)


def _columns(rows: Sequence[Row]) -> frozenset[str]:
    """Return the columns that distinguish the rows of a file."""
    return frozenset(name for name in _PARTS if any(getattr(row, name) is not None for row in rows))


def _cells(rows: Sequence[Row], columns: frozenset[str]) -> dict[_Key, Mapping[str, StatedFigure]]:
    cells: dict[_Key, Mapping[str, StatedFigure]] = {}
    for row in rows:
        figures = {name: figure for name in (*RATES, *LATENCIES) if (figure := row.figure(name))}
        if row.rate and ("rate" in columns or row.users is None):
            figures = {name: figure for name, figure in figures.items() if name not in RATES}
        if figures:
            cells.setdefault(_key(row, columns), figures)
    return cells


def _key(row: Row, columns: frozenset[str]) -> _Key:
    return tuple(getattr(row, name) if name in columns else None for name in _PARTS)


def _chance(figure: StatedFigure, spread: float) -> float:
    return min(1.0, 2 * figure.half / (2 * math.sqrt(math.pi) * spread * figure.value))


def _tells(figure: StatedFigure, spread: float) -> bool:
    """Whether equal digits are evidence: a coarsely printed value is often equal by chance."""
    return figure.value > 0 and _chance(figure, spread) < 0.5
