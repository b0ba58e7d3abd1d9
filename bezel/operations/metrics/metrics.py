"""Metrics of a running server, explained: each figure with its unit, what is unhealthy about it and what to do.

Reads the server's own `/metrics`. Each instance counts its own requests, and a platform routes each connection to any
of them: several readings tell how many answered, and no figure is made from two of them. A service without an instance
is not asked, as the request would start one: where its stack keeps series, they tell what it did before. While no lease
serves, its fallback is read. Leaves the figures to bezel.operations.vllm_metrics.
"""

import time
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import ReadRegion, Stack, Wake
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.keys.use import use_of_today
from bezel.operations.metrics.over_time import DEFAULT, check_keeps_series, metrics_over_time
from bezel.operations.metrics.result import Metrics
from bezel.operations.results import utc
from bezel.operations.service_use.instances import Instances, instances_of
from bezel.operations.serving.server import DeployedServer
from bezel.operations.serving.serving_fallback import PATH, ServingFallback, serving_fallback
from bezel.operations.status.status import lease_status, may_serve
from bezel.operations.vllm_metrics.figures import figures_of, notes_of, outcomes_of
from bezel.operations.vllm_metrics.sample import MAX_BYTES, Sample, parse, why_not_comparable
from bezel.operations.vllm_metrics.series import keeps_series
from bezel.operations.vllm_metrics.time_range import TimeRange, time_range
from bezel_base.errors import Problem, UserError

_READS = 3
_SECONDS = 30.0
_SERIES_SECONDS = 60.0  # a page that is refreshed reads series again after this: reads are billed, samples come late
_WAKE_SECONDS = 600.0  # with --wake an instance may have to load its weights first


class MetricsArguments(Arguments):
    """Which stack, and over what time."""

    stack: Stack
    seconds: Annotated[float | None, Reach.INSIDE, Option("SECONDS")] = Field(
        None,
        gt=0,
        le=300,
        description="read twice, this many seconds apart: means and rates of that time (default: since its start)",
    )
    since: Annotated[str | None, Reach.INSIDE, Option("AGE|TIME")] = Field(
        None,
        max_length=40,
        description="all servers since then, from kept series: 1h, 7d, or RFC 3339",
    )
    wake: Wake = False
    region: ReadRegion = None


def metrics(context: Context, arguments: MetricsArguments, earlier: Metrics | None = None) -> Metrics:
    """The metrics of a stack's server; with `since` those of all its servers over that time.

    Args:
        context: The context of the operation.
        arguments: Its arguments.
        earlier: An earlier result: series that were read less than a minute ago are not read again.

    Raises:
        UserError: The backend has no such stack, or the server or the series could not be read.
    """
    when = _time_of(arguments, context.clock.now())
    whole = context.deployment(arguments.stack)
    deployment = whole.of_one_region(arguments.region)
    if when is not None:
        return _of_past(context, deployment if arguments.region else whole, arguments.since or DEFAULT, when)
    fallback = serving_fallback(context, deployment)
    instances = instances_of(context, deployment, None if fallback is None else fallback.service)
    path, remarks = (PATH, (fallback.note,)) if fallback else ("", deployment.region_notes)
    keys, unread = use_of_today(context, deployment)
    remarks = (*remarks, *unread)
    common: dict[str, Any] = {
        "stack": deployment.stack,
        "url": f"{deployment.url}{path}",
        "instances": instances.count,
        "instances_source": instances.why,
        "simulated": deployment.is_simulated,
        "keys": keys,
    }
    gone = _why_gone(context, deployment, instances, fallback)
    if gone and not arguments.wake:
        notes = (gone, *remarks)
        if keeps_series(deployment):
            when = time_range(DEFAULT, context.clock.now())
            if earlier is not None and when.end - _end_of(earlier) < _SERIES_SECONDS:
                return earlier.model_copy(update=common)
            return metrics_over_time(context, deployment, when, {**common, "notes": notes})
        return Metrics(
            **common,
            is_read=False,
            source=None,
            processes_seen=None,
            process_started_at=None,
            engines=None,
            interval_seconds=None,
            figures=(),
            outcomes=(),
            notes=notes,
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
        source="instance",
        processes_seen=len(processes),
        process_started_at=utc(last.started),
        engines=last.engines,
        interval_seconds=round(last.read_at - first.read_at, 3) if first else None,
        figures=figures_of(last, first, generates=deployment.pooled_at is None, keeps_cache=deployment.keeps_cache),
        outcomes=outcomes_of(last, first),
        notes=(*notes, *notes_of(last, first), *remarks),
    )


def _why_gone(context: Context, deployment: Deployment, instances: Instances, fallback: ServingFallback | None) -> str:
    """Why no server is asked; "" where one is. Leases are looked at where series can tell in their place."""
    if not instances.is_awake:
        return asleep(instances)
    leases = deployment.leases if keeps_series(deployment) and fallback is None else ()
    if not leases or any(may_serve(lease_status(context, lease)) for lease in leases):
        return ""
    return "no lease serves: no machine is asked"


def _end_of(earlier: Metrics) -> float:
    """The end of the time of a result's series, Unix seconds; 0 without series."""
    return earlier.course[-1].ends_at.timestamp() if earlier.course else 0.0


def _time_of(arguments: MetricsArguments, now: float) -> TimeRange | None:
    """The time of the past that is asked for; None for the present.

    Raises:
        UserError: It cannot be asked for, or others of the arguments are about the present.
    """
    if arguments.since is None:
        return None
    when = time_range(arguments.since, now)
    others = [f"--{name}" for name, is_set in (("seconds", arguments.seconds), ("wake", arguments.wake)) if is_set]
    if others:
        consequence = f"it asks no server, so that {' and '.join(others)} cannot hold."
        repair = f"leave out {' and '.join(others)}, or --since."
        raise UserError(Problem("--since", arguments.since, consequence, repair))
    return when


def _of_past(context: Context, deployment: Deployment, since: str, when: TimeRange) -> Metrics:
    """The metrics of the series of a time."""
    check_keeps_series(deployment, since)
    fields = {"stack": deployment.stack, "url": deployment.url, "simulated": deployment.is_simulated}
    unasked = {"instances": None, "instances_source": "not asked: the figures are of the past"}
    return metrics_over_time(context, deployment, when, {**fields, **unasked, "notes": deployment.region_notes})


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
