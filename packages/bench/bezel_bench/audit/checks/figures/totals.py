"""Check for finding 17: totals, rates and statistics of one load that refute each other.

    requests/s x seconds = completed requests           output tokens/s x seconds = output tokens, input likewise
    tokens/s / requests/s = tokens of a request         total tokens/s = input + output tokens/s
    sent/s x seconds of sending = sent requests         stated means and totals = those of the listed requests
    duration > 0 of completed requests
    min <= median <= p99 <= max; |median - mean| <= standard deviation

How closely a tool's rates fit its own totals follows from its source (Clock of a row). A source whose clock is unknown
is held to none of the first five. Needs two or three of the figures of one row.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bezel_bench.audit.checks.relation import Relation, findings_of, open_questions
from bezel_bench.audit.figure import StatedFigure
from bezel_bench.audit.findings import TOTALS, AuditFinding, Open, Rule
from bezel_bench.audit.readers.requests import COMPLETED, OUTPUT_TOTAL, PROMPT_TOTAL
from bezel_bench.audit.table import INPUT, OUTPUT, OUTPUT_LENGTH, PROMPT_LENGTH, REQUESTS, TOTAL, AuditTable, Row

_RECOUNTED = 0.01
_RECOUNTED_TIME = 0.03  # a latency may end a little later than the last listed token
_TIMES = ("ttft", "tpot", "e2e")
_RULE = Rule(
    TOTALS, "recompute the figures from the single requests; one of those above was changed or is of another load"
)


def find(table: AuditTable) -> Iterator[AuditFinding | Open]:
    """Yield a finding for the rows of each item whose figures refute each other, and what could not be judged."""
    yield from findings_of(_RULE, table, RELATIONS)
    for source in table.sources:
        yield from open_questions(TOTALS, source, RELATIONS)


@dataclass(frozen=True)
class _Side:
    """One figure of a comparison."""

    name: str
    figure: Callable[[Row], StatedFigure | None]


def _count(value: float | None) -> StatedFigure | None:
    return StatedFigure(value, 0.0) if value else None


def _rate(name: str) -> Callable[[Row], StatedFigure | None]:
    return lambda row: row.figure(name) if row.clock else None


def tolerance(row: Row) -> float:
    """Return the share by which a rate x seconds may miss its total, by the tool's clock and the load's length."""
    clock = row.clock
    if clock is None:
        return 0.0
    edges = _edges(row) if clock.edges and row.completed else 0.0
    failed = (row.failed or 0) / row.requests if row.requests else 0.0
    return clock.within + clock.crossing + edges + (failed if not clock.whole else 0.0)


def _edges(row: Row) -> float:
    """Return the share of a load at its ends: what runs at once, or the longest request, of all requests."""
    lengths = [row.spreads[name] for name in (PROMPT_LENGTH, OUTPUT_LENGTH) if name in row.spreads]
    longest = max((each.most / each.mean for each in lengths if each.most and each.mean), default=1.0)
    return max(row.users or row.in_flight or 1.0, longest) / max(1, (row.completed or 1) - 1)


def _of_duration(row: Row) -> float:
    """Return the tolerance of a relation with the duration, whose ends a tool may take elsewhere."""
    return tolerance(row) + (row.clock.offset / row.seconds if row.clock and row.seconds else 0.0)


def _times_seconds(rate: str, total: Callable[[Row], float | None], noun: str, unit: str) -> Relation:
    """Return the relation of a rate and the total that it was divided from."""

    def judge(row: Row) -> str | None:
        figure, counted, seconds = row.figure(rate), total(row), _seconds(row, rate)
        if not figure or not counted or not seconds:
            return None
        product = figure.value * seconds
        if _agree(StatedFigure(product, figure.half * seconds), StatedFigure(counted, 0.0), _of_duration(row)):
            return None
        return f"{figure.value:,.4g} {unit}/s x {seconds:,.4g} s = {product:,.4g}, but {counted:,.0f} {noun}"

    needs = (
        _Side(f"{unit}/s", _rate(rate)),
        _Side(noun, lambda row: _count(total(row))),
        _Side("duration", lambda row: _count(_seconds(row, rate))),
    )
    return Relation(f"{unit}/s x duration = {noun}", _missing(needs), judge, _of_duration)


def _seconds(row: Row, rate: str) -> float | None:
    """Return the time that a rate is of; None where the stated duration is another one."""
    if row.rated and rate == REQUESTS:
        return row.rated[0]
    return row.seconds if row.clock and row.clock.totals else None


def _for_each(rate: str, mean: Callable[[Row], float | None], kind: str) -> Relation:
    """Return the relation of two rates and the mean tokens of a request."""

    def judge(row: Row) -> str | None:
        tokens, requests, each = row.figure(rate), row.figure(REQUESTS), mean(row)
        if not tokens or not requests or not requests.low or not each:
            return None
        quotient = tokens.value / requests.value
        half = tokens.half / requests.value + quotient * requests.half / requests.value
        if _agree(StatedFigure(quotient, half), StatedFigure(each, 0.0), tolerance(row)):
            return None
        return (
            f"{tokens.value:,.5g} {kind} tokens/s / {requests.value:,.4g} requests/s = {quotient:,.4g} {kind} tokens "
            f"of a request, but their mean is {each:,.4g}"
        )

    needs = (
        _Side(f"{kind} tokens/s", _rate(rate)),
        _Side("requests/s", _rate(REQUESTS)),
        _Side(f"mean {kind} tokens", lambda row: _count(mean(row))),
    )
    return Relation(f"{kind} tokens/s / requests/s = mean {kind} tokens", _missing(needs), judge, tolerance)


def _sum(row: Row) -> str | None:
    output_rate, input_rate, both = row.figure(OUTPUT), row.figure(INPUT), row.figure(TOTAL)
    if not output_rate or not both:
        return None
    origin = "input"
    if input_rate is None:
        if not (row.prompt_tokens and row.seconds):
            return None
        input_rate, origin = StatedFigure(row.prompt_tokens / row.seconds, 0.0), "prompt tokens / duration"
    total = StatedFigure(output_rate.value + input_rate.value, output_rate.half + input_rate.half)
    if _agree(total, both, tolerance(row)):
        return None
    return (
        f"{input_rate.value:,.5g} ({origin}) + {output_rate.value:,.5g} output tokens/s = {total.value:,.5g}, but "
        f"{both.value:,.5g} tokens/s in total"
    )


def _sending_rate(row: Row) -> str | None:
    rate, seconds, sent = row.sent_rate, row.sent_seconds, row.planned or row.requests
    if not rate or not seconds or not sent or not rate.value:
        return None
    product = rate.value * seconds
    if _agree(StatedFigure(product, rate.half * seconds + 1.0), StatedFigure(float(sent), 0.0), tolerance(row)):
        return None
    return f"{rate.value:,.4g} sent/s x {seconds:,.4g} s of sending = {product:,.4g}, but {sent:,} were sent"


def _recount(row: Row) -> str | None:
    stated: dict[str, tuple[StatedFigure | None, str, float]] = {
        COMPLETED: (_count(row.completed), "completed requests", 1.0),
        OUTPUT_TOTAL: (_count(row.generated_tokens), "output tokens", 1.0),
        PROMPT_TOTAL: (_count(row.prompt_tokens), "prompt tokens", 1.0),
        **{name: (row.figure(name), f"ms mean {name}", 1e3) for name in _TIMES},
    }
    for name, (figure, noun, factor) in stated.items():
        counted = row.recounted.get(name)
        if figure is None or not counted:
            continue
        if not _agree(figure, StatedFigure(counted, 0.0), _RECOUNTED_TIME if name in _TIMES else _RECOUNTED):
            return f"{figure.value * factor:,.5g} {noun} are stated, the listed requests give {counted * factor:,.5g}"
    return None


def _counted_twice(row: Row) -> str | None:
    for each in row.counts:
        if not _agree(StatedFigure(each.value, 0.0), StatedFigure(each.other_value, 0.0), _RECOUNTED):
            return f"{each.name}: {each.value:,.5g}, but {each.other}: {each.other_value:,.5g}"
    return None


def _at_once(row: Row) -> str | None:
    return f"{row.completed:,} completed requests in 0 s" if row.completed and row.seconds == 0 else None


def _quantile_order(row: Row) -> str | None:
    for name, spread in row.spreads.items():
        for smaller, a, larger, b in spread.contradictions(row.completed):
            unit, factor = ("", 1.0) if name.endswith("tokens") else (" ms", 1e3)
            return f"{name}: {smaller} {a * factor:,.4g}{unit} above {larger}, {b * factor:,.4g}{unit}"
    return None


def _agree(one: StatedFigure, other: StatedFigure, within: float) -> bool:
    slack = within * max(abs(one.value), abs(other.value)) + one.half + other.half
    return abs(one.value - other.value) <= slack


def _missing(needs: tuple[_Side, ...]) -> Callable[[Row], tuple[str, ...]]:
    return lambda row: tuple(side.name for side in needs if side.figure(row) is None)


def _computed_prompt(row: Row) -> float | None:
    """Return the mean prompt tokens; none beside cached ones, which some tools leave out of the rate."""
    return None if row.cached_tokens else row.mean_prompt


RELATIONS: tuple[Relation, ...] = (
    _times_seconds(
        REQUESTS, lambda row: row.rated[1] if row.rated else row.completed, "completed requests", "requests"
    ),
    _times_seconds(OUTPUT, lambda row: row.generated_tokens, "output tokens", "output tokens"),
    _times_seconds(
        INPUT, lambda row: None if row.cached_tokens else row.prompt_tokens, "prompt tokens", "input tokens"
    ),
    _for_each(OUTPUT, lambda row: row.mean_output, "output"),
    _for_each(INPUT, _computed_prompt, "input"),
    Relation(
        "input + output tokens/s = total tokens/s",
        _missing((_Side("output tokens/s", _rate(OUTPUT)), _Side("total tokens/s", _rate(TOTAL)))),
        _sum,
        tolerance,
    ),
    Relation(
        "sent/s x seconds of sending = sent requests",
        _missing((_Side("rate of sending", lambda row: row.sent_rate),)),
        _sending_rate,
        tolerance,
        expected=False,
    ),
    Relation(
        "stated figures = those of the listed requests",
        lambda row: () if row.recounted else ("single requests",),
        _recount,
        expected=False,
    ),
    Relation(
        "two counts of the same tokens",
        lambda row: () if row.counts else ("a second count",),
        _counted_twice,
        expected=False,
    ),
    Relation(
        "duration > 0 s",
        lambda row: () if row.seconds is not None and row.completed else ("duration",),
        _at_once,
        expected=False,
    ),
    Relation(
        "order of the mean and the percentiles",
        lambda row: () if any(len(spread.points) > 1 for spread in row.spreads.values()) else ("percentiles",),
        _quantile_order,
    ),
)
