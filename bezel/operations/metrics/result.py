"""Metrics of a stack's server as a result: figures of an instance now, or of the series that it kept over some time."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from pydantic import Field

from bezel.operations.keys.use import KeyUse, use_table
from bezel.operations.results import Result, format_count
from bezel.operations.vllm_metrics.course import Window, course_lines, totals_line
from bezel.operations.vllm_metrics.figures import Figure, RequestOutcome, figure_text
from bezel.operations.vllm_metrics.latencies import Latency, seconds_text
from bezel_base.terminal.blocks import Block, Line, Table, mark


class Metrics(Result):
    """Metrics of one server process, or of all servers of a stack over some time."""

    stack: str
    url: str
    is_read: bool = Field(description="whether the server was read; false where no instance is known to run")
    source: Literal["instance", "series"] | None = Field(
        description="the server itself, or the series that its stack keeps in Cloud Monitoring; null where neither is"
    )
    instances: int | None = Field(description="running instances as Cloud Monitoring counts them; null if unknown")
    instances_source: str = Field(description="how the number of instances is known, or why it is not")
    processes_seen: int | None = Field(description="server processes that answered; each counts its own")
    process_started_at: datetime | None = Field(description="start of the process that the figures are of")
    engines: int | None = Field(description="engines of that process, over which the figures are summed")
    interval_seconds: float | None = Field(description="time that the figures are of; null: since the start")
    figures: tuple[Figure, ...]
    outcomes: tuple[RequestOutcome, ...] = Field(description="requests by how they ended")
    since: datetime | None = Field(None, description="begin of the time of the series; null for an instance")
    until: datetime | None = Field(None, description="time of the newest sample of the series; null without one")
    servers: int | None = Field(None, description="most servers in one window of the series; null for an instance")
    starts: int | None = Field(None, description="servers that began in the time of the series, restarts included")
    latencies: tuple[Latency, ...] = Field((), description="percentiles over all servers of the series, in seconds")
    course: tuple[Window, ...] = Field((), description="the time of the series in windows, the oldest first")
    notes: tuple[str, ...] = Field(description="what limits the figures")
    simulated: bool = Field(description="whether the last smoke check met a simulated server")
    keys: tuple[KeyUse, ...] = Field((), description="use of each key of the stack's door since midnight, UTC")

    def page(self) -> Iterator[Block]:
        """A table of the figures, then what is unhealthy with what to do."""
        head = f"{self.stack}: {self.url}" + (" (simulated server)" if self.simulated else "")
        yield from map(Line, (head, *(f"note: {text}" for text in self.notes)))
        if self.source is not None:
            yield Line(self._basis())
            yield from (Line(totals_line(self.course)),) if self.course else ()
            rows = [
                (figure.title, figure_text(figure), mark(_health(figure)), figure.meaning) for figure in self.figures
            ]
            yield Table(("figure", "value", "health", "meaning"), rows)
            ended = [
                (
                    f"{item.counted_by} {item.outcome}",
                    item.requests,
                    mark("failed" if item.is_failure else ""),
                    item.meaning,
                )
                for item in self.outcomes
                if item.requests
            ]
            yield from (Line(), Table(("requests", "number", "", "meaning"), ended)) if ended else ()
            yield from self._over_time()
            for figure in self.figures:
                if figure.is_unhealthy:
                    yield Line()
                    yield Line(f"{figure.title} is {figure_text(figure)}: unhealthy when {figure.unhealthy_when}.")
                    yield Line(f"  Repair: {figure.repair}")
        yield from use_table(self.keys)

    def _basis(self) -> str:
        if self.since is None:
            basis = f"of {self.interval_seconds:g} s" if self.interval_seconds else "since the start"
            return f"means and rates {basis}"
        source = next((figure.source for figure in self.figures), "series")
        servers = f"{format_count(self.servers or 0, 'server')} at most, {format_count(self.starts or 0, 'start')}"
        return f"means and rates since {self.since:%Y-%m-%d %H:%M} UTC, {source}: {servers}"

    def _over_time(self) -> Iterator[Block]:
        if self.latencies:
            rows = [
                (
                    each.title,
                    *(each.text(percentile) for percentile in ("p50", "p90", "p99")),
                    seconds_text(each.mean),
                    "unknown" if each.observations is None else each.observations,
                )
                for each in self.latencies
            ]
            yield Line()
            yield Table(("latency", "p50", "p90", "p99", "mean", "observed"), rows)
        if lines := list(course_lines(self.course, generates=any(each.name == "ttft" for each in self.latencies))):
            yield Line()
            yield from (Line(line, is_verbatim=True) for line in lines)

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 where no figures were read."""
        return 0 if self.source is not None else 1


def _health(figure: Figure) -> str:
    return {None: "-", True: "UNHEALTHY", False: "ok"}[figure.is_unhealthy]
