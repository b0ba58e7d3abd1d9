"""Results as blocks of text: one each for a run, a sweep, a search.

Leaves out the figures (`bezel_bench.metrics`). A figure that is unknown is left out or shown as "-".
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bezel_base.terminal.blocks import Block, Grid, Line, Role, Table, mark
from bezel_base.text.counting import format_count
from bezel_bench.commands.render.platform_row import platform_row, platform_rows
from bezel_bench.load.plan import GENERATING
from bezel_bench.result.document import Cell, ClientFigures, Inferred, Result, StageFigures, UrlFigures
from bezel_bench.result.records import Distribution, Metric
from bezel_bench.result.sample import CANCELLED

_RATES = (
    *("offered_requests_per_second", "requests_per_second", "output_tokens_per_second", "input_tokens_per_second"),
    *("goodput", "cached_share", "acceptance_length", "cost_per_million_output_tokens"),
)
_LATENCIES = ("ttft", "tpot", "itl", "e2e", "schedule_delay")
_OF_LOADS = ("offered_requests_per_second", "requests_per_second", "output_tokens_per_second")
_OF_RATES = ("ttft", "tpot", "e2e")
_PERCENTILES = ("p50", "p90", "p99", "max")
_CHECK_STATES = {"passed": "ok", "failed": "FAILED", "suspect": "suspect", "unknown": "unknown"}
_LEGEND = (
    "~ inferred; ~~ inferred, no range; x failed; - impossible; q queueing; c limited by the client; b busy machine; ? "
    "not requested; * measured, left out of the surface"
)
_CELL_STATES = {
    "failed": "x",
    "infeasible": "-",
    "queueing": "q",
    "client_limited": "c",
    "busy_machine": "b",
    "not_asked": "?",
}
_CONCLUSIONS = ("surface", "knee", "no_plateau", "excluded")


def run_blocks(result: Result) -> Iterator[Block]:
    """The result of a run: each cell with its figures, latencies and checks."""
    yield _heading(result)
    for cell in result.cells:
        yield Line()
        yield from _cell(cell)
    yield from (Line(), *(Line(f"  {finding.text}") for finding in result.findings)) if result.findings else ()
    yield from (Line(f"  note: {text}") for text in result.notes)


def grid_blocks(result: Result, metric: str) -> Iterator[Block]:
    """The result of a sweep: contexts down, users across, each figure with its kind."""
    left_out = {cell for finding in result.findings if finding.name == "excluded" for cell in finding.cells}
    shown = {(point.context_tokens, point.users): _estimate_text(point) for point in result.inferred}
    shown |= {(cell.context_tokens or 0, cell.users or 0): _grid_cell(cell, metric, left_out) for cell in result.cells}
    contexts, users = sorted({context for context, _ in shown}), sorted({count for _, count in shown})
    rows = [(context, *(shown.get((context, count), "") for count in users)) for context in contexts]
    # Each reason why cells were not measured, once.
    reasons = Counter(
        cell.reason.removeprefix("not requested: ")
        for cell in result.cells
        if cell.state in ("infeasible", "queueing", "not_asked") and not cell.requests
    )
    yield _heading(result)
    yield Line(f"{metric}, contexts down, users across")
    yield Line()
    yield Grid(("", *users), rows)
    yield from map(Line, ("", _LEGEND, ""))
    notes = [
        *(finding.text for name in _CONCLUSIONS for finding in result.findings if finding.name == name),
        *(f"not measured, {format_count(count, 'cells')}: {reason}" for reason, count in reasons.items()),
        *platform_rows(result.cells),
        *result.notes,
    ]
    yield from (Line(f"  {text}") for text in notes)


def search_blocks(result: Result, figures: Sequence[str]) -> Iterator[Block]:
    """The result of a search or a comparison: one row a cell with these figures, the conclusions."""
    rows = [(cell.id, mark(cell.state), *(_number(cell.value(name)) for name in figures)) for cell in result.cells]
    yield _heading(result)
    yield Line("latencies in ms")
    yield Line()
    yield Table(("cell", "state", *figures), rows)
    yield Line()
    yield from _conclusions(result)


def rate_blocks(result: Result) -> Iterator[Block]:
    """The result of loads at several rates: one row a load with its percentiles, the conclusion."""
    rows = [
        (
            f"{cell.rate:g}/s" if cell.rate else format_count(cell.users or 0, "users"),
            mark(cell.state),
            *(_number(cell.value(name)) for name in _OF_LOADS),
            *(" / ".join(_number(cell.value(f"{name}_{p}")) for p in ("p50", "p90", "p99")) for name in _OF_RATES),
        )
        for cell in result.cells
    ]
    yield _heading(result)
    yield Line("requests/s; p50 / p90 / p99 in ms, those of a rate from the planned instant")
    yield Line()
    yield Table(("load", "state", "offered", "completed", "tokens/s", *_OF_RATES), rows)
    yield Line()
    yield from _conclusions(result)


def _conclusions(result: Result) -> Iterator[Line]:
    reasons = [f"{cell.id}: {cell.reason}" for cell in result.cells if cell.reason]
    findings = (finding.text for finding in result.findings)
    notes = [*reasons, *platform_rows(result.cells), *findings, *result.notes]
    yield from (Line(f"  {text}") for text in notes)


def _heading(result: Result) -> Line:
    kind = " (simulated: no figure describes hardware)" if result.nature == "simulated" else ""
    return Line(f"{result.manifest.title}, {result.manifest.url}{kind}", Role.HEADING)


def _cell(cell: Cell) -> Iterator[Line]:
    load = (
        format_count(cell.users, "users") if cell.users else f"{cell.rate:g} requests/s" if cell.rate else cell.pattern
    )
    seconds = "" if cell.seconds is None else f", {format_count(cell.requests, 'requests')} in {cell.seconds:.1f} s"
    state = cell.state.upper() if cell.state != "ok" else "ok"
    yield Line(f"{cell.id}: {state} ({load}, {_sizes(cell)}{seconds})", mark(state).role)
    if cell.reason:
        yield Line(f"  why: {cell.reason}")
    failures = ", ".join(f"{kind}: {count}" for kind, count in sorted(cell.failures.items()) if kind != CANCELLED)
    if failures:
        yield Line(f"  failed: {failures} (in no latency)")
    if cell.cancellations:
        yield Line(f"  cancelled, as planned: {format_count(cell.cancellations, 'requests')} (in no latency)")
    if cell.client and cell.client.waited:
        waited = format_count(cell.client.waited, "requests")
        yield Line(f"  waited: {waited}, until fewer were under way (--max-concurrency): each latency holds that wait")
    yield from _figures(cell.metrics, cell.distributions)
    yield from _parts(cell)
    if cell.window:
        yield Line(f"  counted: {cell.window.begins:.1f} to {cell.window.ends:.1f} s: {cell.window.rule}")
    if cell.client and cell.metrics.get("ttft_p50") and cell.metrics["ttft_p50"].value is not None:
        yield Line(f"  {_client_part(cell.client)}")
    if cell.platform_series:
        yield Line(f"  {platform_row(cell.platform_series)}")
    for check in cell.checks:
        yield Line(f"  {check.name}: {_CHECK_STATES[check.state]}: {check.text}")


def _parts(cell: Cell) -> Iterator[Line]:
    """Return the lines of stages and of addresses."""
    # Users send when they are ready: nothing is due in a closed loop.
    closed = bool(cell.load and cell.load["pattern"].get("of") == "users")
    unit, word = ("users", "sent") if closed else ("requests/s", "due")
    for number, stage in enumerate(cell.stages, 1):
        sent = f"{format_count(stage.requests, 'requests')} {word}{_failures_of(stage)}"
        span = f"{stage.begins:.1f} to {stage.ends:.1f} s"
        yield Line(f"  stage {number}: {format_count(stage.level, unit)}, {span}, {sent}")
        yield from _figures(stage.metrics, stage.distributions)
    for part in cell.urls:
        yield Line(f"  {part.url}: {part.share:.0%}, {format_count(part.requests, 'requests')}{_failures_of(part)}")
        yield from _figures(part.metrics, part.distributions)


def _failures_of(part: StageFigures | UrlFigures) -> str:
    counts = {"failed": part.failed - part.cancelled, CANCELLED: part.cancelled}
    return "".join(f", {count} {kind}" for kind, count in counts.items() if count)


def _client_part(client: ClientFigures) -> str:
    if client.ttft_part is None:
        return "client's part of the ttft: not judged, as no request has the kernel's stamps; judged by its loop's lag"
    part = client.ttft_part
    p99 = "" if part.p99 is None else f", p99 {part.p99:.2g}"
    stamped = format_count(part.n, "requests")
    return f"client's part of the ttft, ms: p50 {part.p50:.2g}{p99}, at most {part.max:.2g} ({stamped} stamped)"


def _sizes(cell: Cell) -> str:
    """Return the requested lengths of prompts and responses; a length that is not one number by where it comes from."""
    plan = (cell.load or {}).get("prompts", {})
    drawn = "drawn" if cell.prompts == "lengths" else "as in the file"
    prompt = f"{cell.context_tokens}" if cell.context_tokens is not None else drawn
    if cell.load and cell.load["target"]["endpoint"] not in GENERATING:
        return f"{prompt} tokens, no response tokens"
    output = f"{cell.output_tokens}" if cell.output_tokens is not None else plan.get("output_lengths") or drawn
    return f"{prompt} + {output} tokens"


def _figures(metrics: Mapping[str, Metric], distributions: Mapping[str, Distribution]) -> Iterator[Line]:
    for name in _RATES:
        metric = metrics.get(name)
        if metric is not None and metric.value is not None:
            has_interval = metric.low is not None and metric.high is not None
            interval = f"  {metric.low:,.4g} to {metric.high:,.4g}" if has_interval else ""
            yield Line(f"  {name:32}{_number(metric.value):>12} {metric.unit}{interval}")
    rows = [(name, distributions[name]) for name in _LATENCIES if name in distributions]
    if rows:
        yield Line(f"  {'ms':16}" + "".join(f"{name:>12}" for name in (*_PERCENTILES, "n")))
    for name, spread in rows:
        values = "".join(f"{_number(getattr(spread, percentile)):>12}" for percentile in _PERCENTILES)
        yield Line(f"  {name:16}{values}{spread.n:>12}")


def _grid_cell(cell: Cell, metric: str, left_out: set[str]) -> str:
    value = cell.value(metric)
    if cell.state != "ok" or value is None:
        return _CELL_STATES.get(cell.state, "x")
    return f"{_short(value)}{'*' if cell.id in left_out else ''}"


def _estimate_text(point: Inferred) -> str:
    return f"{'~~' if point.low is None else '~'}{_short(point.value)}"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:,.4g}"
