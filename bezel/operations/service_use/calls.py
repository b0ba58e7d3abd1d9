"""Requests of a service's callers in the last ten minutes, how many of them failed, and servers that end in a loop.

Owns the reading of the two sources. The request log has each request with its path, seconds after its end, also one
that the platform refused without an instance. A stream that broke off after its first bytes succeeded there, so the
platform's lines about ends of instances are read with it. Cloud Monitoring's `request_count` has the requests that
reached an instance, up to three minutes late; it adds what the log lacks, as an exclusion of a log's sink leaves
requests out. Leaves the counting to `call_counts`. Sends no request to the service.
"""

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from bezel.leases.clock import unix
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService
from bezel.operations.log_reading.bounds import rfc3339
from bezel.operations.log_reading.entries import PAGE, Chosen, LogEntry, Page, narrow_filter, read_page, service_filter
from bezel.operations.log_reading.lines import lines_of
from bezel.operations.log_reading.starts import Starts
from bezel.operations.redaction import clean_text
from bezel.operations.service_use.call_counts import (
    LOG,
    MONITORING,
    Call,
    Calls,
    RevisionLoop,
    Source,
    counted_calls,
    missing_calls,
)
from bezel.operations.service_use.service_metrics import RequestSample, reason, request_samples
from bezel.rest import ApiError, GoogleClient, RestError
from bezel_base.errors import one_line

WINDOW = 600.0
_SECONDS = 10.0  # of a request, with its retries: neither source must keep a status from being shown
_SKEW = 20.0  # seconds between this machine's clock and Google's that matter for the window
_TEXT = 300
_DENIED = (401, 403)
_ENDS: tuple[Chosen, ...] = ("platform", "asked to end")


@dataclass
class _Traffic:
    """What the sources gave."""

    entries: tuple[LogEntry, ...] = ()
    ends: tuple[LogEntry, ...] = ()
    is_cut: bool = False
    samples: list[RequestSample] = field(default_factory=list)
    now: float = 0.0
    read: list[Source] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def calls_of(context: Context, service: DeployedService, revisions: Collection[str]) -> Calls:
    """The requests of the last ten minutes. Never raises for a refusal of Google's.

    Args:
        context: The context.
        service: The service.
        revisions: Short names of the revisions that have traffic: what another one answered at its tag does not count.
    """
    traffic = _read(context, service)
    logged = [call for entry in traffic.entries if (call := _call(entry)) is not None]
    calls = [call for call in (*logged, *missing_calls(logged, traffic.samples)) if call.revision in {*revisions, ""}]
    return counted_calls(
        calls,
        window=int(WINDOW),
        now=traffic.now,
        read=tuple(traffic.read),
        unread=tuple(traffic.unread),
        loops=_loops(traffic.ends, revisions, traffic.now),
        is_cut=traffic.is_cut,
    )


def _read(context: Context, service: DeployedService) -> _Traffic:
    """Both sources at the same time; again where this machine's clock differs from Google's."""
    traffic = _Traffic(now=context.clock.now())
    with (
        GoogleClient(context.credentials, deadline_seconds=_SECONDS, timeout_seconds=_SECONDS) as client,
        ThreadPoolExecutor(1) as beside,
    ):
        counted = beside.submit(request_samples, context, service, traffic.now - WINDOW, traffic.now)

        def read(*sources: Chosen) -> Page:
            query = narrow_filter(service_filter(service, "", sources), since=rfc3339(traffic.now - WINDOW))
            return read_page(context, client, service.project, query)

        try:
            page = read("requests", *_ENDS)
            if page.at is not None and abs(page.at - traffic.now) > _SKEW:
                traffic.now = page.at
                page = read("requests", *_ENDS)
                counted.exception()
                counted = beside.submit(request_samples, context, service, traffic.now - WINDOW, traffic.now)
            traffic.is_cut = len(page.entries) == PAGE
            # Among so many requests the newest page goes back for less than the window.
            traffic.ends = read(*_ENDS).entries if traffic.is_cut else page.entries
            traffic.entries = page.entries
            traffic.read.append(LOG)
        except RestError as error:
            traffic.unread.append(_why(f"Cloud Logging: {_words(error)}", error, "logging.logEntries.list"))
        try:
            traffic.samples = counted.result()
            traffic.read.append(MONITORING)
        except RestError as error:
            traffic.unread.append(_why(reason(error), error, "monitoring.timeSeries.list"))
    return traffic


def _loops(entries: Iterable[LogEntry], revisions: Collection[str], now: float) -> tuple[RevisionLoop, ...]:
    """Those of the revisions whose server ends again and again, by the platform's lines, newest first."""
    lines = list(lines_of(entry for entry in reversed(tuple(entries)) if entry.source != "requests"))
    starts = Starts(lines, now=now)
    loops = ((name, starts.loop_of(name)) for name in sorted(revisions))
    return tuple(RevisionLoop(name=name, ends=loop.ends) for name, loop in loops if loop is not None)


def _call(entry: LogEntry) -> Call | None:
    """A request of the log; None for an entry without a status."""
    at = unix(entry.time)
    if entry.status is None or at is None:
        return None
    # A response that began well and broke off keeps its status; the platform's message tells.
    return Call(at, entry.status, urlsplit(entry.url).path, entry.resource, message=clean_text(entry.message, _TEXT))


def _words(error: RestError) -> str:
    text = error.because if isinstance(error, ApiError) else one_line(error)
    return clean_text(text.rstrip("."), _TEXT)


def _why(text: str, error: RestError, permission: str) -> str:
    is_denied = isinstance(error, ApiError) and error.status in _DENIED and error.because == error.message
    return f"{text} (the permission is {permission})" if is_denied and permission not in text else text
