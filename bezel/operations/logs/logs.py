"""Logs of a deployment: its containers, the platform, requests, and the consoles of leased machines.

Owns the choice of the log, the bounds in lines, bytes and time, and pages. Every line is cleaned: no control character,
no credential, no line longer than a screen or two. Nothing in a log is interpreted.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from bezel.leases.clock import unix
from bezel.leases.inventory import back_end_of
from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import Region, Stack
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedLease, DeployedService, Deployment
from bezel.operations.log_reading import bounds
from bezel.operations.log_reading.bounds import LogsError
from bezel.operations.log_reading.entries import (
    SEVERITIES,
    Chosen,
    LogEntry,
    Source,
    level_of,
    narrow_filter,
    node_filter,
    read_entries,
    service_filter,
)
from bezel.operations.log_reading.levels import with_levels
from bezel.operations.log_reading.lines import LogLine, line_text, lines_of
from bezel.operations.log_reading.revisions import ReadRevision, read_revisions
from bezel.operations.logs.following import further_entries
from bezel.operations.results import Result
from bezel.operations.status.live_service import read_service
from bezel.rest import ApiError
from bezel_base.errors import Problem
from bezel_base.terminal.blocks import Line
from bezel_base.text.shell import shell_word

Severity = Literal["DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"]

ANY_REVISION = "all"
_MAX_BYTES = 256 * 1024
_MAX_ENTRIES, _MAX_READ = 20_000, 8 << 20  # of those from which lines of a severity are chosen
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


class LogsArguments(Arguments):
    """Which log, and how much of it."""

    stack: Stack
    source: Annotated[Source | None, Reach.INSIDE] = Field(
        None,
        description="container: all it prints; platform: Cloud Run about it; requests: its request log; console: of "
        "leased machines (default: container without passed health checks, platform, refused requests; or console)",
    )
    revision: Annotated[str | None, Reach.INSIDE, Option("NAME")] = Field(
        None,
        max_length=63,
        description="a revision, or `all` (default: those with traffic, and the newest)",
    )
    node: Annotated[str | None, Reach.INSIDE, Option("NAME")] = Field(
        None, max_length=63, description="name of a leased machine (default: all of the stack)"
    )
    severity: Annotated[Severity | None, Reach.INSIDE] = Field(
        None, description="least severity, of the platform or as vLLM writes it"
    )
    text: Annotated[str | None, Reach.INSIDE] = Field(
        None, min_length=1, max_length=500, description="part of the message, in any case"
    )
    since: Annotated[str, Reach.INSIDE, Option("AGE|TIME")] = Field(
        "1h", max_length=40, description="begin of the log: 30s, 10m, 2h, 3d or RFC 3339"
    )
    limit: Annotated[int, Reach.INSIDE, Option("LINES")] = Field(
        200, ge=1, le=5000, description="number of lines at most, the newest ones"
    )
    page: Annotated[str | None, Reach.INSIDE] = Field(
        None, max_length=60, description="page of an earlier result, for older lines"
    )
    follow: Annotated[bool, Reach.INSIDE] = Field(False, description="wait for further lines until the deadline")
    deadline: Annotated[float, Reach.INSIDE, Option("SECONDS")] = Field(
        300.0, gt=0, le=3600, description="time limit of following, in seconds"
    )
    region: Annotated[Region | None, Reach.INSIDE, Option("REGION")] = Field(
        None, description="region whose log is read (default: all)"
    )


class Logs(Result):
    """Lines of a log, oldest first."""

    is_padded, head_share = False, 0.1
    stack: str
    revision: str | None = Field(description="revision that the lines are of; null for several, and for machines")
    revisions: tuple[ReadRevision, ...] = Field(
        (), description="revisions that were read, each with its part in the service; () for all, and for machines"
    )
    lines: tuple[LogLine, ...]
    is_cut: bool = Field(description="whether there are older lines, or more than may be shown")
    older: str | None = Field(description="`page` for the lines before these; null where there are none")
    is_followed: bool = Field(description="whether further lines were awaited")
    notes: tuple[str, ...]

    def text(self) -> str:
        """The lines, and how to get older ones."""
        several = len({(line.region, line.resource) for line in self.lines}) > 1
        regions = len({line.region for line in self.lines}) > 1
        containers = len({line.container for line in self.lines if line.container}) > 1
        shown = [f"{each.name}: {each.part}" for each in self.revisions if len(self.revisions) > 1]
        if not self.is_followed:
            shown += [
                line_text(line, with_resource=several, with_region=regions, with_container=containers)
                for line in self.lines
            ]
        shown += [f"note: {text}" for text in self.notes]
        if not self.lines:
            shown.append("no lines")
        if self.older:
            shown.append(f"older lines: --page '{self.older}'")
        return "\n".join(shown) + "\n"

    def page(self) -> Iterator[Line]:
        """The same; a line of a log stays one line."""
        yield Line(self.text().rstrip("\n"), is_verbatim=True)


def logs(context: Context, arguments: LogsArguments) -> Logs:
    """The newest lines of a stack's log, oldest first.

    Raises:
        UserError: An argument fits no log of the stack, or Google could not be asked.
    """
    deployment = context.deployment(arguments.stack)
    if arguments.region:
        deployment = deployment.of_one_region(arguments.region)
    since = bounds.since(arguments.since, context.clock.now())
    until, skipped = bounds.page(arguments.page)
    leases = _leases(deployment, arguments)
    severity, text = arguments.severity or "", arguments.text or ""
    if leases and arguments.follow:
        raise LogsError(_not_followed())
    if leases and arguments.revision is not None:
        repair = "leave it out, or choose --source container: the gateway's log."
        raise LogsError(Problem("--revision", arguments.revision, "a machine's console has no revisions.", repair))
    # What belongs to an error shows in the lines before it: a text is looked for in those of the severity.
    at_source = "" if severity else text
    revisions: tuple[ReadRevision, ...] = ()
    if leases:
        project, query = "", ""
        entries = _console(context, leases, arguments, since, until)
    else:
        project, query, revisions = _service_query(context, deployment, arguments)
        bounded = narrow_filter(query, since=since, until=until, severity=severity, text=at_source)
        entries = read_entries(context, project, bounded)
        if severity:
            entries = iter(
                _of_severity(_first_entries(entries, _MAX_ENTRIES, _MAX_READ)[0][::-1], severity, text)[::-1]
            )
    newest, is_cut = _first_entries(_after_page(entries, until, skipped), arguments.limit)
    lines = tuple(lines_of(with_levels(newest[::-1])))
    result = Logs(
        stack=deployment.stack,
        revision=revisions[0].name if len(revisions) == 1 else None,
        revisions=revisions,
        lines=lines,
        is_cut=is_cut,
        older=_older(newest, until, skipped) if is_cut else None,
        is_followed=False,
        notes=_unseen(revisions, lines) if is_cut else (),
    )
    if not arguments.follow:
        return result
    narrowed_query = narrow_filter(query, severity=severity, text=at_source)
    batches = further_entries(context, project, narrowed_query, newest, seconds=arguments.deadline, is_cut=is_cut)
    if severity:
        batches = (_of_severity(batch, severity, text) for batch in batches)
    return _follow(context, arguments, result, batches)


def recent_lines(
    context: Context, deployment: Deployment, *, since: str = "24h", limit: int = 2000, revision: str | None = None
) -> Logs:
    """The newest lines of a deployment's server, for other operations: containers and platform, or the consoles."""
    region = deployment.region or None
    asked = LogsArguments(stack=deployment.stack, since=since, limit=limit, revision=revision, region=region)
    return logs(context, asked)


def _of_severity(entries: Sequence[LogEntry], severity: str, text: str) -> list[LogEntry]:
    """Those of a least severity that hold a text, oldest first; the lines of a traceback have that of their error."""
    least = SEVERITIES.index(severity)
    return [
        entry
        for entry in with_levels(entries)
        if SEVERITIES.index(entry.severity or "DEFAULT") >= least and text.lower() in entry.text.lower()
    ]


def _unseen(revisions: Sequence[ReadRevision], lines: Sequence[LogLine]) -> tuple[str, ...]:
    """A note for each revision of which the newest lines hold none."""
    seen = {(line.resource, region) for line in lines for region in (None, line.region)}
    return tuple(
        f"no line of {each.name} is among the newest {len(lines)}: --revision {each.name}"
        f"{f' --region {each.region}' if each.region else ''} reads it"
        for each in revisions
        if (each.name, each.region) not in seen
    )


def _leases(deployment: Deployment, arguments: LogsArguments) -> tuple[DeployedLease, ...]:
    """The machines whose consoles are read; () where a service's log is."""
    leases = deployment.leases
    if arguments.node is not None:
        machines = tuple(lease for lease in leases if lease.name == arguments.node)
        if not machines:
            names = ", ".join(lease.name for lease in leases) or "(none)"
            raise LogsError(
                Problem("--node", arguments.node, "the stack has no such machine.", f"name one of: {names}.")
            )
        return machines
    if arguments.source == "console" and not leases:
        repair = "leave out --source: a service's containers have a log."
        raise LogsError(Problem("--source", "console", "the stack has no leased machine.", repair))
    return leases if arguments.source in {None, "console"} else ()


def _service_query(
    context: Context, deployment: Deployment, arguments: LogsArguments
) -> tuple[str, str, tuple[ReadRevision, ...]]:
    """The project, the filter, and the revisions of the log of the services in all regions that are meant."""
    services = [each for each in deployment.region_services if deployment.region in ("", each.location)]
    if not services:
        consequence = "the stack has no Cloud Run service and no leased machine: there is no log."
        repair = f"deploy it: `pulumi up --stack {shell_word(deployment.stack)}`."
        raise LogsError(Problem("STACK", deployment.stack, consequence, repair))
    sources: tuple[Chosen, ...] = (arguments.source,) if arguments.source else ("container", "platform", "refused")
    name = arguments.revision or ""
    parts: list[tuple[DeployedService, tuple[ReadRevision, ...]]] = []
    for service in services:
        region = service.location if len(services) > 1 else None
        live = {} if name == ANY_REVISION else read_service(context, service) or {}
        parts.append((service, tuple(each for each in read_revisions(live, region) if name in {"", each.name})))
    if name not in {"", ANY_REVISION}:
        # A revision of one region is none of the others, and one without traffic may be any region's.
        asked = (ReadRevision(name=name, percent=0, is_newest=False),)
        parts = [part for part in parts if part[1]] or [(service, asked) for service in services]
    # Readiness is asked each few seconds, and so are metrics: by default no such line displaces another one.
    probes = arguments.source is not None or bool(arguments.text)
    queries = [
        service_filter(service, [each.name for each in of_service], sources, probes=probes)
        for service, of_service in parts
    ]
    query = queries[0] if len(queries) == 1 else f"({' OR '.join(f'({each})' for each in queries)})"
    revisions = dict.fromkeys(each for _, of_service in parts for each in of_service)
    return services[0].project, query, tuple(revisions)


def _console(
    context: Context, leases: Sequence[DeployedLease], arguments: LogsArguments, since: str, until: str
) -> Iterator[LogEntry]:
    """Entries of the machines' consoles, newest first: from the serial port where there is one, else from the log."""
    for lease in leases:
        if rows := _serial_port(context, lease):
            yield from (entry for entry in rows if _holds(entry, arguments, since, until))
        else:
            query = narrow_filter(
                node_filter(lease),
                since=since,
                until=until,
                severity=arguments.severity or "",
                text=arguments.text or "",
            )
            yield from read_entries(context, lease.project, query)


def _serial_port(context: Context, lease: DeployedLease) -> list[LogEntry]:
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
        rows.append(LogEntry(str(number), stamp, level_of(line), "console", lease.name, "", line))
    return with_levels(rows)[::-1]


def _holds(entry: LogEntry, arguments: LogsArguments, since: str, until: str) -> bool:
    """Whether an entry that Cloud Logging did not filter matches."""
    if arguments.text and arguments.text.lower() not in entry.text.lower():
        return False
    if arguments.severity and SEVERITIES.index(entry.severity or "DEFAULT") < SEVERITIES.index(arguments.severity):
        return False
    moment = unix(entry.time) if entry.time else None
    return moment is None or (unix(since) or 0) <= moment <= (unix(until) or moment if until else moment)


def _first_entries(entries: Iterable[LogEntry], limit: int, most: int = _MAX_BYTES) -> tuple[list[LogEntry], bool]:
    """The first entries, within the limits of lines and bytes, and whether there are more."""
    taken: list[LogEntry] = []
    size = lines = 0
    for entry in entries:
        size += min(len(entry.text), 4 * _MAX_BYTES)
        lines += entry.text.count("\n") + 1
        if len(taken) >= limit or (taken and (size > most or lines > limit)):
            return taken, True
        taken.append(entry)
    return taken, False


def _follow(context: Context, arguments: LogsArguments, begun: Logs, batches: Iterator[list[LogEntry]]) -> Logs:
    """The lines of a result and those that come until the deadline, each shown when it comes."""
    show = context.output or context.show
    several = len(begun.revisions) > 1
    regions = len({each.region for each in begun.revisions}) > 1
    containers = {line.container for line in begun.lines if line.container}
    for line in begun.lines:
        show(line_text(line, with_resource=several, with_region=regions, with_container=len(containers) > 1))
    lines, size, why = list(begun.lines), 0, f"ended after {arguments.deadline:g} s"
    try:
        for batch in batches:
            for line in lines_of(batch):
                size += len(line.text)
                lines.append(line)
                containers |= {line.container} if line.container else set()
                show(line_text(line, with_resource=several, with_region=regions, with_container=len(containers) > 1))
            if size > _MAX_BYTES:
                why = f"ended after {_MAX_BYTES} bytes"
                break
    except KeyboardInterrupt:
        why = "stopped"
    kept = tuple(lines[-arguments.limit :])
    is_cut = begun.is_cut or len(kept) < len(lines)
    return begun.model_copy(update={"lines": kept, "is_followed": True, "is_cut": is_cut, "notes": (*begun.notes, why)})


def _after_page(entries: Iterable[LogEntry], until: str, skipped: int) -> Iterator[LogEntry]:
    """Entries without those of the page's instant that an earlier page showed."""
    for entry in entries:
        if skipped and entry.time == until:
            skipped -= 1
            continue
        yield entry


def _older(newest: Sequence[LogEntry], until: str, skipped: int) -> str | None:
    """The page that continues: an instant, and the number of its entries that were shown."""
    oldest = newest[-1].time if newest else ""
    return bounds.page_after(
        oldest, sum(entry.time == oldest for entry in newest) + (skipped if oldest == until else 0)
    )


def _not_followed() -> Problem:
    consequence = "the console of a machine is read as a whole; its lines are not awaited."
    return Problem("--follow", "true", consequence, "leave it out, and run the command again for further lines.")
