"""Metrics of a running server, explained: each figure with its unit, what is unhealthy about it and what to do.

Reads the server's own `/metrics`. Each instance counts its own requests, and a platform routes each connection to any
of them: several readings tell how many answered, and no figure is made from two of them. A service without an instance
is not asked, as the request would start one. While no lease serves, its fallback is read. Leaves the figures to
bezel.operations.vllm_metrics.
"""

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import ReadRegion, Stack, Wake
from bezel.operations.context import Context
from bezel.operations.results import Result, utc
from bezel.operations.service_use.instances import Instances, instances_of
from bezel.operations.serving.server import DeployedServer
from bezel.operations.serving.serving_fallback import PATH, serving_fallback
from bezel.operations.vllm_metrics.figures import Figure, RequestOutcome, figure_text, figures_of, notes_of, outcomes_of
from bezel.operations.vllm_metrics.sample import MAX_BYTES, Sample, parse, why_not_comparable
from bezel_base.terminal.blocks import Block, Line, Table, mark

_READS = 3
_SECONDS = 30.0
_WAKE_SECONDS = 600.0  # with --wake an instance may have to load its weights first


class MetricsArguments(Arguments):
    """Which stack, and over what time."""

    stack: Stack
    seconds: Annotated[float | None, Reach.INSIDE, Option("SECONDS")] = Field(
        None,
        gt=0,
        le=300,
        description="read twice, this many seconds apart: means and rates of that time "
        "(default: since the server's start)",
    )
    wake: Wake = False
    region: ReadRegion = None


class Metrics(Result):
    """Metrics of one server process."""

    stack: str
    url: str
    is_read: bool = Field(description="whether the server was read; false where no instance is known to run")
    instances: int | None = Field(description="running instances as Cloud Monitoring counts them; null if unknown")
    instances_source: str = Field(description="how the number of instances is known, or why it is not")
    processes_seen: int | None = Field(description="server processes that answered; each counts its own")
    process_started_at: datetime | None = Field(description="start of the process that the figures are of")
    engines: int | None = Field(description="engines of that process, over which the figures are summed")
    interval_seconds: float | None = Field(description="time between the two readings; null: figures since the start")
    figures: tuple[Figure, ...]
    outcomes: tuple[RequestOutcome, ...] = Field(description="requests by how they ended")
    notes: tuple[str, ...] = Field(description="what limits the figures")
    simulated: bool = Field(description="whether the last smoke check met a simulated server")

    def page(self) -> Iterator[Block]:
        """A table of the figures, then what is unhealthy with what to do."""
        head = f"{self.stack}: {self.url}" + (" (simulated server)" if self.simulated else "")
        yield from map(Line, (head, *(f"note: {text}" for text in self.notes)))
        if self.is_read:
            basis = f"of {self.interval_seconds:g} s" if self.interval_seconds else "since the start"
            rows = [
                (figure.title, figure_text(figure), mark(_health(figure)), figure.meaning) for figure in self.figures
            ]
            yield Line(f"means and rates {basis}")
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
            for figure in self.figures:
                if figure.is_unhealthy:
                    yield Line()
                    yield Line(f"{figure.title} is {figure_text(figure)}: unhealthy when {figure.unhealthy_when}.")
                    yield Line(f"  Repair: {figure.repair}")

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 where no server was read."""
        return 0 if self.is_read else 1


def metrics(context: Context, arguments: MetricsArguments) -> Metrics:
    """The metrics of a stack's server.

    Raises:
        UserError: The backend has no such stack, or the server could not be read.
    """
    deployment = context.deployment(arguments.stack).of_one_region(arguments.region)
    fallback = serving_fallback(context, deployment)
    instances = instances_of(context, deployment, None if fallback is None else fallback.service)
    path, remarks = (PATH, (fallback.note,)) if fallback else ("", deployment.region_notes)
    common = {
        "stack": deployment.stack,
        "url": f"{deployment.url}{path}",
        "instances": instances.count,
        "instances_source": instances.why,
        "simulated": deployment.is_simulated,
    }
    if not instances.is_awake and not arguments.wake:
        return Metrics(
            **common,
            is_read=False,
            processes_seen=None,
            process_started_at=None,
            engines=None,
            interval_seconds=None,
            figures=(),
            outcomes=(),
            notes=(asleep(instances), *remarks),
        )
    with DeployedServer(context, deployment, path) as server:
        limit = _WAKE_SECONDS if arguments.wake else _SECONDS
        before = read_samples(server, seconds=limit)
        after: list[Sample] = []
        if arguments.seconds:
            context.show(f"waits {arguments.seconds:g} s for the second reading")
            context.cancelled.wait(arguments.seconds)
            after = read_samples(server, seconds=_SECONDS)
    first, last, notes = choose(before, after)
    processes = {sample.process for sample in (*before, *after)}
    return Metrics(
        **common,
        is_read=True,
        processes_seen=len(processes),
        process_started_at=utc(last.started),
        engines=last.engines,
        interval_seconds=round(last.read_at - first.read_at, 3) if first else None,
        figures=figures_of(last, first, generates=deployment.pooled_at is None, keeps_cache=deployment.keeps_cache),
        outcomes=outcomes_of(last, first),
        notes=(*notes, *notes_of(last, first), *remarks),
    )


def asleep(instances: Instances) -> str:
    """The note on a server that was not asked."""
    state = "no instance runs" if instances.count == 0 else "no instance is known to run"
    return f"{state} ({instances.why}): not asked, as that would start one; --wake asks nevertheless"


def read_samples(server: DeployedServer, *, reads: int = _READS, seconds: float = _SECONDS) -> list[Sample]:
    """Samples of the server's metrics, each on a connection of its own.

    Args:
        server: The deployed server.
        reads: Their number: two processes behind the address show with more readings.
        seconds: Time limit of the first answer; the others have half a minute.

    Raises:
        ServerError: A reading failed, or the server is not vLLM.
        RestError: There is no identity token for it.
    """
    samples = []
    for number in range(reads):
        limit = _SECONDS if number else seconds
        reply = server.ask("/metrics", max_bytes=MAX_BYTES, seconds=limit, fresh=True)
        sample = parse(reply.text, time.monotonic()) if reply.status == 200 else None
        if sample is None:
            raise server.refusal_error("/metrics", reply)
        samples.append(sample)
    return samples


def choose(before: Sequence[Sample], after: Sequence[Sample]) -> tuple[Sample | None, Sample, tuple[str, ...]]:
    """The two samples of one process that figures are made of, and what limits them. Pure.

    Returns:
        The first sample, None where figures are since the start; the last one; notes.
    """
    notes = []
    processes = {sample.process for sample in (*before, *after)}
    if len(processes) > 1:
        notes.append(
            f"{len(processes)} server processes answered at this address (their start times differ), and each counts "
            "its own requests: the figures are of one of them"
        )
    if not after:
        return None, before[-1], tuple(notes)
    starts = {sample.process: sample for sample in reversed(before)}
    pairs = [(starts[sample.process], sample) for sample in after if sample.process in starts]
    if not pairs:
        notes.append("no process answered both times: the figures are since the start of one, not of the interval")
        return None, after[-1], tuple(notes)
    first, last = pairs[-1]
    if why := why_not_comparable(first, last):
        return None, last, (*notes, f"{why}; the figures are since the start, not of the interval")
    return first, last, tuple(notes)


def _health(figure: Figure) -> str:
    return {None: "-", True: "UNHEALTHY", False: "ok"}[figure.is_unhealthy]
