"""Evidence about a deployed server: log, conditions of the platform, and metrics. A part that cannot be read is a note.

Owns what is read and its bounds. Leaves out what it shows (bezel.operations.diagnosis.rules).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

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
from bezel.operations.vllm_metrics.figures import Figure, RequestOutcome, figures_of, notes_of, outcomes_of
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
        figures: Figures of its metrics since its start; () where they were not read.
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
    context: Context, deployment: Deployment, *, since: str, limit: int, server: DeployedServer | None
) -> Evidence:
    """Read the evidence.

    Args:
        context: The context of the operation.
        deployment: The deployed stack.
        since: Begin of the log.
        limit: Number of lines at most.
        server: The server whose metrics are read; None reads none.

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
        read = part("the log", read_log, None)
        if read is not None and read.is_cut:
            of = f" of {name}" if name else ""
            notes.append(f"the log{of} has more lines since {since}: the newest {len(read.lines)} were read")
        all_logs += [read] if read is not None else []
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
    sample = None if server is None else part("the metrics", lambda: read_samples(server, reads=1)[-1], None)
    return Evidence(
        lines=tuple(lines),
        revisions=revisions,
        ready=ready,
        conditions=tuple(dict.fromkeys(failed)),
        requests=requests,
        figures=()
        if sample is None
        else figures_of(sample, None, generates=deployment.pooled_at is None, keeps_cache=deployment.keeps_cache),
        outcomes=() if sample is None else outcomes_of(sample),
        notes=(*notes, *(() if sample is None else notes_of(sample))),
    )


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
