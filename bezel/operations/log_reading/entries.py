"""Entries of Cloud Logging: the filter of a service or a node, bounded reading, and each entry as a plain line.

Owns which entries belong to a deployment and the order of their pages. Texts are raw here: the operation that shows one
cleans it (bezel.operations.redaction).
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from bezel.diagnosis.platform import entry_text
from bezel.diagnosis.start_evidence import ASKED_TO_END
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedLease, DeployedService
from bezel.rest import GoogleClient
from bezel.rest.transport import json_object

Source = Literal["container", "platform", "requests", "console"]
Chosen = Source | Literal["refused", "asked to end"]
"""What is read: a source, of the requests those that Cloud Run refused itself, or of the containers a signal to end."""

SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
_LOGS: Mapping[Source, str] = {
    "platform": "run.googleapis.com%2Fvarlog%2Fsystem",
    "requests": "run.googleapis.com%2Frequests",
}
# vLLM writes its level into its lines, which have no severity for the platform.
_LEVEL = re.compile(r"(?:^|\) |: )(DEBUG|INFO|WARNING|ERROR|CRITICAL)(?=[ :])")
# PyTorch's: the letter, month and day, time, process, place.
_LETTER = re.compile(r"^\[?([IWEF])\d{4} \d\d:\d\d:\d\d\.")
_LETTERS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
PAGE, _MAX_PAGES = 1000, 20


@dataclass(frozen=True)
class LogEntry:
    """One entry. `instance` is the platform's id of an instance, `resource` the revision or the node; "" if unknown.

    An entry of the request log has the `status` and the `url` of its request as well, and in `message` what the
    platform says of it, "" where it says nothing.
    `log` is the entry's log of the platform, such as that of a container's standard error, `region` the service's,
    `container` the name of the container whose output it is.
    """

    id: str
    time: str
    severity: str
    source: Source
    resource: str
    instance: str
    text: str
    status: int | None = None
    url: str = ""
    message: str = ""
    log: str = ""
    region: str = ""
    container: str = ""


@dataclass(frozen=True)
class Page:
    """Entries of one response, the token of the next page ("" for none), and the server's time, unix seconds."""

    entries: tuple[LogEntry, ...]
    token: str
    at: float | None


def quote_value(text: str) -> str:
    """A text as a value of Logging's query language."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_PASSED_PROBES = ('GET /health HTTP/1.1" 200', 'GET /metrics HTTP/1.1" 200')
_NO_PROBES = " AND ".join(f"NOT textPayload:{quote_value(text)}" for text in _PASSED_PROBES)


def service_filter(
    service: DeployedService, revisions: Sequence[str], sources: tuple[Chosen, ...], *, probes: bool = True
) -> str:
    """Entries of a service's containers, of the platform, or of requests; of all revisions where none is named.

    Args:
        service: The service.
        revisions: Names of revisions.
        sources: What is read.
        probes: Whether containers' lines about health checks that passed are read, one each few seconds, and about a
            collector's scrapes.
    """
    terms = [
        'resource.type="cloud_run_revision"',
        f"resource.labels.service_name={quote_value(service.name)}",
        f"resource.labels.location={quote_value(service.location)}",
    ]
    of_revisions = [f"resource.labels.revision_name={quote_value(revision)}" for revision in revisions]
    terms += [f"({' OR '.join(of_revisions)})"] if of_revisions else []
    named = [f"logName:{quote_value(log)}" for source, log in _LOGS.items() if source in sources]
    if "container" in sources:
        others = [f"NOT logName:{quote_value(log)}" for log in _LOGS.values()]
        named.append(f"({' AND '.join([*others, *([] if probes else [_NO_PROBES])])})")
    if "refused" in sources:
        # Only those have a message of the platform beside the request.
        named.append(f"(logName:{quote_value(_LOGS['requests'])} AND httpRequest.status>=400 AND textPayload:*)")
    if "asked to end" in sources:
        named.append(f"textPayload:{quote_value(ASKED_TO_END)}")
    terms += [f"({' OR '.join(named)})"]
    return " AND ".join(terms)


def node_filter(lease: DeployedLease) -> str:
    """Entries of a leased machine: its console, and what its agents log."""
    if lease.back_end == "flex_start_vm":
        # Google's instance_id is a number; the name is a label of the entry.
        name = quote_value(lease.name)
        named = f'(labels."compute.googleapis.com/resource_name"={name} OR resource.labels.instance_id={name})'
        terms = ['resource.type="gce_instance"', named]
    else:
        terms = ['resource.type="tpu_worker"', f"resource.labels.node_id={quote_value(lease.name)}"]
    terms += [f"resource.labels.zone={quote_value(lease.zone)}"] if lease.zone else []
    return " AND ".join(terms)


def narrow_filter(base: str, *, since: str = "", until: str = "", severity: str = "", text: str = "") -> str:
    """A filter with bounds: times are RFC 3339, `severity` a lower bound, `text` a part of the message.

    With a severity, lines of standard error without a level match as well: they may belong to a traceback
    (bezel.operations.log_reading.levels).
    """
    terms = [base]
    terms += [f"timestamp>={quote_value(since)}"] if since else []
    terms += [f"timestamp<={quote_value(until)}"] if until else []
    terms += [f"(textPayload:{quote_value(text)} OR jsonPayload.message:{quote_value(text)})"] if text else []
    if severity:
        levels = "|".join(level for level in SEVERITIES if SEVERITIES.index(level) >= SEVERITIES.index(severity))
        unlevelled = f"(severity=DEFAULT AND NOT logName:{quote_value('%2Fstdout')} AND textPayload:*)"
        terms += [f"(severity>={severity} OR textPayload=~{quote_value(f'(^|[)] |: )({levels})[ :]')} OR {unlevelled})"]
    return " AND ".join(terms)


def read_entries(context: Context, project: str, query: str, *, newest_first: bool = True) -> Iterator[LogEntry]:
    """The entries that match a filter, page by page, 20,000 at most.

    Raises:
        RestError: Cloud Logging refused, or did not answer.
    """
    token = ""
    for _ in range(_MAX_PAGES):
        page = read_page(context, context.google, project, query, newest_first=newest_first, token=token)
        yield from page.entries
        token = page.token
        if not token:
            return


def read_page(
    context: Context,
    client: GoogleClient,
    project: str,
    query: str,
    *,
    newest_first: bool = True,
    token: str = "",
) -> Page:
    """One page of the entries that match a filter, of 1,000 at most.

    Raises:
        RestError: Cloud Logging refused, or did not answer.
    """
    order = "timestamp desc" if newest_first else "timestamp asc"
    body: dict[str, Any] = {"resourceNames": [f"projects/{project}"], "filter": query, "orderBy": order}
    body |= {"pageToken": token} if token else {}
    url = f"{context.address('LOGGING')}entries:list"
    response = client.send("POST", url, json=body | {"pageSize": PAGE}, idempotent=True)
    answer = json_object(response, "POST", url)
    entries = tuple(_entry(row) for row in answer.get("entries") or ())
    return Page(entries, str(answer.get("nextPageToken") or ""), _moment(response.headers.get("date")))


def _moment(date: str | None) -> float | None:
    """Unix seconds of a `Date` header; None where there is none that can be read."""
    try:
        return None if date is None else parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


def level_of(text: str) -> str:
    """The level that vLLM, uvicorn or PyTorch wrote into a line; "" where there is none."""
    if match := _LETTER.match(text):
        return _LETTERS[match[1]]
    match = _LEVEL.search(text[:80])
    return match[1] if match else ""


def _entry(row: Mapping[str, Any]) -> LogEntry:
    resource = row.get("resource") or {}
    labels = resource.get("labels") or {}
    entry_labels = row.get("labels") or {}
    log = str(row.get("logName") or "")
    source: Source = "console" if resource.get("type") != "cloud_run_revision" else "container"
    source = next((name for name, end in _LOGS.items() if log.endswith(end)), source)
    text = message = entry_text(row)
    request = row.get("httpRequest") or {}
    if request:
        text = _request_line(request) + (f" {text}" if text else "")
    elif not text and (payload := row.get("jsonPayload") or row.get("protoPayload")):
        text = json.dumps(payload, ensure_ascii=False)
    return LogEntry(
        id=str(row.get("insertId") or ""),
        time=str(row.get("timestamp") or ""),
        severity=str(row.get("severity") or "") or level_of(text),
        source=source,
        resource=str(labels.get("revision_name") or labels.get("node_id") or labels.get("instance_id") or ""),
        instance=str(entry_labels.get("instanceId") or ""),
        text=text,
        status=int(request["status"]) if request.get("status") else None,
        url=str(request.get("requestUrl") or ""),
        message=message if request else "",
        log=log,
        region=str(labels.get("location") or "") if resource.get("type") == "cloud_run_revision" else "",
        container=str(entry_labels.get("container_name") or "") if source == "container" else "",
    )


def _request_line(request: Mapping[str, Any]) -> str:
    """A request without its parameters, which may hold a key."""
    url = str(request.get("requestUrl") or "").partition("?")[0]
    parts = (request.get("requestMethod"), url, request.get("status"), request.get("latency"))
    return " ".join(str(word) for word in parts if word)
