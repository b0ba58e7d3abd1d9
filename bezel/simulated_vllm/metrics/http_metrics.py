"""The `http_*`, `process_*` and `python_*` families of /metrics, as in every FastAPI server with vLLM's library."""

from __future__ import annotations

import gc
import platform
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.simulated_vllm.metrics.prometheus import Counter, Family, Histogram, Summary, labels, number

if TYPE_CHECKING:
    from collections.abc import Iterator

_FINE = (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60)
_COARSE = (0.1, 0.5, 1)
_PAGE = 4096


class HttpMetrics:
    """Counts requests by handler; the caller leaves out the routes for monitoring."""

    def __init__(self) -> None:
        clock = time.time
        self._started = time.time()
        self._requests = Counter(
            "http_requests_total", "Total number of requests by method, status and handler.", clock
        )
        self._received = Summary(
            "http_request_size_bytes",
            "Content length of incoming requests by handler. Only value of header is respected. Otherwise ignored. "
            "No percentile calculated. ",
            clock,
        )
        self._sent = Summary(
            "http_response_size_bytes",
            "Content length of outgoing responses by handler. Only value of header is respected. Otherwise ignored. "
            "No percentile calculated. ",
            clock,
        )
        self._fine = Histogram(
            "http_request_duration_highr_seconds",
            "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ",
            clock,
            _FINE,
        )
        self._coarse = Histogram(
            "http_request_duration_seconds",
            "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. ",
            clock,
            _COARSE,
        )
        self._fine.start(())

    def observe(self, handler: str, method: str, status: int, *, received: int, sent: int, seconds: float) -> None:
        """Count one request."""
        kind = f"{status // 100}xx"
        self._requests.add(labels({"handler": handler, "method": method, "status": kind}))
        self._received.observe(labels({"handler": handler}), received)
        self._sent.observe(labels({"handler": handler}), sent)
        self._fine.observe((), seconds)
        self._coarse.observe(labels({"handler": handler, "method": method}), seconds)

    def lines(self) -> Iterator[str]:
        """Yield the text of the http families."""
        for family in (self._requests, self._received, self._sent, self._fine, self._coarse):
            yield from family.lines()

    def process_lines(self) -> Iterator[str]:
        """Yield the text of the process and interpreter families."""
        for suffix, key, text in (
            ("collected", "collected", "Objects collected during gc"),
            ("uncollectable", "uncollectable", "Uncollectable objects found during GC"),
        ):
            yield from self._collections(f"python_gc_objects_{suffix}_total", text, key)
        yield from self._collections(
            "python_gc_collections_total", "Number of times this generation was collected", "collections"
        )
        info = Family("python_info", "Python platform information", time.time)
        major, minor, patch = platform.python_version_tuple()
        info.set(
            labels({
                "implementation": platform.python_implementation(),
                "major": major,
                "minor": minor,
                "patchlevel": patch,
                "version": platform.python_version(),
            }),
            1,
        )  # fmt: skip
        yield from info.lines()
        yield from self._process()

    def _collections(self, name: str, text: str, key: str) -> Iterator[str]:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} counter"
        for generation, stats in enumerate(gc.get_stats()):
            yield f'{name}{{generation="{generation}"}} {float(stats[key])}'

    def _process(self) -> Iterator[str]:
        virtual, resident, descriptors = _own_process()
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = used.ru_utime + used.ru_stime
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        started = "Start time of the process since unix epoch in seconds."
        yield from _plain("process_virtual_memory_bytes", "Virtual memory size in bytes.", "gauge", virtual)
        yield from _plain("process_resident_memory_bytes", "Resident memory size in bytes.", "gauge", resident)
        yield from _plain("process_start_time_seconds", started, "gauge", self._started)
        yield from _plain(
            "process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", "counter", seconds
        )
        yield from _plain("process_open_fds", "Number of open file descriptors.", "gauge", descriptors)
        yield from _plain("process_max_fds", "Maximum number of open file descriptors.", "gauge", limit)


def _plain(name: str, text: str, kind: str, value: float) -> Iterator[str]:
    """Yield a family of one series without labels; these have no `_created`."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    yield f"{name} {number(value)}"


def _own_process() -> tuple[int, int, int]:
    """Return virtual bytes, resident bytes and open descriptors; 0 where the system has no /proc."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return 0, 0, 0
    virtual, resident = (int(part) * _PAGE for part in statm.read_text(encoding="ascii").split()[:2])
    return virtual, resident, len(list(Path("/proc/self/fd").iterdir()))
