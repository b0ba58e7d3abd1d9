"""Metrics of a stack over some time, of the series that its servers wrote: also where no server runs any more."""

from collections.abc import Mapping
from typing import Any

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.metrics.result import Metrics
from bezel.operations.results import utc
from bezel.operations.vllm_metrics.course import course_of
from bezel.operations.vllm_metrics.figures import figures_of, notes_of, outcomes_of
from bezel.operations.vllm_metrics.latencies import latencies_of
from bezel.operations.vllm_metrics.series import how_to_keep, keeps_series, read_series, source_of
from bezel.operations.vllm_metrics.time_range import TimeRange
from bezel_base.errors import Problem, UserError

DEFAULT = "24h"
"""Time that is read where the instance is gone and no other one is asked for."""


def check_keeps_series(deployment: Deployment, since: str) -> None:
    """Check that a stack keeps series of its servers.

    Raises:
        UserError: It does not.
    """
    if not keeps_series(deployment):
        consequence, _, repair = how_to_keep(deployment.stack).partition(": ")
        raise UserError(Problem("--since", since, f"{consequence}.", f"{repair}."))


def metrics_over_time(context: Context, deployment: Deployment, when: TimeRange, common: Mapping[str, Any]) -> Metrics:
    """The metrics of a stack over some time.

    Args:
        context: The context of the operation.
        deployment: The deployed stack, which keeps series.
        when: The time.
        common: Fields of the result that do not depend on the series; `notes` are shown first.

    Raises:
        UserError: The series could not be read.
    """
    served = read_series(context, deployment, when)
    first, last = served.samples()
    source = source_of(served.until)
    generates = deployment.pooled_at is None
    is_empty = served.until is None
    return Metrics(
        **{name: value for name, value in common.items() if name != "notes"},
        is_read=False,
        source=None if is_empty else "series",
        processes_seen=None,
        process_started_at=None,
        engines=None,
        interval_seconds=when.seconds,
        figures=()
        if is_empty
        else figures_of(last, first, generates=generates, keeps_cache=deployment.keeps_cache, source=source),
        outcomes=() if is_empty else outcomes_of(last, first),
        since=utc(when.start),
        until=utc(served.until),
        servers=max(served.servers, default=None),
        starts=None if is_empty else served.starts + served.restarts,
        latencies=() if is_empty else latencies_of(served, generates=generates),
        course=course_of(served) if not is_empty else (),
        notes=(
            *common.get("notes", ()),
            *((f"no series of {when.line()}: no server wrote in this time, or not yet",) if is_empty else ()),
            *(served.notes if not is_empty else ()),
            *(() if is_empty else notes_of(last, first)),
        ),
    )
