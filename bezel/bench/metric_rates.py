"""Figures a second, and what they cost."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from bezel.bench import statistics
from bezel.bench.facts import NONE_GOOD, absent, meets, with_interval
from bezel.bench.metric_shares import cached_share
from bezel.bench.result import Metric
from bezel.bench.steady import Steady

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel.bench.columns import Columns, Floats
    from bezel.bench.facts import Facts


def _rate(unit: str, amounts: Callable[[Columns], Floats], span: tuple[str, str], facts: Facts) -> Metric:
    """Amounts a second, each spread evenly over its span of time and counted by the part that lies inside."""
    rows, steady = facts.good, facts.steady
    if len(facts.counted) == 0 or steady.seconds <= 0:
        return absent(unit, NONE_GOOD)
    given = amounts(rows)
    # Of an answer without a text nobody saw the first token: all of its time is that of its prompt and of its tokens.
    texts = rows["first"] > 0
    begins, ends = np.where(texts, rows[span[0]], rows["sent"]), np.where(texts, rows[span[1]], rows["last"])

    def between(start: int, end: int) -> float:
        part = Steady(start, end, "", cut=True)
        return float((given * part.share(begins, ends)).sum()) / part.seconds

    value = between(steady.begins, steady.ends)
    edges = np.linspace(steady.begins, steady.ends, statistics.SECTIONS + 1).astype(np.int64).tolist()
    enough = len(facts.counted) >= 2 * statistics.SECTIONS
    sections = [between(*edge) for edge in itertools.pairwise(edges)] if enough and steady.cut else []
    return with_interval(value, unit, len(facts.counted), statistics.around(value, sections) if sections else None)


def requests_per_second(facts: Facts) -> Metric:
    """Requests that succeeded."""
    return _rate("requests/s", lambda rows: np.ones(len(rows)), ("sent", "last"), facts)


def output_tokens_per_second(facts: Facts) -> Metric:
    """Generated tokens."""
    return _rate("tokens/s", lambda rows: rows["output_tokens"].astype(np.float64), ("first", "last"), facts)


def prompt_tokens_per_second(facts: Facts) -> Metric:
    """Prompt tokens that were sent, cached ones included."""
    return _rate("tokens/s", lambda rows: rows["prompt_tokens"].astype(np.float64), ("sent", "first"), facts)


def input_tokens_per_second(facts: Facts) -> Metric:
    """Prompt tokens that were computed: without cached ones, or not measurable."""
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


def in_flight(facts: Facts) -> Metric:
    """How many requests ran at once, on average."""
    steady, rows = facts.steady, facts.columns.where(facts.columns["sent"] > 0)
    if steady.seconds <= 0 or len(rows) == 0:
        return absent("requests", "no request was sent")
    inside = np.minimum(rows["done"], steady.ends) - np.maximum(rows["sent"], steady.begins)
    return Metric(value=float(inside.clip(0).sum() / 1e9 / steady.seconds), unit="requests", n=len(rows))


def goodput(facts: Facts) -> Metric:
    """Requests that met every SLO."""
    if not facts.slos:
        return absent("requests/s", "no SLO was given")
    rows = facts.good
    if len(rows) == 0:
        return Metric(value=0.0, unit="requests/s", n=0)
    met = meets(rows, facts.slos, open_loop=facts.open_loop)
    return _rate("requests/s", lambda _: met.astype(np.float64), ("sent", "last"), facts)


def goodput_share(facts: Facts) -> Metric:
    """Share of all ended requests that met every SLO; a failed one met none."""
    if not facts.slos:
        return absent("share", "no SLO was given")
    ended = facts.columns.where(facts.steady.counts(facts.columns))
    if len(ended) == 0:
        return absent("share", "no request ended in the part that counts")
    met = meets(ended, facts.slos, open_loop=facts.open_loop) & (ended.failure == 0)
    return Metric(value=float(met.mean()), unit="share", n=len(ended))


def cost(name: str, rate: Callable[[Facts], Metric], facts: Facts) -> Metric:
    """What a million tokens cost at a rate of them, if they bear the whole price."""
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
