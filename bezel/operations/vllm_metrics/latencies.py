"""Latencies of a stack's servers over some time: means, and percentiles from the buckets of their histograms. Pure.

A percentile is interpolated within the bucket that holds it; vLLM's buckets are wide, so it may be off by a third. Of
one in the lowest bucket or beyond the highest only the bound is known.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bezel.operations.vllm_metrics import sample as names
from bezel.operations.vllm_metrics.increases import Standing
from bezel.operations.vllm_metrics.served import ALL, LENGTHS, Served

Percentile = Literal["p50", "p90", "p99"]
PERCENTILES: dict[Percentile, float] = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_HISTOGRAMS = {
    "ttft": ("TTFT", names.TTFT),
    "itl": ("ITL", names.ITL),
    "tpot": ("TPOT", names.TPOT),
    "queue_time": ("queue time", names.QUEUE),
    "e2e": ("whole request", names.E2E),
}
_OF_TOKENS = frozenset({"ttft", "itl", "tpot"})


class Latency(BaseModel):
    """Percentiles of one latency, in seconds; null where nothing was observed or no series has it."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="name of the latency")
    title: str = Field(description="name for people")
    observations: int | None = Field(description="number of observations; null where no series has them")
    mean: float | None
    p50: float | None
    p90: float | None
    p99: float | None
    at_most: tuple[Percentile, ...] = Field(description="percentiles below the lowest bound, which they show")
    at_least: tuple[Percentile, ...] = Field(description="percentiles above the highest bound, which they show")

    def text(self, percentile: Percentile) -> str:
        """A percentile for people."""
        limit = "< " * (percentile in self.at_most) + "> " * (percentile in self.at_least)
        return limit + seconds_text(getattr(self, percentile))


def latencies_of(served: Served, windows: slice = ALL, *, generates: bool = True) -> tuple[Latency, ...]:
    """Every latency in some windows.

    Args:
        served: What the servers did.
        windows: The windows.
        generates: Whether the model generates.
    """
    shown = [name for name in _HISTOGRAMS if generates or name not in _OF_TOKENS]
    return tuple(latency_of(served, name, windows) for name in shown)


def latency_of(served: Served, name: str, windows: slice = ALL) -> Latency:
    """One latency in some windows."""
    title, family = _HISTOGRAMS[name]
    buckets, total = served.buckets(family, windows), served.sum_of(family, windows)
    if buckets is not None and name == "tpot":
        # vLLM observes 0 for an answer of one token, which has no further one.
        lengths = served.buckets(LENGTHS, windows)
        single = None if lengths is None else lengths.up_to(1.0)
        single = 0.0 if lengths is not None and not lengths.bounds else single
        buckets = None if single is None else buckets.without_zeros(single)
    if buckets is None:
        no_values = dict.fromkeys(("observations", "mean", *PERCENTILES))
        return Latency(name=name, title=title, at_most=(), at_least=(), **no_values)
    quantiles = {percentile: buckets.quantile(share) for percentile, share in PERCENTILES.items()}
    return Latency(
        name=name,
        title=title,
        observations=round(buckets.count),
        mean=total / buckets.count if total is not None and buckets.count else None,
        p50=_value(quantiles["p50"]),
        p90=_value(quantiles["p90"]),
        p99=_value(quantiles["p99"]),
        at_most=tuple(name for name, quantile in quantiles.items() if quantile and quantile[1] == "at most"),
        at_least=tuple(name for name, quantile in quantiles.items() if quantile and quantile[1] == "at least"),
    )


def _value(quantile: tuple[float, Standing] | None) -> float | None:
    return None if quantile is None else quantile[0]


def seconds_text(value: float | None) -> str:
    """A time for people."""
    if value is None:
        return "unknown"
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"
