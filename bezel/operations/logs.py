"""Logs of a deployment: its containers, the platform, requests, and the consoles of leased machines.

Owns the choice of the log, the bounds in lines, bytes and time, and pages. Every line is cleaned: no control character,
no credential, no line longer than a screen or two. Nothing in a log is interpreted.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from pydantic import Field

from bezel.errors import Problem
from bezel.leases.clock import unix
from bezel.leases.inventory import back_end_of
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedLease, Deployment
from bezel.operations.log_reading import bounds
from bezel.operations.log_reading.bounds import LogsError
from bezel.operations.log_reading.entries import (
    SEVERITIES,
    Entry,
    Source,
    level_of,
    narrowed,
    node_filter,
    read_entries,
    service_filter,
)
from bezel.operations.log_reading.following import further_entries
from bezel.operations.log_reading.lines import LogLine, line_text, lines_of
from bezel.operations.results import Arguments, Result
from bezel.operations.status import read_service
from bezel.rest import ApiError
from bezel.text.shell import quoted

Severity = Literal["DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"]

ANY_REVISION = "all"
_MAX_BYTES = 256 * 1024
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


class LogsArguments(Arguments):
    """Which log, and how much of it."""

    stack: str = Field(description="name of the stack")
    source: Source | None = Field(
        None,
        description="container: what the service's containers print; platform: Cloud Run about them; requests: its "
        "request log; console: of leased machines. By default container and platform, and of leases the console",
    )
    revision: str | None = Field(
        None, max_length=63, description="name of a revision, or `all`; the newest one by default"
    )
    node: str | None = Field(None, max_length=63, description="name of a leased machine; all of the stack by default")
    severity: Severity | None = Field(None, description="least severity, of the platform or as vLLM writes it")
    text: str | None = Field(None, min_length=1, max_length=500, description="part of the message, in any case")
    since: str = Field("1h", max_length=40, description="age, e.g. 30s, 10m, 2h, 3d, or a time in RFC 3339")
    limit: int = Field(200, ge=1, le=5000, description="number of lines at most, the newest ones")
    page: str | None = Field(None, max_length=60, description="page of an earlier result, for older lines")
    follow: bool = Field(False, description="wait for further lines until the deadline")
    deadline: float = Field(300.0, gt=0, le=3600, description="end of `follow`, in seconds")


class Logs(Result):
    """Lines of a log, oldest first."""

    stack: str
    revision: str | None = Field(description="revision that the lines are of; null for all, and for machines")
    lines: tuple[LogLine, ...]
    is_cut: bool = Field(description="whether there are older lines, or more than may be shown")
    older: str | None = Field(description="`page` for the lines before these; null where there are none")
    is_followed: bool = Field(description="whether further lines were awaited")
    notes: tuple[str, ...]

    def text(self) -> str:
        """The lines, and how to get older ones."""
        shown = [] if self.is_followed else [line_text(line) for line in self.lines]
        shown += [f"note: {text}" for text in self.notes]
        if not self.lines:
            shown.append("no lines")
        if self.older:
            shown.append(f"older lines: --page '{self.older}'")
        return "\n".join(shown) + "\n"


def logs(context: Context, arguments: LogsArguments) -> Logs:
    """The newest lines of a stack's log, oldest first.

    Raises:
        UserError: An argument fits no log of the stack, or Google could not be asked.
    """
    deployment = context.deployment(arguments.stack)
    since = bounds.since(arguments.since, context.clock.now())
    until, skipped = bounds.page(arguments.page)
    leases = _leases(deployment, arguments)
    severity, text = arguments.severity or "", arguments.text or ""
    if leases and arguments.follow:
        raise LogsError(_not_followed())
    if leases and arguments.revision is not None:
        repair = "leave it out, or choose --source container: the gateway's log."
        raise LogsError(Problem("--revision", arguments.revision, "a machine's console has no revisions.", repair))
    if leases:
        project, query, revision = "", "", ""
        entries = _console(context, leases, arguments, since, until)
    else:
        project, query, revision = _service_query(context, deployment, arguments)
        bounded = narrowed(query, since=since, until=until, severity=severity, text=text)
        entries = read_entries(context, project, bounded)
    newest, is_cut = _bounded(_after_page(entries, until, skipped), arguments.limit)
    result = Logs(
        stack=deployment.stack,
        revision=revision or None,
        lines=tuple(lines_of(newest[::-1])),
        is_cut=is_cut,
        older=_older(newest, until, skipped) if is_cut else None,
        is_followed=False,
        notes=(),
    )
    if not arguments.follow:
        return result
    narrowed_query = narrowed(query, severity=severity, text=text)
    batches = further_entries(context, project, narrowed_query, newest, seconds=arguments.deadline, is_cut=is_cut)
    return _followed(context, arguments, result, batches)


def recent_lines(context: Context, deployment: Deployment, *, since: str = "24h", limit: int = 2000) -> Logs:
    """The newest lines of a deployment's server, for other operations: containers and platform, or the consoles."""
    return logs(context, LogsArguments(stack=deployment.stack, since=since, limit=limit))


def _leases(deployment: Deployment, arguments: LogsArguments) -> tuple[DeployedLease, ...]:
    """The machines whose consoles are read; () where a service's log is."""
    leases = deployment.leases
    if arguments.node is not None:
        found = tuple(lease for lease in leases if lease.name == arguments.node)
        if not found:
            known = ", ".join(lease.name for lease in leases) or "(none)"
            raise LogsError(
                Problem("--node", arguments.node, "the stack has no such machine.", f"name one of: {known}.")
            )
        return found
    if arguments.source == "console" and not leases:
        repair = "leave out --source: a service's containers have a log."
        raise LogsError(Problem("--source", "console", "the stack has no leased machine.", repair))
    return leases if arguments.source in {None, "console"} else ()


def _service_query(context: Context, deployment: Deployment, arguments: LogsArguments) -> tuple[str, str, str]:
    """The project, the filter, and the revision of a service's log."""
    service = deployment.service
    if service is None:
        consequence = "the stack has no Cloud Run service and no leased machine: there is no log."
        repair = f"deploy it: `pulumi up --stack {quoted(deployment.stack)}`."
        raise LogsError(Problem("STACK", deployment.stack, consequence, repair))
    revision = arguments.revision or ""
    if not revision:
        live = read_service(context, service) or {}
        revision = str(live.get("latestCreatedRevision") or "").rpartition("/")[2]
    revision = "" if revision == ANY_REVISION else revision
    sources: tuple[Source, ...] = (arguments.source,) if arguments.source else ("container", "platform")
    return service.project, service_filter(service, revision, sources), revision


def _console(
    context: Context, leases: Sequence[DeployedLease], arguments: LogsArguments, since: str, until: str
) -> Iterator[Entry]:
    """Entries of the machines' consoles, newest first: from the serial port where there is one, else from the log."""
    for lease in leases:
        if rows := _serial_port(context, lease):
            yield from (entry for entry in rows if _holds(entry, arguments, since, until))
        else:
            query = narrowed(
                node_filter(lease),
                since=since,
                until=until,
                severity=arguments.severity or "",
                text=arguments.text or "",
            )
            yield from read_entries(context, lease.project, query)


def _serial_port(context: Context, lease: DeployedLease) -> list[Entry]:
    """Lines of a live machine's serial port, newest first; none where its API has no such port, or it is gone."""
    if lease.back_end != "flex_start_vm" or not lease.zone:
        return []
    try:
        text = back_end_of(lease.back_end, context.google, lease.project).serial_output(lease.zone, lease.name)
    except ApiError as error:
        if error.status in {400, 404}:
            return []
        raise
    rows, stamp = [], ""
    for number, line in enumerate(text.splitlines()):
        stamp = match[0] if (match := _STAMP.match(line)) else stamp
        rows.append(Entry(str(number), stamp, level_of(line), "console", lease.name, "", line))
    return rows[::-1]


def _holds(entry: Entry, arguments: LogsArguments, since: str, until: str) -> bool:
    """Whether an entry that Cloud Logging did not filter matches."""
    if arguments.text and arguments.text.lower() not in entry.text.lower():
        return False
    if arguments.severity and SEVERITIES.index(entry.severity or "DEFAULT") < SEVERITIES.index(arguments.severity):
        return False
    moment = unix(entry.time) if entry.time else None
    return moment is None or (unix(since) or 0) <= moment <= (unix(until) or moment if until else moment)


def _bounded(entries: Iterable[Entry], limit: int) -> tuple[list[Entry], bool]:
    """The first entries, within the limits of lines and bytes, and whether there are more."""
    taken: list[Entry] = []
    size = lines = 0
    for entry in entries:
        size += min(len(entry.text), 4 * _MAX_BYTES)
        lines += entry.text.count("\n") + 1
        if len(taken) >= limit or (taken and (size > _MAX_BYTES or lines > limit)):
            return taken, True
        taken.append(entry)
    return taken, False


def _followed(context: Context, arguments: LogsArguments, begun: Logs, batches: Iterator[list[Entry]]) -> Logs:
    """The lines of a result and those that come until the deadline, each shown when it comes."""
    show = context.output or context.show
    for line in begun.lines:
        show(line_text(line))
    lines, size, why = list(begun.lines), 0, f"ended after {arguments.deadline:g} s"
    try:
        for batch in batches:
            for line in lines_of(batch):
                size += len(line.text)
                lines.append(line)
                show(line_text(line))
            if size > _MAX_BYTES:
                why = f"ended after {_MAX_BYTES} bytes"
                break
    except KeyboardInterrupt:
        why = "stopped"
    kept = tuple(lines[-arguments.limit :])
    is_cut = begun.is_cut or len(kept) < len(lines)
    return begun.model_copy(update={"lines": kept, "is_followed": True, "is_cut": is_cut, "notes": (*begun.notes, why)})


def _after_page(entries: Iterable[Entry], until: str, skipped: int) -> Iterator[Entry]:
    """Entries without those of the page's instant that an earlier page showed."""
    for entry in entries:
        if skipped and entry.time == until:
            skipped -= 1
            continue
        yield entry


def _older(newest: Sequence[Entry], until: str, skipped: int) -> str | None:
    """The page that continues: an instant, and the number of its entries that were shown."""
    oldest = newest[-1].time if newest else ""
    return bounds.page_after(
        oldest, sum(entry.time == oldest for entry in newest) + (skipped if oldest == until else 0)
    )


def _not_followed() -> Problem:
    consequence = "the console of a machine is read as a whole; its lines are not awaited."
    return Problem("--follow", "true", consequence, "leave it out, and run the command again for further lines.")
