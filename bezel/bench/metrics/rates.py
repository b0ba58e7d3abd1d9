"""Figures per second, and their cost.

Waiting is not work: a request counts at its completion, a prompt at its first token, entirely at that instant; only
generated tokens, which come one after the other, are spread over their time. If requests were spread from their sending
on, one that waits in a queue would count before any work is done for it, and an overloaded server would seem to do more
than it does.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from bezel.bench.metrics import statistics
from bezel.bench.metrics.metric_inputs import NONE_GOOD, absent, meets, with_interval
from bezel.bench.metrics.shares import cached_share
from bezel.bench.metrics.steady import Steady
from bezel.bench.result.document import Metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel.bench.metrics.metric_inputs import MetricInputs
    from bezel.bench.result.columns import Columns, Floats


def _rate(
    unit: str,
    amounts: Callable[[Columns], Floats],
    span: tuple[str, str],
    facts: MetricInputs,
    *,
    at_end: bool = True,
) -> Metric:
    """Compute amounts per second.

    Args:
        unit: Unit of the figure.
        amounts: Amount of each request.
        span: Fields of the begin and end of a request's time in which the amount arises.
        facts: The inputs.
        at_end: Whether amounts count at the end of that time; else evenly over it.
    """
    rows, steady = facts.good, facts.steady
    if len(facts.counted) == 0 or steady.seconds <= 0:
        return absent(unit, NONE_GOOD)
    given = amounts(rows)
    # The first token of a response without a text was not observed: it counts when it ends.
    texts = rows["first"] > 0
    ends = rows["done"] if span[1] == "done" else np.where(texts, rows[span[1]], rows["last"])
    begins = np.where(texts, rows[span[0]], ends if facts.open_loop else rows["sent"])

    def between(start: int, end: int, *, whole: bool) -> float:
        part = Steady(start, end, "", cut=steady.cut)
        return float((given * part.share(ends if whole else begins, ends)).sum()) / part.seconds

    value = between(steady.begins, steady.ends, whole=at_end)
    edges = np.linspace(steady.begins, steady.ends, statistics.SECTIONS + 1).astype(np.int64).tolist()
    enough = len(facts.counted) >= 2 * statistics.SECTIONS
    # Users of a closed loop come in step: an edge between two rounds would add an artificial variance. As a constant
    # number of them is under way, spreading their requests over their time counts nothing twice.
    whole = at_end and facts.open_loop
    sections = [between(*edge, whole=whole) for edge in itertools.pairwise(edges)] if enough and steady.cut else []
    return with_interval(value, unit, len(facts.counted), statistics.around(value, sections) if sections else None)


def requests_per_second(facts: MetricInputs) -> Metric:
    """Compute the rate of requests that succeeded."""
    return _rate("requests/s", lambda rows: np.ones(len(rows)), ("sent", "done"), facts)


def offered_requests_per_second(facts: MetricInputs) -> Metric:
    """Compute the rate that an open loop planned, from its first to its last request."""
    unit, due = "requests/s", facts.columns["planned"]
    if not facts.open_loop:
        return absent(unit, "users of a closed loop offer as much as is completed")
    if len(due) < 2 or due.max() == due.min():
        return absent(unit, "fewer than two instants were planned")
    return Metric(value=(len(due) - 1) / (int(np.ptp(due)) / 1e9), unit=unit, n=len(due))


def output_tokens_per_second(facts: MetricInputs) -> Metric:
    """Compute the rate of generated tokens."""
    return _rate(
        "tokens/s", lambda rows: rows["output_tokens"].astype(np.float64), ("first", "last"), facts, at_end=False
    )


def prompt_tokens_per_second(facts: MetricInputs) -> Metric:
    """Compute the rate of prompt tokens sent, cached ones included."""
    return _rate("tokens/s", lambda rows: rows["prompt_tokens"].astype(np.float64), ("sent", "first"), facts)


def input_tokens_per_second(facts: MetricInputs) -> Metric:
    """Compute the rate of computed prompt tokens, without cached ones; not measurable if these are unknown."""
    cached = cached_share(facts)
    if cached.value is None:
        return absent("tokens/s", cached.why)
    sent = prompt_tokens_per_second(facts)
    if sent.value is None:
        return sent
    if (facts.good["cached_tokens"] >= 0).all():
        return _rate(
            "tokens/s",
            lambda rows: (rows["prompt_tokens"] - rows["cached_tokens"]).astype(np.float64),
            ("sent", "first"),
            facts,
        )
    return Metric(value=sent.value * (1 - cached.value), unit="tokens/s", n=sent.n)


def in_flight(facts: MetricInputs) -> Metric:
    """Compute the average number of requests under way."""
    steady, rows = facts.steady, facts.columns.where(facts.columns["sent"] > 0)
    if steady.seconds <= 0 or len(rows) == 0:
        return absent("requests", "no request was sent")
    inside = np.minimum(rows["done"], steady.ends) - np.maximum(rows["sent"], steady.begins)
    return Metric(value=float(inside.clip(0).sum() / 1e9 / steady.seconds), unit="requests", n=len(rows))


def goodput(facts: MetricInputs) -> Metric:
    """Compute the rate of requests that met every SLO."""
    if not facts.slos:
        return absent("requests/s", "no SLO was given")
    rows = facts.good
    if len(rows) == 0:
        return Metric(value=0.0, unit="requests/s", n=0)
    met = meets(rows, facts.slos, open_loop=facts.open_loop)
    return _rate("requests/s", lambda _: met.astype(np.float64), ("sent", "done"), facts)


def goodput_share(facts: MetricInputs) -> Metric:
    """Compute the share of all ended requests that met every SLO; a failed one met none."""
    if not facts.slos:
        return absent("share", "no SLO was given")
    ended = facts.columns.where(facts.steady.counts(facts.columns))
    if len(ended) == 0:
        return absent("share", "no request ended in the part that counts")
    met = meets(ended, facts.slos, open_loop=facts.open_loop) & (ended.failure == 0)
    return Metric(value=float(met.mean()), unit="share", n=len(ended))


def cost(name: str, rate: Callable[[MetricInputs], Metric], facts: MetricInputs) -> Metric:
    """Compute the cost of a million tokens at a rate, if they bear the whole price."""
    unit = f"USD per million {name}"
    found = rate(facts)
    if facts.usd_per_hour is None:
        return absent(unit, "no price is known")
    if not found.value:
        return absent(unit, found.why or "none were served")
    per_million = facts.usd_per_hour / 3600 * 1_000_000
    ends = (found.low, found.high) if found.low and found.high else None
    interval = (per_million / ends[1], per_million / ends[0]) if ends else None
    return with_interval(per_million / found.value, unit, found.n, interval)
