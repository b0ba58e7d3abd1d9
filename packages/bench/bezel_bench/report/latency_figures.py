"""Figures of latency distributions (TTFT, ITL), and of the acceptance of drafts by position."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean

from bezel_bench.report.charts.axes import Axis
from bezel_bench.report.charts.plot import Chart, Dot, Line
from bezel_bench.report.figure import Figure, Table
from bezel_bench.report.format import STATES, UNKNOWN, number, percent
from bezel_bench.report.load_figures import failure_note
from bezel_bench.report.series import Spot, Subject, evenly, nature
from bezel_bench.result.document import Cell
from bezel_bench.result.records import Distribution

_MAX_LOADS, _MAX_LINES = 4, 5
_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_DRAWN = ("p50", "p90", "p99")


@dataclass(frozen=True)
class _LoadDistribution:
    """The distribution of one load."""

    label: str
    subject: Subject
    spot: Spot
    cell: Cell
    values: Distribution


def shape_figures(subjects: Sequence[Subject]) -> tuple[list[Figure], list[str]]:
    """Return the figures, and the reasons why others cannot be drawn."""
    figures, missing = [], []
    for name, what in (("ttft", "requests"), ("itl", "gaps between chunks")):
        selected = _select(subjects, name)
        if selected:
            figures.append(_distribution(name, what, selected))
        else:
            missing.append(f"{name.upper()} distribution: no load has one.")
    if acceptance := _acceptance(subjects):
        figures.append(acceptance)
    return figures, missing


def _select(subjects: Sequence[Subject], name: str) -> list[_LoadDistribution]:
    """Up to four loads of one subject, in its most frequent context; of several subjects, their highest common load."""
    spots_of = {id(subject): [spot for spot in subject.spots if _cell(spot, name)] for subject in subjects}
    with_figure = [subject for subject in subjects if spots_of[id(subject)]]
    if len(with_figure) == 1:
        return [
            _distribution_of(with_figure[0], spot, name, _load_label(with_figure[0], spot))
            for spot in _spread(spots_of[id(with_figure[0])])
        ]
    keys = [{_key(spot) for spot in spots_of[id(subject)]} for subject in with_figure]
    common = set.intersection(*keys) if keys else set()
    best = max(common, key=lambda key: (key[1] or 0, key[0] or 0), default=None)
    selected = []
    for subject in with_figure:
        spot = next((spot for spot in spots_of[id(subject)] if _key(spot) == best), spots_of[id(subject)][-1])
        selected.append(_distribution_of(subject, spot, name, f"{subject.label}, {_load_label(subject, spot)}"))
    return selected


def _spread(spots: list[Spot]) -> Sequence[Spot]:
    contexts = [spot.context for spot in spots]
    context = max(set(contexts), key=lambda context: (contexts.count(context), context or 0))
    rising = sorted((spot for spot in spots if spot.context == context), key=lambda spot: spot.load or 0)
    return evenly([spot for spot in rising if spot.state == "ok"] or rising, _MAX_LOADS)


def _key(spot: Spot) -> tuple[int | None, float | None]:
    return spot.context, spot.load


def _cell(spot: Spot, name: str) -> Cell | None:
    return next((cell for cell in spot.cells if name in cell.distributions), None)


def _distribution_of(subject: Subject, spot: Spot, name: str, label: str) -> _LoadDistribution:
    cell = _cell(spot, name)
    assert cell is not None  # noqa: S101 - loads without one were left out
    state = "" if spot.state == "ok" else f" ({STATES[spot.state]})"
    return _LoadDistribution(f"{label}{state}", subject, spot, cell, cell.distributions[name])


def _load_label(subject: Subject, spot: Spot) -> str:
    several = len(subject.contexts) > 1 and spot.context is not None
    return f"{spot.load_text}{f', context {number(spot.context)}' if several else ''}"


def _distribution(name: str, what: str, selected: list[_LoadDistribution]) -> Figure:
    title = f"{name.upper()} distribution"
    lines = [_curve(name, load) for load in selected[:_MAX_LINES]]
    notes = [f"Share of {what} by the time they took. Markers: p50, p90, p99."]
    if name == "ttft":
        notes = ["Share of all requests that had their first token by then; failed ones never have.", notes[0]]
        notes[1] = "Markers: p50, p90, p99 of those that succeeded."
    if any(len(load.spot.cells) > 1 for load in selected):
        notes.append("Only the first of several repeats is drawn.")
    notes += _left_out(len(selected))
    notes += failure_note([load.spot for load in selected])
    unit = selected[0].values.unit
    # Chunks that arrive together are 0 apart, which a logarithmic axis cannot show.
    x = Axis(f"{name}, {unit}", log=all(load.values.min > 0 for load in selected))
    y = Axis(f"share of {what}", low=0.0, high=1.0, as_percent=True)
    chart = Chart(title, " ".join(notes), lines, x, y)
    heads = ["load", "n", "mean", "min", "p50", "p90", "p95", "p99", "p999", "max"]
    rows = []
    for load in selected:
        drawn = load.values
        values = (drawn.mean, drawn.min, drawn.p50, drawn.p90, drawn.p95, drawn.p99, drawn.p999, drawn.max)
        rows.append([load.label, number(drawn.n), *(number(value) for value in values)])
    note = f"All in {unit}. A percentile with less than one value above it is unknown."
    return Figure(name, title, nature(load.subject for load in selected), notes, chart, Table(title, heads, rows, note))


def _left_out(lines: int) -> list[str]:
    return [f"{_MAX_LINES} of {lines} are drawn; all are in the table."] if lines > _MAX_LINES else []


def _curve(metric: str, load: _LoadDistribution) -> Line:
    cell, values = load.cell, load.values
    # Failed requests never had a first token: their curve ends below 100 %.
    whole = 1.0
    if metric == "ttft" and cell.requests > cell.cancellations:
        whole = (cell.requests - sum(cell.failures.values())) / (cell.requests - cell.cancellations)
    counted = accumulate(values.histogram.counts)
    shares = {edge: total / values.n for edge, total in zip(values.histogram.edges[1:], counted, strict=True)}
    percentiles = {name: value for name in _SHARES if (value := getattr(values, name)) is not None}
    # Percentiles are points of the curve, also where many values are equal and share one bin.
    places = sorted([(values.min, 0.0), *shares.items(), *((percentiles[name], _SHARES[name]) for name in percentiles)])
    dots = []
    for name in [name for name in _DRAWN if name in percentiles]:
        tooltip = f"{load.label}: {metric}_{name} {number(percentiles[name])} {values.unit}"
        dots.append(Dot(percentiles[name], _SHARES[name] * whole, label=name, tooltip=tooltip))
    highest = accumulate((share for _, share in places), max)
    return Line(load.label, dots, [(at, share * whole) for (at, _), share in zip(places, highest, strict=True)])


def _acceptance(subjects: Sequence[Subject]) -> Figure | None:
    rows, lines = [], []
    drafting = []
    for subject in subjects:
        accepted = [cell.acceptance for cell in subject.cells if cell.acceptance and cell.state == "ok"]
        if not accepted:
            continue
        drafting.append(subject)
        # Loads may differ in their number of draft tokens: each position uses the loads that have it.
        means = [
            fmean([shares[position] for shares in accepted if position < len(shares)])
            for position in range(max(map(len, accepted)))
        ]
        dots = [
            Dot(
                position,
                share,
                label=percent(round(share, 3)),
                tooltip=f"{subject.label}, position {position}: {share:.1%}",
            )
            for position, share in enumerate(means, 1)
        ]
        lines.append(Line(subject.label, dots))
        step = f"{1 + sum(means):.2f}"
        rows += [
            [subject.label, str(position), percent(round(share, 4)), step] for position, share in enumerate(means, 1)
        ]
    if not lines:
        return None
    title = "Acceptance of drafts by position"
    notes = ["Share of drafts whose token at each position was accepted, by the server's counters, over all ok loads."]
    notes += [f"{line.label}: 1 + {sum(dot.y for dot in line.dots):.2f} tokens a step." for line in lines]
    notes += _left_out(len(lines))
    without = [subject.label for subject in subjects if subject not in drafting]
    notes += [f"{name}: no drafts, or {UNKNOWN}." for name in without]
    positions = max(len(line.dots) for line in lines)
    x = Axis(
        "position in the draft",
        low=0.7,
        high=positions + 0.3,
        ticks=[float(position) for position in range(1, positions + 1)],
    )
    y = Axis("accepted share of drafts", low=0.0, high=1.0, as_percent=True)
    chart = Chart(title, " ".join(notes), lines[:_MAX_LINES], x, y)
    table = Table(title, ["line", "position", "accepted", "tokens a step"], rows)
    return Figure("acceptance", title, nature(drafting), notes, chart, table)
