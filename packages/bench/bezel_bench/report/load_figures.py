"""Figures over the load: throughput, latency against throughput with the knee, cost of a million tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from bezel_base.text.counting import format_count
from bezel_bench.report.charts.axes import Axis, without_outlier
from bezel_bench.report.charts.plot import Chart, Dot, Line
from bezel_bench.report.figure import Figure, Table
from bezel_bench.report.format import MARKS, STATES, UNKNOWN, number, percent, span
from bezel_bench.report.series import Spot, Subject, evenly, nature
from bezel_bench.result.document import Inferred

THROUGHPUT = "output_tokens_per_second"
COST = "cost_per_million_output_tokens"
OFFERED = "offered_requests_per_second"
_COST_BASIS = (
    "The server's price for an hour by the output tokens of an hour at that load: output tokens bear all of it."
)

_MAX_CONTEXTS, _MAX_LINES = 4, 5


@dataclass(frozen=True)
class Curve:
    """Loads of one subject at one context, rising. `mark` is the load to emphasise, and the reason."""

    label: str
    subject: Subject
    context: int | None
    spots: tuple[Spot, ...]
    mark: tuple[float, str] | None


def curves_of(subjects: Sequence[Subject]) -> tuple[list[Curve], str]:
    """Return the lines of a report, and a note on omissions: one subject by up to four contexts, several by one."""
    if len(subjects) == 1:
        contexts = [context for context in _contexts(subjects[0]) if len(_at(subjects[0], context)) > 1]
        shown = evenly(contexts, _MAX_CONTEXTS)
        note = f"{len(shown)} of {len(contexts)} contexts are drawn" if len(shown) < len(contexts) else ""
        return [_curve(subjects[0], context, f"context {_tokens(context)}") for context in shown], note
    common = set.intersection(*(set(_contexts(subject)) for subject in subjects)) if subjects else set()
    if common:
        at = max(common, key=lambda context: (min(len(_at(subject, context)) for subject in subjects), context or 0))
        curves = [_curve(subject, at, subject.label) for subject in subjects]
        note = f"All at a context of {_tokens(at)}"
    else:
        chosen = [
            (candidate, max(_contexts(candidate), key=lambda at: len(_at(candidate, at))))
            for candidate in subjects
            if candidate.spots
        ]
        curves = [_curve(subject, at, f"{subject.label}, context {_tokens(at)}") for subject, at in chosen]
        note = "The contexts differ: the lines are not comparable"
    if len(curves) > _MAX_LINES:
        note += f". {_MAX_LINES} of {len(curves)} are drawn; all are in the tables"
    return curves[:_MAX_LINES], note


def _contexts(subject: Subject) -> list[int | None]:
    return [*subject.contexts, *([None] if any(spot.context is None for spot in subject.spots) else [])]


def _at(subject: Subject, context: int | None) -> list[Spot]:
    return [spot for spot in subject.spots if spot.context == context and spot.load is not None]


def _curve(subject: Subject, context: int | None, label: str) -> Curve:
    spots = _at(subject, context)
    units = {spot.unit for spot in spots}
    unit = "users" if "users" in units else next(iter(units), "users")
    rising = sorted((spot for spot in spots if spot.unit == unit), key=lambda spot: spot.load or 0)
    return Curve(label, subject, context, tuple(rising), _mark(subject, context))


def _mark(subject: Subject, context: int | None) -> tuple[float, str] | None:
    for finding in subject.result.findings:
        numbers = finding.numbers
        users, highest = numbers.get("users"), numbers.get("highest")
        if finding.name == "knee" and numbers.get("context_tokens") == context and isinstance(users, int | float):
            return users, f"knee: {number(users)}"
        if finding.name == "highest_load" and isinstance(highest, int | float):
            return highest, f"within the limits: {number(highest)}"
    return None


def _tokens(context: int | None) -> str:
    return "unknown" if context is None else f"{number(context)} token{'s' * (context != 1)}"


def load_figures(subjects: Sequence[Subject]) -> tuple[list[Figure], list[str]]:
    """Return the figures, and the reasons why others cannot be drawn."""
    curves, note = curves_of(subjects)
    curves = [curve for curve in curves if len({spot.load for spot in curve.spots}) > 1]
    missing: list[str] = []
    if not curves:
        return [], ["Throughput, latency and cost over the load: there are not two loads to draw a line through."]
    figures = [_over_load(curves, note), *_against(curves, note, missing), *_cost(curves, note, missing)]
    return [figure for figure in figures if figure is not None], missing


def failure_note(spots: Sequence[Spot]) -> list[str]:
    """Return a sentence on the failed requests of these loads, also if none failed; none without requests."""
    requests, failed = sum(spot.requests for spot in spots), sum(spot.failed_requests for spot in spots)
    if not requests:
        return []
    excluded = "; they count in no latency and no rate" if failed else ""
    return [
        (
            f"{number(failed)} of {number(requests)} request{'s' * (requests != 1)} failed "
            f"({percent(failed / requests)}){excluded}."
        )
    ]


def _over_load(curves: list[Curve], note: str) -> Figure | None:
    unit = _unit(curves)
    inferred = [_inferred_dots(curve) for curve in curves]
    lines = [
        Line(curve.label, sorted([*_dots(curve, "", THROUGHPUT), *more], key=lambda dot: dot.x))
        for curve, more in zip(curves, inferred, strict=True)
    ]
    if not any(line.dots for line in lines):
        return None
    title = f"Throughput over {unit}"
    caption = ["Bars: 95 % interval of one run, or minimum and maximum of its repeats.", *_caption(curves, note)]
    if any(inferred):
        caption.append("Outlined: inferred, its bar 90 %; without a bar it has no range.")
    axis = Axis(_axis(unit), log=True, ticks=_loads(curves))
    chart = Chart(title, " ".join(caption), lines, axis, Axis(f"{THROUGHPUT}, tokens/s", low=0.0))
    kind = _kind(curves) + (" and inferred" if any(inferred) else "")
    figures = _table(title, curves, (THROUGHPUT, *_offered_metric(curves), "requests_per_second"))
    return Figure("throughput", title, kind, caption, chart, figures)


def _against(curves: list[Curve], note: str, missing: list[str]) -> list[Figure | None]:
    figures: list[Figure | None] = []
    for name, metric, title in (
        ("latency", "ttft", "TTFT against throughput"),
        ("pace", "tpot", "TPOT against throughput"),
    ):
        lines = [Line(curve.label, _dots(curve, THROUGHPUT, f"{metric}_p50", f"{metric}_p99")) for curve in curves]
        if sum(len(line.dots) for line in lines) < 2:
            missing.append(f"{title}: {metric}_p50 is unknown for all but one load.")
            continue
        caption = [f"Marker: {metric}_p50, bar: up to {metric}_p99. Beside a marker: {_unit(curves)}."]
        caption += _caption(curves, note)
        dots = [dot for line in lines for dot in line.dots]
        low, high = without_outlier([[dot.y, *([dot.high] if dot.high else [])] for dot in dots])
        caption += _beyond(dots, metric, low, high)
        y = Axis(f"{metric}, ms", log=True, low=low, high=high)
        chart = Chart(title, " ".join(caption), lines, Axis(f"{THROUGHPUT}, tokens/s", low=0.0), y)
        table = _table(title, curves, (THROUGHPUT, f"{metric}_p50", f"{metric}_p90", f"{metric}_p99"))
        figures.append(Figure(name, title, _kind(curves), caption, chart, table))
    return figures


def _beyond(dots: Sequence[Dot], metric: str, low: float | None, high: float | None) -> list[str]:
    """Return a sentence on each value that is beyond an end of the axis, and drawn at that end."""
    sentences = []
    for dot in dots:
        name, value = (f"{metric}_p50", dot.y)
        if high is not None and dot.y <= high and dot.high is not None and dot.high > high:
            name, value = f"{metric}_p99", dot.high
        if (high is not None and value > high) or (low is not None and value < low):
            side = "above" if high is not None and value > high else "below"
            sentences.append(
                f"Beyond the axis, drawn at its end: {name} of {number(value)} ms {side} it, at {dot.label}."
            )
    return sentences


def _cost(curves: list[Curve], note: str, missing: list[str]) -> list[Figure | None]:
    lines = [Line(curve.label, _dots(curve, "", COST)) for curve in curves]
    unknown = [curve.label for curve, line in zip(curves, lines, strict=True) if not line.dots]
    if len(unknown) == len(curves):
        missing.append("Cost per million output tokens: the price is unknown, so no cost is shown.")
        return []
    title = f"Cost per million output tokens over {_unit(curves)}"
    caption = [_COST_BASIS, *(f"The cost of {name} is unknown." for name in unknown)]
    for subject in {id(curve.subject): curve.subject for curve in curves}.values():
        price = subject.result.manifest.price
        if price.usd_per_hour is not None:
            caption.append(
                f"{subject.label}: {number(price.usd_per_hour)} USD per hour, as of {price.as_of or UNKNOWN}, "
                f"source: {price.source or UNKNOWN}."
            )
    caption += _caption(curves, note)
    x = Axis(_axis(_unit(curves)), log=True, ticks=_loads(curves))
    chart = Chart(title, " ".join(caption), lines, x, Axis("USD per million output tokens", log=True))
    figures = _table(title, curves, (COST, "cost_per_million_input_tokens", THROUGHPUT))
    return [Figure("cost", title, f"price x throughput ({_kind(curves)})", caption, chart, figures)]


def _dots(curve: Curve, across: str, metric: str, upper: str = "") -> list[Dot]:
    """Return the dots of a curve.

    Args:
        curve: The loads.
        across: The metric of the x axis, with loads as labels; "" puts the loads on the axis.
        metric: The metric of the y axis.
        upper: The metric at the top of the bar; "" draws the interval of `metric`.
    """
    dots = []
    for spot in curve.spots:
        x, figure = spot.value(across) if across else spot.load, spot.figure(metric)
        if x is None or x <= 0 or figure is None or figure.value <= 0 or spot.load is None:
            continue
        top = spot.value(upper) if upper else figure.high
        low = figure.value if upper and top is not None else None if upper else figure.low
        state = "" if spot.state == "ok" else f", {STATES[spot.state]}"
        tooltip = f"{curve.label}, {spot.load_text}{state}: {metric} {number(figure.value)} {figure.unit}"
        ring = curve.mark[1] if curve.mark and curve.mark[0] == spot.load else ""
        mark = MARKS.get(spot.state, "")
        dots.append(Dot(x, figure.value, low, top, number(spot.load) if across else "", tooltip, mark, ring=ring))
    return dots


def _inferred_dots(curve: Curve) -> list[Dot]:
    return [
        Dot(
            cell.users,
            cell.value,
            cell.low,
            cell.high,
            hollow=True,
            tooltip=f"{curve.label}, {format_count(cell.users, 'users')}: {number(cell.value)} tokens/s "
            f"inferred{_no_range(cell)}",
            ring=curve.mark[1] if curve.mark and curve.mark[0] == cell.users else "",
        )
        for cell in curve.subject.result.inferred
        if cell.metric == THROUGHPUT and cell.context_tokens == curve.context and not curve.subject.variant
    ]


def _no_range(cell: Inferred) -> str:
    return "" if cell.low is not None else f", no range: {cell.why}"


def _unit(curves: list[Curve]) -> str:
    return " and ".join(sorted({spot.unit for curve in curves for spot in curve.spots}))


def _axis(unit: str) -> str:
    return f"{unit} sent" if unit == "requests/s" else unit


def _loads(curves: list[Curve]) -> list[float]:
    loads = {spot.load for curve in curves for spot in curve.spots if spot.load is not None}
    loads |= {float(dot.x) for curve in curves for dot in _inferred_dots(curve)}
    return sorted(loads)


def _kind(curves: list[Curve]) -> str:
    return nature(curve.subject for curve in curves)


def _caption(curves: list[Curve], note: str) -> list[str]:
    spots = [spot for curve in curves for spot in curve.spots]
    caption = [f"{note}."] if note else []
    outputs = sorted({spot.output or 0 for spot in spots})
    if len(outputs) > 1:
        caption.append(f"Responses of {', '.join(map(number, outputs))} tokens are mixed: they are not comparable.")
    counts = {state: sum(spot.state == state for spot in spots) for state in MARKS}
    odd = [f"{count} {STATES[state]} ({MARKS[state]})" for state, count in counts.items() if count]
    if odd:
        caption.append(f"Not on a line: {', '.join(odd)}; without a figure it is not drawn.")
    return [*caption, *failure_note(spots)]


def _offered_metric(curves: list[Curve]) -> list[str]:
    """Return the rate that an open loop offered, beside the completed one."""
    return [OFFERED] if any(spot.value(OFFERED) is not None for curve in curves for spot in curve.spots) else []


def _table(title: str, curves: list[Curve], metrics: tuple[str, ...]) -> Table:
    rows = []
    for curve in curves:
        for spot in curve.spots:
            row = [curve.label, spot.load_text, STATES[spot.state]]
            for metric in metrics:
                figure = spot.figure(metric)
                row += [number(figure.value), span(figure.low, figure.high)] if figure else [UNKNOWN, ""]
            rows.append([*row, f"{spot.failed_requests} of {spot.requests}"])
        for dot in _inferred_dots(curve) if THROUGHPUT in metrics else ():
            place = 3 + 2 * metrics.index(THROUGHPUT)
            row = [curve.label, f"{number(dot.x)} user{'s' * (dot.x != 1)}", "inferred", *([""] * 2 * len(metrics)), ""]
            row[place : place + 2] = [f"~{number(dot.y)}", span(dot.low, dot.high)]
            rows.append(row)
    heads = [head for metric in metrics for head in (_head(curves, metric), "interval")]
    return Table(title, ["line", "load", "state", *heads, "failed"], rows)


def _head(curves: list[Curve], metric: str) -> str:
    unit = next((figure.unit for curve in curves for spot in curve.spots if (figure := spot.figure(metric))), "")
    return f"{metric}, {unit}" if unit else metric
