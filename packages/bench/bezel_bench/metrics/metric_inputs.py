"""Inputs of a cell's figures, and the latencies of each request by name.

Owns the choice of requests that count and the origin of a latency. Leaves the figures to
bezel_bench.metrics.definitions.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bezel_bench.metrics.statistics import Series
from bezel_bench.metrics.steady import Steady
from bezel_bench.result.columns import Columns, Flags, Floats
from bezel_bench.result.document import Reading, Slo

NO_SUCCESS = "no request of the part that counts succeeded"
NO_TEXT = "no response held a text: all of its tokens were special ones, or parts of a character"
NO_GENERATION = "the endpoint generates no token"


class NotMeasurableError(Exception):
    """A figure cannot be measured; the text names the missing value."""


class MeasuredFigure(NamedTuple):
    """A measured figure, the number of requests behind it, and its interval over sections of the run."""

    value: float
    n: int
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class MetricInputs:
    """Inputs of a cell's figures.

    Attributes:
        columns: All requests of the load.
        steady: The part of it that counts.
        open_loop: Requests were planned by the clock: their latencies count from the planned instant.
        gained: The increase of the server's counters over the whole load; None where unknown.
        usd_per_hour: The price of all serving hardware; None where unknown.
        slos: Limits that a request must meet to count for goodput.
    """

    columns: Columns
    steady: Steady
    open_loop: bool
    gained: Reading | None = None
    usd_per_hour: float | None = None
    slos: Sequence[Slo] = ()

    @property
    def good(self) -> Columns:
        """Return the requests that succeeded, in the order of their ends, inside or outside the part that counts."""
        return self.columns.successes

    @functools.cached_property
    def counted_rows(self) -> Columns:
        """Return the successful requests that ended in the part that counts."""
        return self.good.where(self.steady.counts(self.good))

    @property
    def generates(self) -> bool:
        """Whether any request asked for a token."""
        return bool((self.columns["asked_tokens"] != 0).any()) or len(self.columns) == 0

    @functools.cached_property
    def latencies(self) -> dict[str, Series]:
        """Return milliseconds of each latency, of the counted requests that have it, in the order of their ends."""
        rows = self.counted_rows
        spans, has = latencies_of(rows, open_loop=self.open_loop)
        values = {name: span[has[name]] / 1e6 for name, span in spans.items()} | {"itl": rows.gaps() / 1e6}
        return {name: Series(each) for name, each in values.items()}


def latencies_of(rows: Columns, *, open_loop: bool) -> tuple[dict[str, Floats], dict[str, Flags]]:
    """Return nanoseconds of each latency except itl for each request, and the requests that have it."""
    origin = rows["planned"] if open_loop else rows["sent"]
    every = np.ones(len(rows), np.bool_)
    steps = np.maximum(rows["output_tokens"] - 1, 1)
    spans = {
        "ttft": (rows["first"] - origin).astype(np.float64),
        "ttfc": (rows["first_content"] - origin).astype(np.float64),
        "tpot": (rows["last"] - rows["first"]) / steps,
        "e2e": (rows["last"] - origin).astype(np.float64),
        "schedule_delay": (rows["begun"] - rows["planned"]).astype(np.float64),
    }
    texts = rows["first"] > 0
    has = dict.fromkeys(spans, every) | {
        "ttft": texts,
        "ttfc": rows["first_content"] > 0,
        "tpot": texts & (rows["output_tokens"] > 1),
    }
    return spans, has


def meets(rows: Columns, slos: Sequence[Slo], *, open_loop: bool) -> Flags:
    """Return which requests meet every limit; a request without a latency (one token: no tpot) meets its limit.

    Except for ttft: the first token of a response without a text was not observed in time.
    """
    spans, has = latencies_of(rows, open_loop=open_loop)
    longest = np.zeros(len(rows))
    pairs = np.maximum(rows.chunk_counts - 1, 0)
    np.maximum.at(longest, np.repeat(np.arange(len(rows)), pairs), rows.gaps())
    spans, has = spans | {"itl_max": longest}, has | {"itl_max": pairs > 0}
    met = np.ones(len(rows), np.bool_)
    for slo in slos:
        excused = ~has[slo.metric] & (slo.metric != "ttft")
        met &= excused | (has[slo.metric] & (spans[slo.metric] <= slo.limit_ms * 1e6))
    return met
