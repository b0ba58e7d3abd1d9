"""Definitions of a cell's figures: one for each, with its formula, its unit and what it needs.

Owns the meaning of the names; `docs/metrics.md` is made of `DEFINITIONS`. A figure that cannot be measured is null and
names the missing value. Leaves out the choice of requests that count (bezel.bench.metrics.steady), the arithmetic of
spreads and intervals (bezel.bench.metrics.statistics) and the validity of a figure (bezel.bench.validity.checks).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.bench.metrics import latencies, rates, shares, statistics
from bezel.bench.metrics.metric_inputs import LATENCIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel.bench.metrics.metric_inputs import MetricInputs
    from bezel.bench.result.document import Metric

_STATISTICS = {"mean": None, "p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True)
class Definition:
    """Definition of one figure.

    Attributes:
        formula: As text, in the words of the other definitions.
        needs: The values that it requires.
        of: The function that computes it.
    """

    name: str
    unit: str
    formula: str
    needs: str
    of: Callable[[MetricInputs], Metric]


def measure(facts: MetricInputs) -> dict[str, Metric]:
    """Compute every figure, by name."""
    return {one.name: one.of(facts) for one in DEFINITIONS}


_LATENCY_FORMULA = {
    "ttft": ("first token with a text, of any channel - start", "a stream"),
    "ttfc": ("first content token - start", "a stream with content"),
    "tpot": ("(e2e - ttft) / (output tokens - 1), of each request", "usage, and answers of two tokens or more"),
    "itl": (
        "gaps between neighbouring chunks of one request; no 1/rate, as a chunk may carry several tokens",
        "answers of two chunks or more",
    ),
    "e2e": ("last chunk with a token - start", "a stream"),
    "schedule_delay": ("begun - planned", "a plan"),
}
_STATISTIC_TEXT = {"mean": "mean of ", "p50": "median of ", "p90": "90th percentile of ", "p99": "99th percentile of "}


DEFINITIONS: tuple[Definition, ...] = (
    Definition(
        "requests_per_second",
        "requests/s",
        "requests that succeeded and whose answer ended inside / seconds",
        "-",
        rates.requests_per_second,
    ),
    Definition(
        "offered_requests_per_second",
        "requests/s",
        "(requests of an open loop - 1) / seconds from the first planned instant to the last, over the whole load",
        "an open loop, of two instants or more",
        rates.offered_requests_per_second,
    ),
    Definition(
        "output_tokens_per_second",
        "tokens/s",
        "output tokens by usage / seconds, spread evenly from first to last token",
        "usage",
        rates.output_tokens_per_second,
    ),
    Definition(
        "input_tokens_per_second",
        "tokens/s",
        "computed prompt tokens (usage, without cached ones) whose first answer token came inside / seconds",
        "cached tokens by usage, or trustworthy counters",
        rates.input_tokens_per_second,
    ),
    Definition(
        "prompt_tokens_per_second",
        "tokens/s",
        "all prompt tokens, cached ones included, whose first answer token came inside / seconds",
        "usage",
        rates.prompt_tokens_per_second,
    ),
    Definition(
        "cached_share",
        "share",
        "cached prompt tokens / prompt tokens, over the whole load",
        "cached tokens by usage, or trustworthy counters",
        shares.cached_share,
    ),
    Definition("in_flight", "requests", "sum of the requests' times from sent to done / seconds", "-", rates.in_flight),
    Definition("success_share", "share", "succeeded / sent, over the whole load", "-", shares.success_share),
    Definition(
        "goodput",
        "requests/s",
        "requests that met every SLO and whose answer ended inside / seconds",
        "at least one SLO",
        rates.goodput,
    ),
    Definition(
        "goodput_share",
        "share",
        "requests that met every SLO / all that ended, failed ones included",
        "at least one SLO",
        rates.goodput_share,
    ),
    Definition(
        "tokens_per_chunk",
        "tokens",
        "output tokens / chunks with a text: above 1 with drafts, and where a server sends what gathered",
        "usage",
        shares.tokens_per_chunk,
    ),
    Definition(
        "prompt_tokens_mean",
        "tokens",
        "mean of prompt tokens",
        "usage",
        functools.partial(shares.mean_length, "prompt_tokens"),
    ),
    Definition(
        "output_tokens_mean",
        "tokens",
        "mean of output tokens",
        "usage",
        functools.partial(shares.mean_length, "output_tokens"),
    ),
    Definition(
        "reasoning_share",
        "share",
        "reasoning tokens / output tokens",
        "reasoning tokens by usage",
        shares.reasoning_share,
    ),
    Definition(
        "acceptance_rate",
        "share",
        "accepted / draft tokens, by the server's counters",
        "counters",
        shares.acceptance_rate,
    ),
    Definition(
        "acceptance_length",
        "tokens",
        "1 + accepted tokens / drafts: tokens a step yields",
        "counters",
        shares.acceptance_length,
    ),
    Definition(
        "cost_per_million_output_tokens",
        "USD per million output tokens",
        "price of an hour / output tokens of an hour, which bear all of it",
        "a price",
        functools.partial(rates.cost, "output tokens", rates.output_tokens_per_second),
    ),
    Definition(
        "cost_per_million_input_tokens",
        "USD per million input tokens",
        "price of an hour / computed prompt tokens of an hour, which bear all of it",
        "a price, and what input_tokens_per_second needs",
        functools.partial(rates.cost, "input tokens", rates.input_tokens_per_second),
    ),
    *(
        Definition(
            f"{name}_{statistic}",
            "ms",
            _STATISTIC_TEXT[statistic] + _LATENCY_FORMULA[name][0],
            _LATENCY_FORMULA[name][1] + (f"; {least} values" if (least := statistics.needed(share or 0)) > 1 else ""),
            functools.partial(latencies.latency, name, statistic, share),
        )
        for name in LATENCIES
        for statistic, share in _STATISTICS.items()
    ),
)
