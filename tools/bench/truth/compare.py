"""Comparison of a result of `bezel bench run` with the log of the server that it measured. Pure.

Requests are matched by the order of their last tokens: the server's one core writes them one after the other, so they
arrive in that order, which is independent of both ends of a TTFT. All instants are of CLOCK_MONOTONIC, which client
and server read alike.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bezel_bench.result.columns import Columns, Floats
    from tools.bench.truth.split import Split
    from tools.bench.truth.truth_server import Record

RATE_WITHIN = 0.01
TTFT_WITHIN_MS = 1.0
UNJUDGED = ("client_limited", "busy_machine")
"""States by which the client says that its figures may be wrong."""
_FAILURES = {"error": ("http_5xx",), "reset": ("truncated", "reset")}


@dataclass(frozen=True)
class Compared:
    """Errors of a client's figures.

    Attributes:
        requests: Requests that reached the server; `counted` of them are in the client's figures.
        state: The client's own state of the load.
        miscounted: What the client counted otherwise than the server, in words; empty where nothing.
        rate: Requests per second, the client's relative to the server's, less 1; None where none is known.
        tokens: The same for output tokens per second.
        ttft_p50_ms: Client's figure less the server's, of the counted requests; and `ttft_p99_ms`.
        paired_p99_ms: 99th percentile of the differences request by request: also what other work of the machine delays
            at one end.
        tpot: Error of the mean TPOT, relative.
        split: Of users who begin at once, the parts of the TTFTs' difference to the server's log; else None.
        part: The client's part of the TTFT as its result has it, where `split` is known.
    """

    requests: int
    counted: int
    state: str
    miscounted: tuple[str, ...]
    rate: float | None
    tokens: float | None
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    paired_p99_ms: float | None
    tpot: float | None
    split: Split | None = None
    part: Mapping[str, Any] | None = None

    def faults(self, expected: str) -> list[str]:
        """Return what is wrong with the client: nothing where its figures are exact, or its state says that it cannot.

        Args:
            expected: The state that the load has.
        """
        faults = list(self.miscounted)
        if self.state in UNJUDGED:
            return faults
        if self.state != expected:
            faults.append(f"the state is {self.state}, not {expected}")
        for name, error in (("requests/s", self.rate), ("tokens/s", self.tokens)):
            if error is not None and abs(error) > RATE_WITHIN:
                faults.append(f"{name} are {error:+.2%} off, more than {RATE_WITHIN:.0%}")
        if self.ttft_p99_ms is not None and abs(self.ttft_p99_ms) > TTFT_WITHIN_MS:
            faults.append(f"TTFT p99 is {self.ttft_p99_ms:+.2f} ms off, more than {TTFT_WITHIN_MS:g} ms")
        return faults


def compare_cell(cell: Mapping[str, Any], rows: Columns, began: int, truth: Sequence[Record]) -> Compared:
    """Compare a cell with the truth.

    Args:
        cell: Of the result, as JSON.
        rows: Its samples.
        began: The start of its load, ns.
        truth: The server's log.
    """
    good = rows.good()
    served = sorted((record for record in truth if record.outcome == "ok"), key=lambda record: record.last)
    miscounted = _count_problems(rows, truth)
    figures = {name: metric["value"] for name, metric in cell["metrics"].items()}
    window = cell["window"]
    if len(good) != len(served) or not served or window is None:
        return Compared(len(truth), 0, cell["state"], tuple(miscounted), *[None] * 6)
    ordered = good.where(np.argsort(good["last"], kind="stable"))
    first, arrival, last, done = (
        np.array([getattr(record, name) for record in served], dtype=np.float64)
        for name in ("first", "arrival", "last", "done")
    )
    tokens = np.array([record.tokens for record in served])
    ends = (ordered["done"] - began) / 1e9
    counted = (ends > window["begins"]) & (ends <= window["ends"])
    spent = _seconds(done, ordered["done"], counted)
    open_loop = cell["users"] is None
    true_ttft = (first - (ordered["planned"] if open_loop else arrival)) / 1e6
    pairs = np.abs((ordered["first"] - ordered["sent"]) - (first - arrival)) / 1e6
    several = counted & (tokens > 1)
    true_tpot = ((last - first) / 1e6 / np.maximum(tokens - 1, 1))[several]
    return Compared(
        requests=len(truth),
        counted=int(counted.sum()),
        state=cell["state"],
        miscounted=tuple(miscounted),
        rate=_relative(figures["requests_per_second"], counted.sum() / spent if spent else None),
        tokens=_relative(figures["output_tokens_per_second"], _tokens(first, last, tokens, began, window)),
        ttft_p50_ms=_off(figures["ttft_p50"], true_ttft[counted], 0.5),
        ttft_p99_ms=_off(figures["ttft_p99"], true_ttft[counted], 0.99),
        paired_p99_ms=float(np.quantile(pairs[counted], 0.99)) if counted.any() else None,
        tpot=_relative(figures["tpot_mean"], float(true_tpot.mean()) if several.any() else None),
    )


def _count_problems(rows: Columns, truth: Sequence[Record]) -> list[str]:
    outcomes, failures = Counter(record.outcome for record in truth), rows.failures()
    problems = []
    if len(rows) != len(truth):
        problems.append(f"{len(rows)} requests sent, {len(truth)} arrived")
    if (good := int((rows.failure == 0).sum())) != outcomes["ok"]:
        problems.append(f"{good} requests counted as complete, {outcomes['ok']} were")
    for outcome, kinds in _FAILURES.items():
        counted = sum(failures.get(kind, 0) for kind in kinds)
        if counted != outcomes[outcome]:
            problems.append(
                f"{counted} requests counted as {' or '.join(kinds)}, {outcomes[outcome]} ended by {outcome}"
            )
    if strangers := failures.keys() - {kind for kinds in _FAILURES.values() for kind in kinds}:
        problems.append(f"failures that the server did not make: {', '.join(sorted(strangers))}")
    return problems


def _seconds(
    done: Floats, by_client: np.ndarray[tuple[int, ...], Any], counted: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> float | None:
    """Return the server's time in which the counted responses ended: from the end of the one before them."""
    order = np.argsort(by_client, kind="stable")
    inside = np.flatnonzero(counted[order])
    if not len(inside) or inside[0] == 0:
        return None
    return float(done[order][inside[-1]] - done[order][inside[0] - 1]) / 1e9


def _tokens(first: Floats, last: Floats, tokens: Floats, began: int, window: Mapping[str, float]) -> float:
    """Return the tokens per second that left in the client's window, each response's at an even pace."""
    begins, ends = (began + window[name] * 1e9 for name in ("begins", "ends"))
    inside = np.clip(np.minimum(last, ends) - np.maximum(first, begins), 0, None)
    shares = np.where(last > first, inside / np.maximum(last - first, 1), (first > begins) & (first <= ends))
    return float((shares * tokens).sum() / (ends - begins) * 1e9)


def _relative(figure: float | None, truth: float | None) -> float | None:
    return None if figure is None or not truth else float(figure / truth - 1)


def _off(figure: float | None, truth: Floats, share: float) -> float | None:
    return None if figure is None or not len(truth) else float(figure - np.quantile(truth, share))
