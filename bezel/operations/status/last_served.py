"""Summary of a stack's last day, by the series that it keeps, for a status while none of its servers runs.

Owns when they are read: only where no instance runs, so that a status of a running server costs no query more. Leaves
the reading to bezel.operations.vllm_metrics.series.
"""

from datetime import datetime

from pydantic import Field

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result, utc
from bezel.operations.service_use.service_metrics import reason
from bezel.operations.vllm_metrics import sample as names
from bezel.operations.vllm_metrics.course import course_of, total_of, totals_line
from bezel.operations.vllm_metrics.latencies import latency_of
from bezel.operations.vllm_metrics.series import keeps_series, read_series
from bezel.operations.vllm_metrics.time_range import time_range
from bezel.rest import RestError
from bezel_base.errors import UserError, one_line

_SINCE = "24h"
_FAMILIES = (names.HTTP, names.FINISHED, names.REJECTED, names.PROMPT, names.GENERATED, names.TTFT)
_TEXT = 300


class LastServed(Result):
    """What the servers of a stack did in the last day, while none runs now. A figure that is unknown is null."""

    since: datetime = Field(description="begin of the time")
    until: datetime | None = Field(description="time of the newest sample; null where no server wrote")
    requests: int | None = Field(description="calls of the model that ended")
    failed: int | None = Field(description="those of them that the server failed")
    prompt_tokens: int | None
    generated_tokens: int | None
    ttft_p50: float | None = Field(description="seconds")
    ttft_p99: float | None = Field(description="seconds")
    summary: str = Field(description="the same for people, with its source")
    unknown_because: str | None = Field(description="why nothing is known; null where something is")


def last_served(context: Context, deployment: Deployment) -> LastServed | None:
    """What the servers of a stack did; None of a stack that keeps no series. Never raises for Monitoring's refusals."""
    if not keeps_series(deployment):
        return None
    when = time_range(_SINCE, context.clock.now())
    since = utc(when.start)
    if since is None:
        raise AssertionError("a time has a begin")
    unknown = dict.fromkeys(("requests", "failed", "prompt_tokens", "generated_tokens", "ttft_p50", "ttft_p99"))
    try:
        served = read_series(context, deployment, when, _FAMILIES)
        until, because = utc(served.until), f"no series since {since:%Y-%m-%d %H:%M} UTC"
    except RestError as error:
        until, because = None, reason(error)
    except UserError as error:
        until, because = None, clean_text(one_line(error), _TEXT)
    if until is None:
        return LastServed(since=since, until=None, **unknown, summary=f"unknown ({because})", unknown_because=because)
    course, ttft = course_of(served), latency_of(served, "ttft")
    of_tokens = f"; TTFT p50 {ttft.text('p50')}, p99 {ttft.text('p99')}" if ttft.observations else ""
    part = ", without what wrote none" * served.is_partial
    times = f"since {since:%Y-%m-%d %H:%M}, series until {until:%Y-%m-%d %H:%M} UTC{part}"
    return LastServed(
        since=since,
        until=until,
        requests=total_of(course, "requests"),
        failed=total_of(course, "failed"),
        prompt_tokens=total_of(course, "prompt_tokens"),
        generated_tokens=total_of(course, "generated_tokens"),
        ttft_p50=ttft.p50,
        ttft_p99=ttft.p99,
        summary=f"{totals_line(course)}{of_tokens} ({times})",
        unknown_because=None,
    )
