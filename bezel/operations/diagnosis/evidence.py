"""Evidence about a deployed server: log, conditions of the platform, and metrics. A part that cannot be read is a note.

Owns what is read and its bounds. Leaves out what it shows (bezel.operations.diagnosis.rules).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from bezel.diagnosis.platform import Condition, ServiceState
from bezel.leases.clock import unix
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService, Deployment
from bezel.operations.diagnosis.request_log import LoggedRequest, requests_of
from bezel.operations.log_reading import bounds
from bezel.operations.log_reading.bounds import LogsError
from bezel.operations.log_reading.entries import narrow_filter, read_entries, service_filter
from bezel.operations.log_reading.lines import LogLine
from bezel.operations.log_reading.revisions import ReadRevision, read_revisions
from bezel.operations.logs.logs import Logs, recent_lines
from bezel.operations.metrics.metrics import read_samples
from bezel.operations.redaction import clean_text
from bezel.operations.serving.server import DeployedServer
from bezel.operations.status.live_service import read_service
from bezel.operations.vllm_metrics.figures import INSTANCE, Figure, RequestOutcome, figures_of, notes_of, outcomes_of
from bezel.operations.vllm_metrics.sample import Sample
from bezel.operations.vllm_metrics.series import keeps_series, read_series, source_of
from bezel.operations.vllm_metrics.time_range import time_range
from bezel.rest import ApiError
from bezel_base.errors import UserError, one_line

_NOTE = 500
_REQUESTS = 500
_T = TypeVar("_T")


@dataclass(frozen=True)
class Evidence:
    """What is known about a server.

    Attributes:
        lines: Its log, oldest line first, cleaned.
        revisions: The revisions that the lines are of, those with traffic first; () for machines.
        ready: Revision -> time at which the platform found it ready, RFC 3339.
        conditions: Unfulfilled conditions of the service, which are those of its newest revision.
        requests: Its newest requests, oldest first.
        figures: Figures of its metrics since its start, or of its series; () where neither was read.
        outcomes: Requests by how they ended.
        notes: What could not be read, and why.
    """

    lines: tuple[LogLine, ...]
    revisions: tuple[ReadRevision, ...]
    ready: Mapping[str, str]
    conditions: tuple[Condition, ...]
    requests: tuple[LoggedRequest, ...]
    figures: tuple[Figure, ...]
    outcomes: tuple[RequestOutcome, ...]
    notes: tuple[str, ...]


def evidence_of(
    context: Context,
    deployment: Deployment,
    *,
    since: str,
    limit: int,
    server: DeployedServer | None,
    reads_series: bool = False,
) -> Evidence:
    """Read the evidence.

    Args:
        context: The context of the operation.
        deployment: The deployed stack.
        since: Begin of the log.
        limit: Number of lines at most.
        server: The server whose metrics are read; None reads none.
        reads_series: Whether the series of the same time are read instead, where the stack keeps them.

    Raises:
        LogsError: `since` is neither an age nor a time.
    """
    notes: list[str] = []

    def part(what: str, read: Callable[[], _T], otherwise: _T) -> _T:
        try:
            return read()
        except LogsError:
            raise
        except UserError as error:
            notes.append(clean_text(f"{what} could not be read: {one_line(error)}", _NOTE))
            return otherwise

    service = deployment.service
    live = None if service is None else part("the service", lambda: read_service(context, service), None)
    # A lease's service is its gateway; its log is that of the machines.
    revisions = () if deployment.leases else read_revisions(live or {})
    ready: dict[str, str] = {}
    all_logs: list[Logs] = []
    names = [each.name for each in revisions]
    share = -(-limit // max(1, len(names)))
    for name in names:
        if service is not None:
            ready[name] = part(f"revision {name}", partial(_ready_since, context, service, name), "")
    for name in names or [""]:
        read_log = partial(recent_lines, context, deployment, since=since, limit=share, revision=name or None)
        log = part("the log", read_log, None)
        if log is not None and log.is_cut:
            of = f" of {name}" if name else ""
            notes.append(f"the log{of} has more lines since {since}: the newest {len(log.lines)} were read")
        all_logs += [log] if log is not None else []
    lines = [line for read in all_logs for line in read.lines]
    # Refused requests are in the request log as well, with all the others.
    lines = [line for line in lines if line.source != "requests"]
    if len(all_logs) > 1:
        lines.sort(key=lambda line: unix(line.time) or 0.0)
    requests: tuple[LoggedRequest, ...] = ()
    if service is not None:
        requests = part("the request log", lambda: _requests(context, service, since), ())
    state = ServiceState.read(live or {})
    failed = [each for each in (state.terminal, *state.conditions) if each.state == "CONDITION_FAILED"]
    what = "the metrics" if server is not None else "the series"
    read = partial(_read_figures, context, deployment, server, since if reads_series else None)
    read_figures = part(what, read, _Read((), (), ()))
    return Evidence(
        lines=tuple(lines),
        revisions=revisions,
        ready=ready,
        conditions=tuple(dict.fromkeys(failed)),
        requests=requests,
        figures=read_figures.figures,
        outcomes=read_figures.outcomes,
        notes=(*notes, *read_figures.notes),
    )


class _Read(NamedTuple):
    figures: tuple[Figure, ...]
    outcomes: tuple[RequestOutcome, ...]
    notes: tuple[str, ...]


def _read_figures(context: Context, deployment: Deployment, server: DeployedServer | None, since: str | None) -> _Read:
    """The figures of a server since its start; without one those of the series since a time."""
    if server is not None:
        return _figures(deployment, read_samples(server, reads=1)[-1], None, INSTANCE)
    if since is None or not keeps_series(deployment):
        return _Read((), (), ())
    return _figures_of_series(context, deployment, since)


def _figures_of_series(context: Context, deployment: Deployment, since: str) -> _Read:
    """The figures of all servers since a time."""
    served = read_series(context, deployment, time_range(since, context.clock.now()))
    if served.until is None:
        return _Read((), (), served.notes)
    first, last = served.samples()
    return _figures(deployment, last, first, source_of(served.until))


def _figures(deployment: Deployment, last: Sample, first: Sample | None, source: str) -> _Read:
    generates = deployment.pooled_at is None
    figures = figures_of(last, first, generates=generates, keeps_cache=deployment.keeps_cache, source=source)
    return _Read(figures, outcomes_of(last, first), notes_of(last, first))


def _ready_since(context: Context, service: DeployedService, revision: str) -> str:
    """The time at which the platform found a revision ready; "" where it did not, or the revision is gone."""
    try:
        live = context.google.get(f"{context.address('CLOUD_RUN_V2')}{service.id}/revisions/{revision}")
    except ApiError as error:
        if error.status == 404:
            return ""
        raise
    for condition in live.get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("state") == "CONDITION_SUCCEEDED":
            return str(condition.get("lastTransitionTime") or "")
    return ""


def _requests(context: Context, service: DeployedService, since: str) -> tuple[LoggedRequest, ...]:
    """The newest requests of a service, oldest first."""
    begin = bounds.since(since, context.clock.now())
    query = narrow_filter(service_filter(service, (), ("requests",)), since=begin)
    entries = list(islice(read_entries(context, service.project, query), _REQUESTS))
    return tuple(requests_of(entries[::-1]))
