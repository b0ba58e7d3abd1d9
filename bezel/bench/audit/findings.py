"""Catalogue of the sixteen faults of measurements that the audit reports, and the shape of a finding.

Owns names, severities and the two kinds of output: a finding accuses, an open question does not. Leaves out the
detection of a fault, which is in the fault's own file.
"""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["impossible", "contradiction", "suspect", "not comparable"]
SEVERITIES: tuple[Severity, ...] = ("impossible", "contradiction", "suspect", "not comparable")
"""impossible: no hardware does it. contradiction: figures of the data refute each other. suspect: hardly anything but
the fault gives such figures, or the figure is too imprecise for use. not comparable: each may be true, the comparison
is not."""

MEANS, COPIES, ROOFLINE, DRAIN, TIMEOUTS, LENGTHS, QUEUES, CAPS = range(1, 9)
OUTPUTS, SPECULATION, SUMS, CHUNKS, UNITS, LABELS, KV_PRECISION, MISSING = range(9, 17)

FAULTS: dict[int, str] = {
    MEANS: "mean of different runs",
    COPIES: "copy of another result",
    ROOFLINE: "more than the hardware can do",
    DRAIN: "no drain between cells",
    TIMEOUTS: "success rate that is only the timeout",
    LENGTHS: "length limit told as another failure",
    QUEUES: "load above what the service takes at once",
    CAPS: "users capped in the client",
    OUTPUTS: "different output lengths",
    SPECULATION: "speculation judged by too few tokens",
    SUMS: "latencies that do not add up",
    CHUNKS: "chunks counted as tokens",
    UNITS: "input and output tokens mixed",
    LABELS: "wrong label",
    KV_PRECISION: "KV precision refuted by memory",
    MISSING: "failed cells dropped or told as good",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of one item.

    Attributes:
        fault: A key of FAULTS.
        severity: One of SEVERITIES.
        items: What is accused: a file, or a claim by its id; the first is the worst.
        arithmetic: The calculation in whole sentences.
        repair: What would make the figure sound.
        cells: Position in the items, e.g. "16384 tokens, 512 users".
    """

    fault: int
    severity: Severity
    items: tuple[str, ...]
    arithmetic: str
    repair: str
    cells: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the fault in words."""
        return FAULTS[self.fault]


@dataclass(frozen=True, slots=True)
class Open:
    """A check that was not possible, because the data lack a value it needs. Accuses no source."""

    faults: tuple[int, ...]
    item: str
    text: str
