"""Evidence about a deployed server: log, conditions of the platform, and metrics. A part that cannot be read is a note.

Owns what is read and its bounds. Leaves out what it shows (bezel.operations.diagnosis.rules).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bezel.errors import UserError, one_line
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.log_reading.bounds import LogsError
from bezel.operations.log_reading.lines import LogLine
from bezel.operations.logs import recent_lines
from bezel.operations.redaction import cleaned
from bezel.operations.serving.metrics import read_samples
from bezel.operations.serving.server import DeployedServer
from bezel.operations.status import read_service
from bezel.operations.vllm_metrics.figures import Figure, Outcome, figures_of, notes_of, outcomes_of
from smoke.platform import Condition, ServiceState

_NOTE = 500
_T = TypeVar("_T")


@dataclass(frozen=True)
class Evidence:
    """What is known about a server.

    Attributes:
        lines: Its log, oldest line first, cleaned.
        revision: Revision that the lines are of, "" for all, and for machines.
        conditions: Unfulfilled conditions of the service.
        figures: Figures of its metrics since its start; () where they were not read.
        outcomes: Requests by how they ended.
        notes: What could not be read, and why.
    """

    lines: tuple[LogLine, ...]
    revision: str
    conditions: tuple[Condition, ...]
    figures: tuple[Figure, ...]
    outcomes: tuple[Outcome, ...]
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
            notes.append(cleaned(f"{what} could not be read: {one_line(error)}", _NOTE))
            return otherwise

    found = part("the log", lambda: recent_lines(context, deployment, since=since, limit=limit), None)
    if found is not None and found.is_cut:
        notes.append(f"the log has more lines since {since}: the newest {len(found.lines)} were read")
    unknown: tuple[Condition, ...] = ()
    conditions = part("the service's conditions", lambda: _conditions(context, deployment), unknown)
    sample = None if server is None else part("the metrics", lambda: read_samples(server, reads=1)[-1], None)
    return Evidence(
        lines=() if found is None else found.lines,
        revision="" if found is None else found.revision or "",
        conditions=conditions,
        figures=() if sample is None else figures_of(sample),
        outcomes=() if sample is None else outcomes_of(sample),
        notes=(*notes, *(() if sample is None else notes_of(sample))),
    )


def _conditions(context: Context, deployment: Deployment) -> tuple[Condition, ...]:
    service = deployment.service
    live = None if service is None else read_service(context, service)
    if live is None:
        return ()
    state = ServiceState.read(live)
    failed = [each for each in (state.terminal, *state.conditions) if each.state == "CONDITION_FAILED"]
    return tuple(dict.fromkeys(failed))
