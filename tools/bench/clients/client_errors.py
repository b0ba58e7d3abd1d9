"""Errors of any client's own figures against the log of the server that knows the truth. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.bench.clients.load_client import ClientFigures
    from tools.bench.truth.truth_server import Record


@dataclass(frozen=True)
class Errors:
    """Errors of a client's figures against the truth; None where it does not report what is compared.

    Attributes:
        ttft_ms_p50: Median difference between its TTFTs and the server's, both sorted: a client that does not identify
            its requests allows no more.
        ttft_ms_p99: The same at the 99th percentile.
        paired_ms_p50: Median difference request by request; None where requests cannot be matched.
        paired_ms_p99: The same at the 99th percentile.
        itl_ms_p50: Median difference between its times from token to token and the server's, both sorted; and
            `itl_ms_p99`.
        tpot: Error of the mean TPOT, relative.
        throughput: Error of the output tokens per second, relative.
        rate: Error of the requests per second, relative.
        tokens: Error of the number of tokens, relative.
        answers: Error of the number of responses.
    """

    ttft_ms_p50: float | None
    ttft_ms_p99: float | None
    paired_ms_p50: float | None
    paired_ms_p99: float | None
    itl_ms_p50: float | None
    itl_ms_p99: float | None
    tpot: float | None
    throughput: float
    rate: float
    tokens: float
    answers: int


def errors(measured: ClientFigures, truth: Sequence[Record]) -> Errors:
    """Compare a client's figures with the server's log of its good responses."""
    ttft = differences(measured.ttft_ms, [(answer.first - answer.arrival) / 1e6 for answer in truth])
    paired = ttft_errors(measured.instants, truth)
    itl = differences(measured.itl_ms, [gap / 1e6 for answer in truth for gap in answer.gaps])
    true_tpot = [(answer.last - answer.first) / 1e6 / (answer.tokens - 1) for answer in truth if answer.tokens > 1]
    true_tokens = sum(answer.tokens for answer in truth)
    seconds = served_seconds(truth)
    return Errors(
        percentile(ttft, 50),
        percentile(ttft, 99),
        percentile(paired, 50),
        percentile(paired, 99),
        percentile(itl, 50),
        percentile(itl, 99),
        float(np.mean(measured.tpot_ms) / np.mean(true_tpot)) - 1 if true_tpot and measured.tpot_ms else None,
        measured.tokens / measured.seconds / (true_tokens / seconds) - 1,
        measured.answered / measured.seconds / (len(truth) / seconds) - 1,
        measured.tokens / true_tokens - 1,
        measured.answered - len(truth),
    )


def served_seconds(truth: Sequence[Record]) -> float:
    """Seconds from the first arrival to the last end."""
    return (max(answer.done for answer in truth) - min(answer.arrival for answer in truth)) / 1e9


def differences(values: Sequence[float], true_values: Sequence[float]) -> list[float]:
    """|value - true value|, both in order of size; of several chunks read as one there are fewer: then by quantiles."""
    if not values or not true_values:
        return []
    if len(values) == len(true_values):
        return list(np.abs(np.sort(values) - np.sort(true_values)))
    shares = (np.arange(1_000) + 0.5) / 1_000
    return list(np.abs(np.quantile(values, shares) - np.quantile(true_values, shares)))


def ttft_errors(instants: Sequence[Sequence[int]], truth: Sequence[Record]) -> list[float]:
    """|client's TTFT - server's| in ms of each request.

    The log names no request. The one core that answers writes one token after the other, so last tokens arrive in the
    order in which they left. Requests are matched by that order, which is independent of both ends of a TTFT.
    """
    if len(instants) != len(truth):
        return []
    rows = sorted(instants, key=lambda row: row[2])
    answers = sorted(truth, key=lambda answer: answer.last)
    return [
        abs((first - sent) - (answer.first - answer.arrival)) / 1e6
        for (sent, first, _), answer in zip(rows, answers, strict=True)
    ]


def percentile(values: Sequence[float], share: float) -> float | None:
    """The percentile of values; None of none."""
    return float(np.percentile(values, share)) if values else None
