"""The platform's view of a service: its conditions, its revisions, and the last lines of its containers.

Reads only, through the run v2 and logging v2 APIs. Leaves the interpretation to `bezel.diagnosis.diagnosis`.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bezel.diagnosis.revision_traffic import is_gated, shares
from bezel.rest import GoogleClient, RestError, endpoint
from bezel_base.errors import one_line

_LINES = 200
_ANYWHERE = "INGRESS_TRAFFIC_ALL"


@dataclass(frozen=True)
class Condition:
    """One condition of a service or revision in run v2.

    Attributes:
        kind: E.g. `Ready`, `ContainerHealthy`.
        state: `CONDITION_PENDING`, `_RECONCILING`, `_FAILED` or `_SUCCEEDED`.
        reason: The platform's reason of any family, e.g. `HEALTH_CHECK_CONTAINER_ERROR`, or "".
        message: The platform's text.
    """

    kind: str
    state: str
    reason: str = ""
    message: str = ""

    @classmethod
    def read(cls, condition: Mapping[str, Any]) -> "Condition":
        """From the API's JSON."""
        reason = condition.get("revisionReason") or condition.get("reason") or condition.get("executionReason") or ""
        state, message = condition.get("state", "CONDITION_PENDING"), condition.get("message", "")
        return cls(str(condition.get("type", "")), str(state), str(reason), str(message))

    def __str__(self) -> str:
        parts = [self.kind, self.state.removeprefix("CONDITION_").lower(), f"({self.reason})" if self.reason else ""]
        return " ".join(word for word in parts if word) + (f": {self.message}" if self.message else "")


@dataclass(frozen=True)
class ServiceState:
    """Progress of a service towards its requested state at one moment.

    `current`: the platform has seen the requested state. `serving`: names of the revisions with traffic. `gated`:
    a new revision gets no traffic by itself. `inside`: only the project's own networks may send requests.
    """

    created_revision: str
    ready_revision: str
    terminal: Condition
    conditions: tuple[Condition, ...]
    current: bool
    reconciling: bool
    serving: str = ""
    gated: bool = False
    inside: bool = False

    @classmethod
    def read(cls, service: Mapping[str, Any]) -> "ServiceState":
        """From the API's JSON."""
        return cls(
            created_revision=_short(service.get("latestCreatedRevision")),
            ready_revision=_short(service.get("latestReadyRevision")),
            terminal=Condition.read(service.get("terminalCondition") or {"type": "Ready"}),
            conditions=tuple(Condition.read(condition) for condition in service.get("conditions") or ()),
            # int64 is a string in JSON; both may be absent on a service that was never reconciled.
            current=str(service.get("generation", "0")) == str(service.get("observedGeneration", "0")),
            reconciling=bool(service.get("reconciling", False)),
            serving=" and ".join(shares(service)),
            gated=is_gated(service),
            inside=service.get("ingress", _ANYWHERE) != _ANYWHERE,
        )

    @property
    def ready(self) -> bool:
        """Whether the requested state is in service, the newest revision included."""
        return (
            self.current
            and self.terminal.state == "CONDITION_SUCCEEDED"
            and self.created_revision == self.ready_revision != ""
        )

    @property
    def is_settled(self) -> bool:
        """Whether nothing is under way: if it is not ready, waiting will not make it so."""
        ended = self.terminal.state in {"CONDITION_FAILED", "CONDITION_SUCCEEDED"}
        return self.current and not self.reconciling and ended


@dataclass(frozen=True)
class Report:
    """Evidence about a service that does not work: the input of a diagnosis.

    Attributes:
        conditions: The unfulfilled conditions of the service and its newest revision.
        lines: The container's last log lines, oldest first.
        errors: Other errors: of an operation, of a request.
        created: The newest revision, "" where it is not known.
        ready: The newest one that was ready, "" where there was none.
        serving: The one that has the traffic, "" where none has.
        gated: Whether a new revision gets no traffic before it was checked.
    """

    conditions: tuple[Condition, ...] = ()
    lines: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    created: str = ""
    ready: str = ""
    serving: str = ""
    gated: bool = False


def describe_service(client: GoogleClient, service: str) -> dict[str, Any]:
    """The service in the API's description.

    Args:
        client: Client for the request.
        service: `projects/P/locations/L/services/S`.

    Raises:
        RestError: The service cannot be read.
    """
    return client.get(f"{endpoint('CLOUD_RUN_V2')}{service}")


def report(
    client: GoogleClient, service: str, *, errors: tuple[str, ...] = (), sleep: Callable[[float], None] = time.sleep
) -> Report:
    """Collect the platform's evidence; a part that cannot be read becomes a note, as a diagnosis must not fail itself.

    Args:
        client: Client for the requests.
        service: `projects/P/locations/L/services/S`.
        errors: Errors that are known already.
        sleep: Waits; an empty log is read again a few times, because lines take seconds to arrive.
    """
    notes: list[str] = []
    state, conditions = ServiceState.read({}), []
    lines: tuple[str, ...] = ()
    try:
        state = ServiceState.read(describe_service(client, service))
        conditions = [state.terminal, *state.conditions]
        if state.created_revision:
            revision = client.get(f"{endpoint('CLOUD_RUN_V2')}{service}/revisions/{state.created_revision}")
            conditions += [Condition.read(condition) for condition in revision.get("conditions") or ()]
    except (RestError, ValueError) as error:
        notes.append(f"the service's conditions could not be read: {one_line(error)}")
    try:
        for pause in (2.0, 2.0, None):
            lines = log_lines(client, service, state.created_revision)
            if lines or pause is None:
                break
            sleep(pause)
    except (RestError, ValueError) as error:
        notes.append(f"the container's log could not be read: {one_line(error)}")
    failed = [
        condition
        for condition in conditions
        if condition.state != "CONDITION_SUCCEEDED" and (condition.message or condition.reason)
    ]
    return Report(
        tuple(dict.fromkeys(failed)),
        lines,
        errors,
        tuple(notes),
        created=state.created_revision,
        ready=state.ready_revision,
        serving=state.serving,
        gated=state.gated,
    )


def log_lines(client: GoogleClient, service: str, revision: str = "") -> tuple[str, ...]:
    """The last lines that the service's containers and the platform logged, oldest first.

    Raises:
        RestError: The log cannot be read.
    """
    _, project, _, location, _, name = service.split("/")
    labels = {
        "resource.type": "cloud_run_revision",
        "resource.labels.service_name": name,
        "resource.labels.location": location,
        **({"resource.labels.revision_name": revision} if revision else {}),
    }
    response = client.post(
        f"{endpoint('LOGGING')}entries:list",
        {
            "resourceNames": [f"projects/{project}"],
            "filter": " AND ".join(f'{key}="{value}"' for key, value in labels.items()),
            "orderBy": "timestamp desc",
            "pageSize": _LINES,
        },
        idempotent=True,
    )
    # The request log is another stream of the same resource.
    texts = [entry_text(entry) for entry in response.get("entries") or () if "httpRequest" not in entry]
    return tuple(line for text in reversed(texts) for line in text.splitlines() if line.strip())


def entry_text(entry: Mapping[str, Any]) -> str:
    """The text of a log entry: its payload, or the message in it; "" where it has neither."""
    if "textPayload" in entry:
        return str(entry["textPayload"])
    payload = entry.get("jsonPayload") or entry.get("protoPayload") or {}
    status = payload.get("status") or {}
    return str(payload.get("message") or (status.get("message") if isinstance(status, Mapping) else "") or "")


def _short(revision: object) -> str:
    return str(revision or "").rsplit("/", 1)[-1]
