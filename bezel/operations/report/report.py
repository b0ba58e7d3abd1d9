"""Report on a stack: what its servers did in some time, what that cost, and where each figure is from.

Owns which figures a report has and what is missing from it. Traffic, latency and failures are those of the series that
the stack keeps; hours and cost are of billed time. No request is sent to a server. Leaves the page to `html_page`.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, TypeVar

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import Stack
from bezel.operations.bench.files import FileName, new
from bezel.operations.context import Context
from bezel.operations.deployment.deployed_door import door_of
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.keys.use import DoorUse, use_of
from bezel.operations.redaction import clean_text
from bezel.operations.report.days import days_of
from bezel.operations.report.result import Report, Source
from bezel.operations.report.spent import spent_since, sum_hours, sum_usd
from bezel.operations.results import utc
from bezel.operations.service_use.service_metrics import RequestTotal, request_total
from bezel.operations.vllm_metrics import sample as names
from bezel.operations.vllm_metrics.course import course_of, requests_of, whole
from bezel.operations.vllm_metrics.figures import outcomes_of
from bezel.operations.vllm_metrics.latencies import latencies_of
from bezel.operations.vllm_metrics.series import how_to_keep, keeps_series, read_series, source_of
from bezel.operations.vllm_metrics.served import Served
from bezel.operations.vllm_metrics.time_range import TimeRange, time_range
from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError, one_line

_TEXT = 300
_T = TypeVar("_T")


class StackReportArguments(Arguments):
    """Which stack, over what time, and what is written."""

    stack: Stack
    since: Annotated[str, Reach.INSIDE, Option("AGE|TIME")] = Field(
        "7d", max_length=40, description="begin: 24h, 7d, or RFC 3339"
    )
    html: Annotated[FileName | None, Reach.INSIDE] = Field(
        None, description="a new file FILE.html below the project's folder, with charts"
    )


def report(context: Context, arguments: StackReportArguments) -> Report:
    """The report on a stack.

    Raises:
        UserError: The backend has no such stack, the time cannot be asked for, or the file may not be written.
    """
    when = time_range(arguments.since, context.clock.now())
    file = new(context.folder, arguments.html, "--html", ".html") if arguments.html else None
    deployment = context.deployment(arguments.stack)
    gaps: list[str] = []
    with ThreadPoolExecutor(3) as readers:
        asked_cost = readers.submit(spent_since, context, deployment, when.start)
        asked_reached = readers.submit(_platform_requests, context, deployment, when.start)
        asked_use = readers.submit(_part, lambda: _use(context, deployment, when), "use by team", gaps)
        served = _part(lambda: _read_served(context, deployment, when, gaps), "traffic and latency", gaps) or Served(
            when
        )
        spent, reached, use = asked_cost.result(), asked_reached.result(), asked_use.result()
    is_known = served.until is not None
    first, last = served.samples()
    requests, failed = requests_of(served)
    since, until = utc(when.start), utc(when.end)
    if since is None or until is None:
        raise AssertionError("a time has two ends")
    gaps += [f"{each.name}: {each.unknown_because}" for each in spent if each.unknown_because]
    gaps += (reached.unknown_because and [f"requests that reached a service: {reached.unknown_because}"]) or []
    gaps += ["cost is that of instances or machines, without door, gateway, address, samples, storage and network"]
    if deployment.leases:
        gaps.append("leases before the present ones are not included")
    made = Report(
        stack=deployment.stack,
        since=since,
        until=until,
        requests=requests,
        failed=failed,
        reached=reached.number,
        prompt_tokens=whole(served.count(names.PROMPT)),
        generated_tokens=whole(served.count(names.GENERATED)),
        days=days_of(served) if is_known else (),
        latencies=latencies_of(served, generates=deployment.pooled_at is None) if is_known else (),
        outcomes=outcomes_of(last, first) if is_known else (),
        course=course_of(served) if is_known else (),
        hours=sum_hours(spent),
        starts=served.starts + served.restarts if is_known else None,
        usd=sum_usd(spent),
        spent=spent,
        teams=None if use is None else use.teams,
        sources=tuple(_sources(served, use)),
        gaps=tuple(gaps),
        written=None if file is None else str(file.relative_to(context.folder.resolve())),
        simulated=deployment.is_simulated,
    )
    if file is not None:
        from bezel.operations.report.html_page import as_page

        try:
            write_whole(file, as_page(made).encode())
        except OSError as error:
            consequence = f"the page is not written: {error.strerror}."
            repair = "free space, or name a file in a folder that you may write to."
            raise UserError(Problem("--html", arguments.html, consequence, repair)) from None
    return made


def _read_served(context: Context, deployment: Deployment, when: TimeRange, gaps: list[str]) -> Served:
    """What the servers did; nothing of a stack that keeps no series."""
    if not keeps_series(deployment):
        gaps.append(f"traffic and latency: {how_to_keep(deployment.stack)}")
        return Served(when)
    served = read_series(context, deployment, when)
    gaps += [f"traffic and latency: {note}" for note in served.notes]
    return served


def _platform_requests(context: Context, deployment: Deployment, since: float) -> RequestTotal:
    """Requests that reached the services which callers meet; unknown where those of one are."""
    totals = [request_total(context, service, since) for service in deployment.region_services]
    because = next((total.unknown_because for total in totals if total.number is None), "")
    number = None if because or not totals else sum(total.number or 0 for total in totals)
    return RequestTotal(number, because or ("" if totals else "the stack has no service"))


def _use(context: Context, deployment: Deployment, when: TimeRange) -> DoorUse | None:
    """The use by key of a stack with a door, by whole days; None without one."""
    return use_of(context, deployment.stack, when.start) if door_of(deployment) is not None else None


def _part(read: Callable[[], _T], what: str, gaps: list[str]) -> _T | None:
    """A part of the report; one that cannot be read is a gap."""
    try:
        return read()
    except UserError as error:
        gaps.append(f"{what}: {clean_text(one_line(error), _TEXT)}")
        return None


def _sources(served: Served, use: DoorUse | None) -> list[Source]:
    """Where the figures are from."""
    sources = [Source(figures="hours and cost", source="billed time and prices, as the table has them")]
    sources.append(Source(figures="reached the service", source="Cloud Monitoring's request_count, up to 3 min late"))
    if served.until is not None:
        what = "traffic, latency, failures, starts"
        sources.insert(0, Source(figures=what, source=f"{source_of(served.until)}, as the servers counted"))
    if use is not None:
        days = f"{use.first:%Y-%m-%d} to {use.last:%Y-%m-%d}"
        sources.append(Source(figures="use by team", source=f"the door's own counts, whole days UTC: {days}"))
    return sources
