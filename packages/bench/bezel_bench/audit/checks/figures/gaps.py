"""Relations of the latencies of one load, as closely as the stated spreads allow (finding 11; judged in sums.py).

    mean e2e = mean ttft + mean tpot x (mean tokens - 1) + covariance(tpot, tokens)
    mean e2e = mean ntpot x mean tokens + covariance(ntpot, tokens)
    |covariance| <= standard deviation x standard deviation         0 where all responses have one length
    requests/s x mean e2e = requests under way <= users

A part of e2e after the last token, where a tool counts it, follows from its source (Clock of a row). Where lengths vary
and no spread is stated, the first two are not judged here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bezel_bench.audit.checks.relation import Relation
from bezel_bench.audit.figure import StatedFigure
from bezel_bench.audit.spread import Spread
from bezel_bench.audit.table import NTPOT, OUTPUT, OUTPUT_LENGTH, REQUESTS, Row

_WITHIN = 0.03  # of e2e: printed digits, requests of one token, instants that a tool takes a little apart
_FEWEST = 2.0  # tokens of a response, from which on there are gaps
_ONE_LENGTH = 0.02
_UNSTATED = 1.5  # on top of what the spreads of the times allow for the spread of lengths that is not stated
_UNDER_WAY = 0.05
_USUAL_LENGTHS = 1.25  # standard deviation of the lengths / their mean: chats have about 1


@dataclass(frozen=True)
class _Sum:
    """A mean e2e computed from its parts, and how far the spreads may move it."""

    seconds: float
    half: float
    moved: float
    text: str


def _tokens(row: Row) -> float | None:
    """Return the mean tokens of a response; of a table whose length is only requested, where the rates confirm it."""
    if row.mean_output is not None:
        return row.mean_output
    requests, output = row.figure(REQUESTS), row.figure(OUTPUT)
    if row.output_tokens is None or not requests or not output or not requests.low:
        return None
    counted = output.value / requests.value
    precision = requests.half / requests.value + (output.half / output.value if output.value else 0.0)
    return float(row.output_tokens) if abs(counted / row.output_tokens - 1) <= _ONE_LENGTH + precision else None


def _covariance(row: Row, time: str, tokens: float) -> float | None:
    """Return the largest covariance of a time per token with the tokens; None where it is not bounded."""
    if row.mean_output is None:
        return 0.0  # as many as were requested at most: all of them
    pace, lengths = row.spreads.get(time, Spread()), row.spreads.get(OUTPUT_LENGTH, Spread())
    deviation, of_lengths = pace.widest(), lengths.widest()
    if of_lengths == 0 or deviation == 0:
        return 0.0
    if deviation is None or not pace.mean:
        return None
    if of_lengths is not None:
        return deviation * of_lengths
    whole = row.spreads.get("e2e", Spread())
    spread, first = whole.widest(), row.spreads.get("ttft", Spread()).widest() or 0.0
    span = (whole.mean or 0.0) - ((row.spreads.get("ttft", Spread()).mean or 0.0) if time == "tpot" else 0.0)
    if spread is None or span <= 0:
        return None
    relative = deviation / pace.mean
    return _UNSTATED * relative * (relative + (spread + first) / span) * pace.mean * tokens


def _any_length(row: Row, time: str, tokens: float) -> float | None:
    """Return the covariance with lengths of any usual spread, of which nothing is stated."""
    deviation = row.spreads.get(time, Spread()).widest()
    return None if deviation is None else _USUAL_LENGTHS * deviation * tokens


def _parts(row: Row, bound: Callable[[Row, str, float], float | None] = _covariance) -> _Sum | None:
    tokens, ttft, tpot = _tokens(row), row.figure("ttft"), row.figure("tpot")
    if tokens is None or tokens < _FEWEST or not ttft or not tpot or not tpot.value:
        return None
    moved = bound(row, "tpot", tokens)
    if moved is None:
        return None
    gaps = tokens - 1
    seconds = ttft.value + gaps * tpot.value
    text = f"ttft {ttft.value:.4g} s + {gaps:.5g} gaps x tpot {tpot.value * 1e3:.4g} ms = {seconds:.4g} s"
    return _Sum(seconds, ttft.half + gaps * tpot.half, moved, text)


def _paces(row: Row) -> _Sum | None:
    tokens, pace = row.mean_output, row.figure(NTPOT)
    if tokens is None or not pace or not pace.value:
        return None
    moved = _covariance(row, NTPOT, tokens)
    if moved is None:
        return None
    seconds = tokens * pace.value
    text = f"{tokens:.5g} tokens x {pace.value * 1e3:.4g} ms for each, the first included, = {seconds:.4g} s"
    return _Sum(seconds, tokens * pace.half, moved, text)


def _slack(row: Row, total: _Sum, e2e: StatedFigure) -> tuple[float, float]:
    """Return by how much e2e may be below and above the sum of its parts."""
    slack = _WITHIN * max(e2e.value, total.seconds) + total.moved + total.half + e2e.half
    return slack, slack + (row.clock.tail if row.clock else 0.0) * e2e.value


def _apart(row: Row, total: _Sum | None) -> str | None:
    e2e = row.figure("e2e")
    if total is None or not e2e or not e2e.value:
        return None
    below, above = _slack(row, total, e2e)
    if total.seconds - below <= e2e.value <= total.seconds + above:
        return None
    spreads = f", and the stated spreads move it by {total.moved:.3g} s at most" if total.moved else ""
    return f"{total.text}, but e2e = {e2e.value:.4g} s{spreads}"


def _coarse(row: Row, total: _Sum | None) -> float:
    e2e = row.figure("e2e")
    return _slack(row, total, e2e)[1] / e2e.value if total and e2e and e2e.value else 0.0


def _edges(row: Row) -> float | None:
    """Return the share by which users x seconds may be exceeded; None where the source defines no such rate."""
    if row.clock is None or not row.users or not row.completed:
        return None
    return _UNDER_WAY + row.clock.crossing + (0.0 if row.clock.whole else row.users / row.completed)


def _crowd(row: Row) -> str | None:
    rate, e2e, users, edges = row.figure(REQUESTS), row.figure("e2e"), row.users, _edges(row)
    if not rate or not users or edges is None:
        return None
    description = "a mean e2e"
    if not e2e:
        total = _parts(row) or _parts(row, _any_length)
        if total is None:
            return None
        e2e, description = StatedFigure(total.seconds, total.half + total.moved), f"({total.text})"
    if rate.low * e2e.low <= (1 + edges) * users:
        return None
    return (
        f"{rate.value:.4g} requests/s x {description} of {e2e.value:.4g} s = {rate.value * e2e.value:.4g} requests "
        f"under way, of {users} users"
    )


def _under_way(row: Row) -> str | None:
    rate, e2e = row.figure(REQUESTS), row.figure("e2e")
    if not rate or not e2e or not row.in_flight or row.failed:
        return None
    product = rate.value * e2e.value
    if abs(product - row.in_flight) <= _UNDER_WAY * max(product, row.in_flight):
        return None
    return (
        f"{rate.value:.4g} requests/s x a mean e2e of {e2e.value:.4g} s = {product:.4g} requests under way, but "
        f"{row.in_flight:.4g} are stated"
    )


def _lacks_sum(row: Row) -> tuple[str, ...]:
    names = [name for name in ("ttft", "tpot", "e2e") if not (figure := row.figure(name)) or not figure.value]
    if _tokens(row) is None:
        names.append("mean output tokens")
    return tuple(names) or (() if _parts(row) or (_tokens(row) or 0) < _FEWEST else ("spreads of tpot and lengths",))


def _lacks_pace(row: Row) -> tuple[str, ...]:
    names = [name for name in (NTPOT, "e2e") if not row.figure(name)]
    if row.mean_output is None:
        names.append("mean output tokens")
    return tuple(names) or (() if _paces(row) else ("spreads of the pace and lengths",))


def _lacks_crowd(row: Row) -> tuple[str, ...]:
    names = ["requests/s"] if not row.figure(REQUESTS) else []
    names += ["users"] if not row.users else []
    names += ["e2e"] if not row.figure("e2e") and _parts(row) is None and _parts(row, _any_length) is None else []
    return tuple(names) or (() if _edges(row) is not None else ("number of completed requests",))


SUM = "ttft + (tokens - 1) x tpot = e2e"
RELATIONS: tuple[Relation, ...] = (
    Relation(SUM, _lacks_sum, lambda row: _apart(row, _parts(row)), lambda row: _coarse(row, _parts(row))),
    Relation(
        "tokens x time per token = e2e",
        _lacks_pace,
        lambda row: _apart(row, _paces(row)),
        lambda row: _coarse(row, _paces(row)),
        expected=False,
    ),
    Relation("requests/s x e2e <= users", _lacks_crowd, _crowd, lambda row: _edges(row) or 0.0),
    Relation(
        "requests/s x e2e = requests under way",
        lambda row: () if row.clock and row.clock.whole and row.in_flight and row.figure("e2e") else ("e2e",),
        _under_way,
        expected=False,
    ),
)
