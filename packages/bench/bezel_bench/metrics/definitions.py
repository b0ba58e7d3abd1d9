"""Definitions of a cell's figures: one for each, with its formula, its unit and what it needs.

Owns the meaning of the names; `docs/metrics.md` is made of `DEFINITIONS`. A figure that cannot be measured is null and
names the missing value. Leaves out the choice of requests that count (bezel_bench.metrics.steady), the arithmetic of
spreads and intervals (bezel_bench.metrics.statistics) and the validity of a figure (bezel_bench.validity.checks).
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bezel_base.toml_tables import read_table
from bezel_bench.metrics import figures, statistics
from bezel_bench.metrics.metric_inputs import (
    NO_GENERATION,
    NO_SUCCESS,
    NO_TEXT,
    MeasuredFigure,
    MetricInputs,
    NotMeasurableError,
)
from bezel_bench.result.records import Distribution, Metric

_STATISTICS = (
    ("mean", None, "mean of"),
    ("p50", 0.5, "median of"),
    ("p90", 0.9, "90th percentile of"),
    ("p99", 0.99, "99th percentile of"),
)
_NO_LATENCY = {
    "ttfc": "no response held content: all of it was reasoning or tool calls",
    "tpot": "responses of one token have no time between tokens",
    "itl": "every response came in one chunk",
}


@dataclass(frozen=True)
class Definition:
    """Definition of one figure.

    Attributes:
        formula: As text, in the words of the other definitions.
        needs: The values that it requires.
        compute: The function that computes it.
    """

    name: str
    unit: str
    formula: str
    needs: str
    compute: Callable[[MetricInputs], MeasuredFigure]

    def measure(self, inputs: MetricInputs) -> Metric:
        """Compute the figure, with its interval over sections of the run where there is one."""
        try:
            figure = self.compute(inputs)
        except NotMeasurableError as error:
            return Metric(value=None, unit=self.unit, why=str(error))
        if figure.interval is None:
            return Metric(value=figure.value, unit=self.unit, n=figure.n)
        low, high = figure.interval
        how = f"t over {statistics.SECTIONS} consecutive sections"
        # The figures cannot be negative, but an interval around them can.
        interval = {"low": max(0.0, low), "high": high, "confidence": statistics.CONFIDENCE}
        return Metric(value=figure.value, unit=self.unit, n=figure.n, how=how, **interval)


def measure(inputs: MetricInputs) -> dict[str, Metric]:
    """Compute every figure, by name."""
    return {definition.name: definition.measure(inputs) for definition in DEFINITIONS}


def _latency(name: str, statistic: str, share: float | None, inputs: MetricInputs) -> MeasuredFigure:
    """Compute a statistic of a latency: the mean, or the percentile of `share`."""
    series = inputs.latencies[name]
    if len(inputs.counted_rows) == 0:
        raise NotMeasurableError(NO_SUCCESS)
    if len(series) == 0 and not inputs.generates:
        raise NotMeasurableError(NO_GENERATION)
    if len(series) == 0:
        raise NotMeasurableError(_NO_LATENCY[name] if (inputs.counted_rows["first"] > 0).any() else NO_TEXT)
    needed = statistics.values_needed(share) if share else 1
    if len(series) < needed:
        raise NotMeasurableError(f"too few values ({len(series)}): {statistic} needs {needed}")

    def figure(part: statistics.Series) -> float:
        return part.mean if share is None else part.percentile(share)

    return MeasuredFigure(figure(series), len(series), statistics.of_sections(series, figure, needed))


def distributions(inputs: MetricInputs) -> dict[str, Distribution]:
    """Return the distribution of every latency (ms) and of the lengths (tokens) that has any value."""
    spreads = {name: (inputs.latencies[name], "ms") for name in _TABLE["latencies"]}
    for name in ("prompt_tokens", "output_tokens"):
        lengths = inputs.counted_rows[name]
        spreads[name] = (statistics.Series(lengths[lengths >= 0].astype(np.float64)), "tokens")
    return {name: statistics.distribution(series, unit) for name, (series, unit) in spreads.items() if len(series)}


_TABLE = read_table(Path(__file__).with_suffix(".toml"))
LATENCIES = tuple(f"{name}_{statistic}" for name in _TABLE["latencies"] for statistic, _, _ in _STATISTICS)
"""Names of the figures of latencies."""
DEFINITIONS: tuple[Definition, ...] = (
    *(Definition(name, **row, compute=getattr(figures, name)) for name, row in _TABLE["figures"].items()),
    *(
        Definition(
            f"{name}_{statistic}",
            "ms",
            f"{title} {row['formula']}",
            row["needs"] + (f"; {needed} values" if (needed := statistics.values_needed(share or 0)) > 1 else ""),
            functools.partial(_latency, name, statistic, share),
        )
        for name, row in _TABLE["latencies"].items()
        for statistic, share, title in _STATISTICS
    ),
)
