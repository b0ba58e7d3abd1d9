"""Latency figures and distributions, in milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bezel.bench.metrics import statistics
from bezel.bench.metrics.metric_inputs import LATENCIES, NO_TEXT, NONE_GOOD, absent, with_interval

if TYPE_CHECKING:
    from bezel.bench.metrics.metric_inputs import MetricInputs
    from bezel.bench.result.columns import Floats
    from bezel.bench.result.document import Distribution, Metric


def latency(name: str, statistic: str, share: float | None, facts: MetricInputs) -> Metric:
    """Compute a statistic of a latency: the mean, or the percentile of ``share``."""
    values = facts.latencies[name]
    if len(values) == 0:
        return absent("ms", _why_no(name, facts))
    least = statistics.needed(share) if share else 1
    if len(values) < least:
        return absent("ms", f"{len(values)} values are fewer than the {least} that {statistic} needs")

    def figure(part: Floats) -> float:
        return float(part.mean()) if share is None else statistics.percentile(part, share)

    return with_interval(figure(values), "ms", len(values), statistics.of_sections(values, figure, least))


def _why_no(name: str, facts: MetricInputs) -> str:
    if len(facts.counted) == 0:
        return NONE_GOOD
    if not (facts.counted["first"] > 0).any():
        return NO_TEXT
    reasons = {
        "ttfc": "no answer held content: all of it was reasoning or tool calls",
        "tpot": "answers of one token have no time between tokens",
        "itl": "every answer came in one chunk",
    }
    return reasons[name]


def distributions(facts: MetricInputs) -> dict[str, Distribution]:
    """Return the distribution of every latency (ms) and of the lengths (tokens) that has any value."""
    spreads = {name: (facts.latencies[name], "ms") for name in LATENCIES}
    for name in ("prompt_tokens", "output_tokens"):
        lengths = facts.counted[name]
        spreads[name] = (lengths[lengths >= 0].astype(np.float64), "tokens")
    return {name: statistics.distribution(values, unit) for name, (values, unit) in spreads.items() if len(values)}
