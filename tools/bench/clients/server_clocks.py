"""A real vLLM's own counters and clocks, read from its /metrics before and after a load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_bench.server.counters import series

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNTERS = {"requests": "vllm:request_success_total", "tokens": "vllm:generation_tokens_total"}
CLOCKS = {
    "ttft": "vllm:time_to_first_token_seconds",
    "tpot": "vllm:request_time_per_output_token_seconds",
}
RUNNING = ("vllm:num_requests_running", "vllm:num_requests_waiting")


@dataclass(frozen=True)
class ServedLoad:
    """What the server counted between two readings.

    Attributes:
        requests: Requests that it completed.
        tokens: Tokens that it generated.
        ttft_ms: Mean time to the first token by its own clock, from where it has read a request; None of no request.
        tpot_ms: Mean time for each further token.
    """

    requests: int
    tokens: int
    ttft_ms: float | None
    tpot_ms: float | None


def totals(metrics: str) -> dict[str, float]:
    """The value of each series without its labels, summed over them."""
    sums: dict[str, float] = {}
    for name, _, value in series(metrics):
        sums[name] = sums.get(name, 0.0) + value
    return sums


def load_between(before: Mapping[str, float], after: Mapping[str, float]) -> ServedLoad:
    """What lies between two readings of `totals`."""

    def growth(name: str) -> float:
        return after.get(name, 0.0) - before.get(name, 0.0)

    def mean_ms(family: str) -> float | None:
        count = growth(f"{family}_count")
        return growth(f"{family}_sum") / count * 1e3 if count else None

    return ServedLoad(
        round(growth(COUNTERS["requests"])),
        round(growth(COUNTERS["tokens"])),
        mean_ms(CLOCKS["ttft"]),
        mean_ms(CLOCKS["tpot"]),
    )
