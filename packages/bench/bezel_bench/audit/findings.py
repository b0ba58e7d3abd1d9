"""Catalogue of the eighteen kinds of findings of the audit, and the shape of a finding.

Owns names, severities and the two kinds of output: a finding accuses, an open question does not. Leaves out the
detection, which is in the file of each kind.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from bezel_bench.audit.table import Row
from bezel_bench.audit.words import group_by

Severity = Literal["impossible", "contradiction", "suspect", "not comparable"]
SEVERITIES: tuple[Severity, ...] = ("impossible", "contradiction", "suspect", "not comparable")
"""impossible: no hardware does it. contradiction: figures of the data refute each other. suspect: hardly any other
cause gives such figures, or the figure is too imprecise for use. not comparable: each may be true, the comparison is
not."""

MEANS, COPIES, ROOFLINE, DRAIN, TIMEOUTS, LENGTHS, QUEUES, CAPS = range(1, 9)
OUTPUTS, SPECULATION, SUMS, CHUNKS, UNITS, LABELS, KV_PRECISION, MISSING = range(9, 17)
TOTALS, SENDING = 17, 18

FINDINGS: dict[int, str] = {
    MEANS: "mean of different runs",
    COPIES: "copy of another result",
    ROOFLINE: "more than the hardware can do",
    DRAIN: "no drain between cells",
    TIMEOUTS: "success rate that measures only the timeout",
    LENGTHS: "length limit reported as another failure",
    QUEUES: "load above what the service takes at once",
    CAPS: "users capped in the client",
    OUTPUTS: "different output lengths",
    SPECULATION: "speculation judged by too few tokens",
    SUMS: "latencies that do not add up",
    CHUNKS: "chunks counted as tokens",
    UNITS: "input and output tokens mixed",
    LABELS: "wrong label",
    KV_PRECISION: "KV precision refuted by memory",
    MISSING: "failed cells dropped or reported as good",
    TOTALS: "core figures that refute each other",
    SENDING: "load that was not sent as stated",
}


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One finding on one item.

    Attributes:
        kind: A key of FINDINGS.
        severity: One of SEVERITIES.
        items: What is accused: a file, or a claim by its id; the first is the worst.
        arithmetic: The calculation in whole sentences.
        repair: What would make the figure sound.
        cells: Position in the items, e.g. "16384 tokens, 512 users".
    """

    kind: int
    severity: Severity
    items: tuple[str, ...]
    arithmetic: str
    repair: str
    cells: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the kind in words."""
        return FINDINGS[self.kind]


@dataclass(frozen=True, slots=True)
class Open:
    """A check that was not possible, because the data lack a value it needs. Accuses no source."""

    kinds: tuple[int, ...]
    item: str
    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of finding, and its usual repair; every check has one."""

    kind: int
    repair: str

    def finding(
        self,
        severity: Severity,
        items: str | tuple[str, ...],
        arithmetic: str,
        cells: Iterable[Row | str] = (),
        repair: str = "",
    ) -> AuditFinding:
        """Return a finding of this kind; `repair` replaces the usual one."""
        places = tuple(cell if isinstance(cell, str) else cell.cell for cell in cells)
        accused = (items,) if isinstance(items, str) else items
        return AuditFinding(self.kind, severity, accused, arithmetic, repair or self.repair, places)

    def findings(
        self,
        severity: Severity,
        statements: Iterable[tuple[str, Row]],
        judge: Callable[[Row], str | None],
        *,
        where: bool = False,
    ) -> Iterator[AuditFinding]:
        """Yield one finding for each item with good rows that `judge` accuses: the arithmetic is that of the first.

        Args:
            severity: One of SEVERITIES.
            statements: Rows with the item they belong to.
            judge: Returns what is wrong with a row.
            where: Whether the arithmetic begins with the position of the row.
        """
        accused = [(item, row, text) for item, row in statements if row.good and (text := judge(row))]
        for item, rows in group_by(accused, lambda judged: judged[0]).items():
            _, first, text = rows[0]
            place = f"{first.where}: " if where else ""
            yield self.finding(severity, item, f"{place}{text}", (row for _, row, _ in rows))
