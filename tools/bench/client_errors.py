"""Errors of any client's own figures against the log of the server that knows the truth. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tools.bench.load_clients import ClientFigures


class Answered(NamedTuple):
    """One response by the server's own clock: ns of CLOCK_MONOTONIC, and tokens."""

    arrival: int
    first: int
    last: int
    done: int
    tokens: int


@dataclass(frozen=True)
class Errors:
    """Errors of a client's figures against the truth.

    Attributes:
        ttft_ms_p50: Median difference between its TTFTs and the server's, both sorted: a client that does not identify
            its requests allows no more.
        ttft_ms_p99: The same at the 99th percentile.
        paired_ms_p50: Median difference request by request; None where requests cannot be matched.
        paired_ms_p99: The same at the 99th percentile.
        tpot: Error of the mean TPOT, relative.
        throughput: Error of the output tokens per second, relative.
        tokens: Error of the number of tokens, relative.
        answers: Error of the number of responses.
    """

    ttft_ms_p50: float
    ttft_ms_p99: float
    paired_ms_p50: float | None
    paired_ms_p99: float | None
    tpot: float | None
    throughput: float
    tokens: float
    answers: int


def errors(measured: ClientFigures, truth: list[Answered]) -> Errors:
    """Compare a client's figures with the truth."""
    true_ttft = sorted((answer.first - answer.arrival) / 1e6 for answer in truth)
    apart = sorted(abs(a - b) for a, b in zip(sorted(measured.ttft_ms), true_ttft, strict=False))
    paired = sorted(ttft_errors(measured.instants, truth))
    true_tpot = [(answer.last - answer.first) / 1e6 / (answer.tokens - 1) for answer in truth if answer.tokens > 1]
    true_tokens = sum(answer.tokens for answer in truth)
    span = (max(answer.done for answer in truth) - truth[0].arrival) / 1e9
    return Errors(
        at(apart, 0.5),
        at(apart, 0.99),
        at(paired, 0.5) if paired else None,
        at(paired, 0.99) if paired else None,
        mean(measured.tpot_ms) / mean(true_tpot) - 1 if true_tpot and measured.tpot_ms else None,
        measured.tokens / measured.seconds / (true_tokens / span) - 1,
        measured.tokens / true_tokens - 1,
        measured.answered - len(truth),
    )


def ttft_errors(instants: list[list[int]], truth: list[Answered]) -> list[float]:
    """|client's TTFT - server's| in ms of each request.

    The log names no request. The one core that answers writes one token after the other, so last tokens arrive in the
    order in which they left. Requests are matched by that order, which is independent of both ends of a TTFT.
    """
    if len(instants) != len(truth):
        return []
    rows = sorted(instants, key=lambda row: row[2])
    answers = sorted(truth, key=lambda answer: answer.last)
    return [
        abs((row[1] - row[0]) - (answer.first - answer.arrival)) / 1e6
        for row, answer in zip(rows, answers, strict=True)
    ]


def at(ordered: list[float], share: float) -> float:
    """The percentile of ordered values (nearest rank)."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def mean(values: list[float]) -> float:
    """The mean of one or more values."""
    return sum(values) / len(values)
