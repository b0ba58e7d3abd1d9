"""Page about a stack: load, latencies, instances, cost and lease, of one moment.

Status and metrics are read at the same time. A part that cannot be read is a note; the other one is shown. A service
without an instance is not asked, as the request would start one: where its stack keeps series, the page has their
figures and says so. Leaves the refresh to bezel.cli.watch.
"""

import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import ReadRegion, Stack, Wake
from bezel.operations.context import Context
from bezel.operations.file_settings import file_rows
from bezel.operations.metrics.metrics import MetricsArguments, metrics
from bezel.operations.metrics.result import Metrics
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.status.regions import RegionStatus
from bezel.operations.status.status import StackStatus, newest_row, outside_rows, stack_status, time_left
from bezel.operations.status.verdict import AS_DECLARED, verdict_text
from bezel.operations.vllm_metrics.figures import Figure, figure_text
from bezel.planner.base.money import round_usd
from bezel_base.errors import UserError, one_line

WIDTH = 80
_NOTE = 300
# Names of the figures, in the page's order, two in a row.
_FIGURES = (
    *("running", "waiting"),
    *("kv_cache_usage", "prefix_cache_hit_rate"),
    *("ttft", "tpot"),
    *("generation_throughput", "prompt_throughput"),
    *("requests_rate", "acceptance_rate"),
)
_BAR = 20
_T = TypeVar("_T")


class WatchArguments(Arguments):
    """Which stack, and how often."""

    stack: Stack
    interval: Annotated[float, Reach.INSIDE, Option("SECONDS")] = Field(
        5.0, ge=1, le=300, description="seconds that rates and means are of"
    )
    wake: Wake = False
    region: ReadRegion = None


class Watch(Result):
    """What a stack does and costs at a moment."""

    stack: str
    at: datetime = Field(description="time of the page")
    status: StackStatus | None = Field(description="state of the stack; null where it could not be read")
    metrics: Metrics | None = Field(description="metrics of the server; null where they could not be read")
    notes: tuple[str, ...] = Field(description="what could not be read, and why")

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 unless `status` ends with 0 for the stack, and its server, where one runs, was read."""
        return 0 if self.status is not None and self.status.verdict in AS_DECLARED and self.metrics is not None else 1

    def text(self) -> str:
        """The page, of at most 80 columns."""
        return "\n".join(self.lines()) + "\n"

    def lines(self) -> list[str]:
        """Lines of at most 80 columns; a figure that is unhealthy ends with `!`."""
        head = f"{self.stack}  {self.at:%Y-%m-%d %H:%M:%S} UTC"
        if self.status is not None:
            head += f"  {verdict_text(self.status.verdict, None)}"
            head += "  (simulated server)" if self.status.simulated else ""
        page = [head, *self._of_status(), "", *self._of_metrics()]
        for note in self.notes:
            page += _wrap(f"note: {note}")
        if self.status is not None:
            for name, text in (*outside_rows(self.status), *file_rows(self.stack, self.status.file)):
                page += _wrap(f"{name}: {text}") if name not in {"repair", "file"} else ()
        return [line[:WIDTH].rstrip() for line in page]

    def _of_status(self) -> list[str]:
        status = self.status
        if status is None:
            return []
        lines = [line for reason in status.reasons for line in _wrap(f"because: {reason}")]
        traffic = ", ".join(f"{each.name} {each.percent}%" for each in status.revisions)
        rows = [("revision", traffic)] if traffic and not (status.leases or status.regions) else []
        rows += [] if status.regions else newest_row(status)
        rows += [(each.region, _region_text(each)) for each in status.regions]
        rows += [("requests", status.calls.line())] if status.calls is not None else []
        if status.instances is not None:
            rows.append(("instances", status.instances.line()))
        rows += [
            (f"lease {lease.name}", f"{lease.state}, {lease.zone or 'no zone yet'}, {time_left(lease)}")
            for lease in status.leases
        ]
        hourly, so_far = status.usd_per_hour, status.usd_so_far
        price = "unknown" if hourly is None else f"{round_usd(hourly, 4)} USD/h with everything running"
        rows.append(("price", price))
        rows.append(("cost so far", "unknown" if so_far is None else f"{round_usd(so_far, 4)} USD"))
        return lines + [line for name, value in rows for line in _wrap(f"{name:<12}  {value}")]

    def _of_metrics(self) -> list[str]:
        if self.metrics is None:
            return []
        if self.metrics.source is None:
            return [line for note in self.metrics.notes for line in _wrap(note)]
        figures = {figure.name: figure for figure in self.metrics.figures}
        cells = [f"{_cell(figures[name]):<40}" for name in _FIGURES if name in figures]
        source = next((figure.source for figure in self.metrics.figures if self.metrics.source == "series"), "")
        since = self.metrics.since
        lines = [f"of {since:%Y-%m-%d %H:%M} UTC and later, {source}"] if source and since else []
        lines += ["".join(cells[at : at + 2]) for at in range(0, len(cells), 2)]
        usage = figures.get("kv_cache_usage")
        if usage is not None and usage.value is not None:
            filled = round(min(1.0, max(0.0, usage.value)) * _BAR)
            lines.append(f"{'KV cache':<19}[{'#' * filled}{'.' * (_BAR - filled)}]")
        unhealthy = [figure for figure in self.metrics.figures if figure.is_unhealthy]
        for figure in unhealthy:
            lines += _wrap(f"! {figure.title}: {figure.repair}")
        return lines + [line for note in self.metrics.notes for line in _wrap(f"note: {note}")]


def watch(context: Context, arguments: WatchArguments, earlier: Watch | None = None) -> Watch:
    """What a stack does and costs at the moment; takes `interval` seconds.

    Args:
        context: The context of the operation.
        arguments: Its arguments.
        earlier: The page before: series of a stack without a server are not read for each page.

    Raises:
        UserError: The backend has no such stack.
    """
    deployment = context.deployment(arguments.stack)
    deployment.of_one_region(arguments.region)  # an unknown one is refused, not a part that cannot be read
    metrics_arguments = MetricsArguments(
        stack=arguments.stack, seconds=arguments.interval, wake=arguments.wake, region=arguments.region
    )
    notes: list[str] = []
    before = None if earlier is None else earlier.metrics
    with ThreadPoolExecutor(2) as readers:
        of_status = readers.submit(
            _part, lambda: stack_status(context, deployment, reads_series=False), "the status", notes
        )
        of_metrics = readers.submit(_part, lambda: metrics(context, metrics_arguments, before), "the metrics", notes)
        read_status, read_metrics = of_status.result(), of_metrics.result()
    at = datetime.fromtimestamp(int(context.clock.now()), UTC)
    return Watch(stack=deployment.stack, at=at, status=read_status, metrics=read_metrics, notes=tuple(notes))


def _part(read: Callable[[], _T], what: str, notes: list[str]) -> _T | None:
    try:
        return read()
    except UserError as error:
        notes.append(clean_text(f"{what} could not be read: {one_line(error)}", _NOTE))
        return None


def _region_text(region: RegionStatus) -> str:
    """The verdict of a region, its requests and its instances."""
    calls, instances = region.calls, region.instances
    texts = [verdict_text(region.verdict, None)]
    texts += [] if calls is None else [f"{calls.failed} of {calls.number} requests failed"]
    count = None if instances is None else instances.count
    texts.append("running instances unknown" if count is None else f"{count} running")
    return ", ".join(texts)


def _cell(figure: Figure) -> str:
    return f"{figure.title:<19}{figure_text(figure)}{' !' if figure.is_unhealthy else ''}"[:39]


def _wrap(text: str) -> list[str]:
    """A text in lines of the page's width."""
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", drop_whitespace=True, break_on_hyphens=False)
