"""Fault 11: a sum that is told as a mean.

    itl, tpot x (output tokens - 1) = e2e - ttft        a mean gap that is as long as the whole span is a sum
    requests/s x mean e2e <= users                      a closed loop (Little); a mean e2e above it is a sum
    ttft, itl, tpot <= e2e

With drafts a chunk carries up to (1 + draft tokens) tokens, and so much longer may its gap be. Needs two or three of
the figures of one row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.bench.audit.faults import SUMS, Finding
from bezel.bench.audit.figure import Figure
from bezel.bench.audit.physics import tokens_a_step
from bezel.bench.audit.table import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.bench.audit.table import Row, Table

_LEAST_TOKENS = 4
_ABOVE = 1.8  # of what the other figures allow: means of ratios and unequal lengths explain less
_LITTLE = 1.35
_REPAIR = "divide by the number of gaps (output tokens - 1), for each request, and give the mean of those"


def find(table: Table) -> Iterator[Finding]:
    """Each item once, with its first such row."""
    found: dict[str, list[tuple[Row, str]]] = {}
    for item, row in table.statements():
        if row.good and (text := judge(row)):
            found.setdefault(item, []).append((row, text))
    for item, rows in found.items():
        yield Finding(SUMS, "contradiction", (item,), rows[0][1], _REPAIR, tuple(row.cell for row, _ in rows))


def judge(row: Row) -> str | None:
    """Why a latency of a row is no mean."""
    return _gaps(row) or _little(row) or _longer(row)


def _gaps(row: Row) -> str | None:
    tokens = row.output_tokens
    if tokens is None or tokens < _LEAST_TOKENS:
        return None
    span, told = _span(row)
    if span is None:
        return None
    for name in ("tpot", "itl"):
        gap = row.figure(name)
        carried = tokens_a_step(row.system) if name == "itl" else 1
        if gap is None or tokens - 1 < 2 * carried:
            continue
        if gap.low * (tokens - 1) / carried > _ABOVE * span.high and gap.high >= 0.7 * span.low:
            mean = span.value / (tokens - 1) * 1e3
            return (
                f"{name} {_ms(gap.value)} x {tokens - 1} gaps = {gap.value * (tokens - 1):.3g} s, but {told} = "
                f"{span.value:.3g} s; {span.value:.3g} s / {tokens - 1} = {mean:.3g} ms"
            )
    return None


def _span(row: Row) -> tuple[Figure | None, str]:
    """The time between the first and the last token, or at most that by the rate of a closed loop."""
    ttft, e2e, rate = row.figure("ttft"), row.figure("e2e"), row.figure(REQUESTS)
    if ttft and e2e and e2e.high > ttft.low:
        told = f"e2e - ttft = {e2e.value:.3g} - {ttft.value:.3g}"
        return Figure(e2e.value - ttft.value, e2e.half + ttft.half), told
    if rate and rate.low and row.users and row.rate is None:
        told = f"users / requests/s = {row.users} / {rate.value:.3g}, the whole of a request,"
        return Figure(row.users / rate.value, row.users / rate.low - row.users / rate.value), told
    return None, ""


def _little(row: Row) -> str | None:
    rate, e2e = row.figure(REQUESTS), row.figure("e2e")
    if not (rate and e2e and row.users) or row.rate is not None:
        return None
    if rate.low * e2e.low <= _LITTLE * row.users:
        return None
    return (
        f"{rate.value:.4g} requests/s x a mean e2e of {e2e.value:.4g} s = {rate.value * e2e.value:.0f} requests under "
        f"way, of {row.users} users: the mean is too large by {rate.value * e2e.value / row.users:.3g} times"
    )


def _longer(row: Row) -> str | None:
    e2e = row.figure("e2e")
    for name in ("ttft", "tpot", "itl"):
        part = row.figure(name)
        if e2e and part and part.low > 1.05 * e2e.high:
            return f"{name} {_ms(part.value)} is longer than the whole request, e2e {_ms(e2e.value)}"
    return None


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms"
