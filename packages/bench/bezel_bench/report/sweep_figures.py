"""Heat maps of a sweep: throughput with its inferred cells, and the time to the first token."""

from collections.abc import Sequence

from bezel_base.text.counting import format_count
from bezel_bench.report.charts.heat import Box, HeatMap
from bezel_bench.report.figure import Figure, Table
from bezel_bench.report.format import MARKS, STATES, UNKNOWN, number
from bezel_bench.report.load_figures import failure_note
from bezel_bench.report.series import Spot, Subject
from bezel_bench.result.document import Inferred

_METRICS = ("output_tokens_per_second", "requests_per_second", "input_tokens_per_second")
_LATENCY = "ttft_p50"
_FEW = 6  # most columns on half of a page


def grid_figures(subjects: Sequence[Subject]) -> tuple[list[Figure], list[str]]:
    """Return two maps of each server with at least two contexts and two loads; and the reasons for missing ones."""
    figures: list[Figure] = []
    wide = [
        candidate
        for candidate in subjects
        if len(candidate.contexts) > 1 and len({spot.load for spot in candidate.spots}) > 1
    ]
    for place, subject in enumerate(wide, 1):
        end = f"-{place}" if len(wide) > 1 else ""
        figures.append(_map(subject, _metric(subject), f"heat{end}", several=len(wide) > 1))
        if any(spot.value(_LATENCY) is not None for spot in subject.spots):
            figures.append(_map(subject, _LATENCY, f"heat-{_LATENCY.replace('_', '-')}{end}", several=len(wide) > 1))
    return figures, [] if wide else ["Heat map: no server was measured at two contexts and two loads."]


def _metric(subject: Subject) -> str:
    """Return the metric of the sweep's surface, else the first known throughput."""
    inferred = [cell.metric for cell in subject.result.inferred]
    measured = [name for name in _METRICS if any(spot.value(name) is not None for spot in subject.spots)]
    return [*inferred[:1], *measured, _METRICS[0]][0]


def _map(subject: Subject, metric: str, name: str, *, several: bool) -> Figure:
    left_out = {
        cell for finding in subject.result.findings if finding.name == "excluded" for cell in finding.cells
    }  # fmt: skip
    spots = [spot for spot in subject.spots if spot.context is not None and spot.load is not None]
    inferred = [
        inferred_cell
        for inferred_cell in subject.result.inferred
        if inferred_cell.metric == metric and not subject.variant
    ]
    boxes = {
        (inferred_cell.context_tokens, float(inferred_cell.users)): _inferred_box(inferred_cell)
        for inferred_cell in inferred
    }
    boxes |= {(spot.context or 0, spot.load or 0.0): _measured_box(spot, metric, left_out) for spot in spots}
    unit = next((figure.unit for spot in spots if (figure := spot.figure(metric))), "")
    loads = sorted({load for _, load in boxes})
    title = f"{metric} over contexts and users" + (f": {subject.label}" if several else "")
    caption = _caption(spots, inferred, metric, unit)
    if left_out & {cell.id for spot in spots for cell in spot.cells}:
        caption.append("*: measured, but left out of the surface.")
    picture = HeatMap(
        title, " ".join(caption), unit, "users" if spots and spots[0].unit == "users" else "requests/s",
        metric == _LATENCY,
        sorted({context for context, _ in boxes}), loads, boxes,
    )  # fmt: skip
    kind = subject.result.nature + (" and inferred" if inferred else "")
    return Figure(name, title, kind, caption, picture, _table(title, picture), broad=len(loads) > _FEW)


def _caption(spots: list[Spot], inferred: list[Inferred], metric: str, unit: str) -> list[str]:
    ok = sum(spot.state == "ok" for spot in spots)
    counts = {state: sum(spot.state == state for spot in spots) for state in MARKS}
    states = [f"{count} {STATES[state]} ({mark})" for state, mark in MARKS.items() if (count := counts[state])]
    counts_text = ", ".join(
        [f"{format_count(ok, 'cells')} ok", *([f"{len(inferred)} inferred (~)"] if inferred else []), *states]
    )
    caption = [f"{metric}, {unit}." if unit else f"{metric}.", f"{counts_text}."]
    if inferred:
        caption.append("Inferred: on the line, in logarithms, between the measured cells on both sides.")
        if bare := sum(cell.low is None for cell in inferred):
            caption.append(f"{bare} of them (~~) have no range: too few cells show how far they may be off.")
    return [*caption, *failure_note(spots)]


def _measured_box(spot: Spot, metric: str, left_out: set[str]) -> Box:
    where = f"context {spot.context:,}, {spot.load_text}"
    if spot.state != "ok":
        return Box(None, MARKS[spot.state], tooltip=f"{where}: {STATES[spot.state]}: {spot.cells[0].reason}")
    figure = spot.figure(metric)
    if figure is None:
        return Box(None, "·", tooltip=f"{where}: {metric} {UNKNOWN}")
    note = "*" if any(cell.id in left_out for cell in spot.cells) else ""
    return Box(figure.value, tooltip=f"{where}: {number(figure.value)} {figure.unit}", note=note)


def _inferred_box(cell: Inferred) -> Box:
    where = f"context {cell.context_tokens:,}, {format_count(cell.users or 0, 'users')}"
    has_range = cell.low is not None
    span = f"90 % range {number(cell.low)} to {number(cell.high)}" if has_range else f"no range: {cell.why}"
    tooltip = f"{where}: inferred {number(cell.value)}, {cell.how}, {span}"
    return Box(cell.value, "~" if has_range else "~~", inferred=True, tooltip=tooltip)


def _table(title: str, shown: HeatMap) -> Table:
    def cell(context: int, load: float) -> str:
        box = shown.boxes.get((context, load))
        if box is None:
            return "·"
        return f"{box.mark if box.inferred else ''}{number(box.value)}{box.note}" if box.value is not None else box.mark

    rows = [[number(context), *(cell(context, load) for load in shown.columns)] for context in shown.rows]
    marks = ", ".join(f"{mark} {STATES[state]}" for state, mark in MARKS.items())
    note = f"~ inferred, ~~ inferred without a range, {marks}, · not measured"
    return Table(title, [f"context ↓ {shown.columns_title} →", *(number(load) for load in shown.columns)], rows, note)
