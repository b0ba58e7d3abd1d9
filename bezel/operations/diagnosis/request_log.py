"""Requests of a service in the platform's request log: how each ended, and what that says about the service. Pure.

The platform answers a request itself where no instance can: such an entry has a message and no instance. What a server
answered has its status only, and its cause in the container's log.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bezel.leases.clock import unix
from bezel.operations.log_reading.entries import LogEntry
from bezel_base.front.refusals import Refusal, logged_refusal

_RECENT_SECONDS = 600.0
_FEW = 0.05
# What strangers cause on a public address: a cause only where most callers meet it.
_OF_CALLERS = frozenset({400, 401, 403, 404, 405, 408, 413, 422, 499})


@dataclass(frozen=True)
class LoggedRequest:
    """One request: its time as RFC 3339, its status, and the platform's message where it answered itself."""

    time: str
    status: int
    message: str
    revision: str


@dataclass(frozen=True)
class FailedRequests:
    """Requests that failed in one way.

    Attributes:
        refusal: Whose answer it was, and what it means.
        status: HTTP status.
        count: Their number, of `total` requests of the window.
        last: Time of the newest one.
        is_past: Whether the service has served since then as if nothing had been.
    """

    refusal: Refusal
    status: int
    count: int
    total: int
    last: str
    is_past: bool


def requests_of(entries: Iterable[LogEntry]) -> Iterator[LoggedRequest]:
    """The requests of entries of the request log."""
    for entry in entries:
        if entry.status is not None:
            yield LoggedRequest(entry.time, entry.status, entry.message, entry.resource)


def failed_requests(
    requests: Sequence[LoggedRequest], now: float | None, stack: str, *, has_gateway: bool = False
) -> tuple[FailedRequests, ...]:
    """The ways in which requests failed, the most frequent first.

    Args:
        requests: The requests, oldest first.
        now: Unix time; None takes that of the newest request.
        stack: Name of the stack, for commands.
        has_gateway: Whether the service is the gateway of leased machines.
    """
    if not requests:
        return ()
    end = now or unix(requests[-1].time) or 0.0
    recent = [each for each in requests if (unix(each.time) or 0.0) >= end - _RECENT_SECONDS]
    failures: dict[tuple[int, str], list[LoggedRequest]] = {}
    for each in requests:
        if each.status >= 400:
            failures.setdefault((each.status, logged_refusal(each.status, each.message).kind), []).append(each)
    result = []
    for (status, _), failed in failures.items():
        last = failed[-1]
        number = sum((unix(each.time) or 0.0) >= end - _RECENT_SECONDS for each in failed)
        least = 0.5 if status in _OF_CALLERS else _FEW
        is_present = number > 0 and number / len(recent) >= least
        if status in _OF_CALLERS and not is_present:
            continue
        result.append(
            FailedRequests(
                logged_refusal(status, last.message, stack, has_gateway=has_gateway),
                status,
                number if is_present else len(failed),
                len(recent) if is_present else len(requests),
                last.time,
                is_past=not is_present,
            )
        )
    return tuple(sorted(result, key=lambda each: (each.is_past, -each.count)))
