"""Samples of a server's `/metrics` while a load is sent: requests, KV cache, tokens and preemptions over time.

Owns the thread that reads, and the few lines that are parsed: the same process measures the load, and a parse of the
whole response would hold it up for milliseconds. Leaves the counters of a whole load to bezel_bench.server.counters.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from bezel_bench.result.document import ServerSeries
    from bezel_bench.server.http_probe import Ask

EVERY_SECONDS = 1.0
MOST = 600
# The longest wait for a read that is under way when the load ends.
_LAST_READ_SECONDS = 2.0
_METRICS = "/metrics"
_STARTED = "process_start_time_seconds"
_FIELDS = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "kv_cache_used",
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:generation_tokens_total": "generated_tokens",
    "vllm:num_preemptions_total": "preemptions",
}
_COUNTED = ("prompt_tokens", "generated_tokens", "preemptions")
_LINE = re.compile(
    rf"^({'|'.join(map(re.escape, (*_FIELDS, _STARTED)))})(?:\{{[^\n]*\}})? (\S+)".encode(), re.MULTILINE
)


def values_of(body: bytes) -> dict[str, float]:
    """Return the figures of a `/metrics` response by name; {} where it is not vLLM's.

    Requests, tokens and preemptions are summed over the engines, the used share of the KV cache is their mean.
    """
    readings: dict[str, list[float]] = defaultdict(list)
    for name, value in _LINE.findall(body):
        try:
            readings[name.decode()].append(float(value))
        except ValueError:
            return {}
    if "vllm:num_requests_running" not in readings:
        return {}
    sums = {_FIELDS.get(name, name): sum(values) for name, values in readings.items()}
    if shares := readings.get("vllm:kv_cache_usage_perc"):
        sums["kv_cache_used"] /= len(shares)
    return sums


@dataclass
class Samples:
    """Samples so far: beyond `most` every second one is dropped, and new ones are taken half as often."""

    every_seconds: float = EVERY_SECONDS
    most: int = MOST
    taken: list[tuple[int, dict[str, float]]] = field(default_factory=list)

    def add(self, at: int, body: bytes) -> None:
        """Add a response that came at that instant (ns), unless it is not vLLM's."""
        if values := values_of(body):
            self.taken.append((at, values))
        if len(self.taken) > self.most:
            self.taken = self.taken[::2]
            self.every_seconds *= 2

    def series(self, origin: int) -> ServerSeries | None:
        """Return the samples in seconds from an instant (ns); None where there are none, or of several processes."""
        from bezel_bench.result.document import ServerSeries

        taken = [(at, values) for at, values in self.taken if at >= origin]
        if not taken or len({values.get(_STARTED) for _, values in taken}) > 1:
            return None
        columns: dict[str, list[float]] = {}
        for name in _FIELDS.values():
            if all(name in values for _, values in taken):
                first = taken[0][1][name] if name in _COUNTED else 0.0
                columns[name] = [values[name] - first for _, values in taken]
        at_seconds = [round((at - origin) / 1e9, 3) for at, _ in taken]
        return ServerSeries.model_validate({"every_seconds": self.every_seconds, "at_seconds": at_seconds, **columns})


class MetricsSampler:
    """Reads `/metrics` at an interval in another thread, from its entry to its exit; a failed read is left out.

    Args:
        ask: Sends the server a request.
        every_seconds: The interval, from the end of a read to the next one.
    """

    def __init__(self, ask: Ask, every_seconds: float = EVERY_SECONDS) -> None:
        self._ask, self._ended = ask, threading.Event()
        self._samples = Samples(every_seconds)
        self._thread = threading.Thread(target=self._read, name="metrics", daemon=True)
        self.entered = 0

    def __enter__(self) -> Self:
        self.entered = monotonic_ns()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        # A server that hangs keeps a read for a minute: nothing waits for that one.
        self._thread.join(_LAST_READ_SECONDS)

    def series(self, began: int) -> ServerSeries | None:
        """Return the samples in seconds from the load's start, by this machine's clock; None where there are none.

        Args:
            began: Start of the load; where another machine's clock gave it, the entry is the origin.
        """
        return self._samples.series(began if self.entered <= began <= monotonic_ns() else self.entered)

    def _read(self) -> None:
        while not self._ended.wait(self._samples.every_seconds):
            response = self._ask(_METRICS, None)
            if response.status == 200 and not self._ended.is_set():
                self._samples.add(monotonic_ns(), response.body)
