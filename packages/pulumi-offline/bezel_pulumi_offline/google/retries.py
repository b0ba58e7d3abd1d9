"""Retries of the published provider: which answers it repeats a request for, after which pauses, and for how long.

Two loops, one inside the other. The transport repeats a request for two minutes (terraform-provider-google,
transport/retry_transport.go; the client's own limit for one logical request). Around it, a request of a generated
resource begins anew until its own limit has passed (transport_tpg.Retry, on terraform-plugin-sdk's retry.Retry); a
request in flight then gets half a minute more. Requests of Google's generated Go client have the transport's loop only.

Time is passed in, in the provider's seconds: on localcloud they pass faster (decision 5). Knows no HTTP client.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

TRANSPORT_SECONDS = 120.0
REQUEST_SECONDS = 300.0
"""Limit for a request without one of its own: every read, and every poll of an operation."""
POLICY_SECONDS = 600.0
"""Limit for reading a policy."""
GRACE_SECONDS = 30.0
_STATUSES = frozenset({429, 500, 502, 503})
_PER_MINUTE = re.compile(r"Quota exceeded for quota metric '.*' and limit '.* per minute' of service")


class Clock(Protocol):
    """The provider's clock."""

    def now(self) -> float:
        """Return seconds since an arbitrary moment."""

    def wait(self, seconds: float) -> None:
        """Wait; raises where the engine cancels meanwhile."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of sending a request once.

    Attributes:
        status: The HTTP status; 0 where there was no response.
        text: The body, or the connection's error.
        again: Whether the connection's error is one that the transport bears.
        late: Whether the response did not come in time: the transport's time is over as well.
    """

    status: int
    text: str
    again: bool = False
    late: bool = False

    @property
    def is_repeated(self) -> bool:
        """Whether the request is sent again."""
        if self.status == 0:
            return self.again or self.late
        unready = "resourceNotReady" in self.text and "subnetworks" in self.text
        return (
            self.status in _STATUSES
            or (self.status == 409 and "operationInProgress" in self.text)
            or (self.status == 400 and unready)
            or (self.status == 403 and bool(_PER_MINUTE.search(self.text)))
        )


def repeat(send: Callable[[], Answer], clock: Clock, limit: float | None) -> Answer | None:
    """Send a request until it succeeds, is refused, or the time is over; return its last answer.

    Args:
        send: Sends the request once.
        clock: The provider's clock.
        limit: The request's own limit in seconds; None for Google's Go client, which has the transport's only.

    Returns:
        The answer; None where the limit passed before the transport gave up for the first time.
    """
    began, last = clock.now(), None
    over = float("inf") if limit is None else began + limit + GRACE_SECONDS
    for pause in _outer_pauses():
        answer = _transport(send, clock, over)
        if answer is None:
            return last
        if limit is None or not answer.is_repeated:
            return answer
        last = answer
        left = began + limit - clock.now()
        if left <= pause:
            clock.wait(max(left, 0.0))
            return last
        clock.wait(pause)
    return last


def _transport(send: Callable[[], Answer], clock: Clock, over: float) -> Answer | None:
    """Send a request as the transport does; None where the time is over before the transport gives up."""
    ends = clock.now() + TRANSPORT_SECONDS
    for pause in _transport_pauses():
        answer = send()
        if not answer.is_repeated or answer.late:
            return answer
        waited = min(pause, ends - clock.now())
        if clock.now() + waited > over:
            clock.wait(max(over - clock.now(), 0.0))
            return None
        clock.wait(max(waited, 0.0))
        if waited < pause:
            return answer
    return None


def _transport_pauses() -> Iterator[float]:
    """Yield 0.5, 1, 1.5, 2.5, 4, ... seconds."""
    pause, following = 0.5, 0.5
    while True:
        yield pause
        pause, following = pause + following, pause


def _outer_pauses() -> Iterator[float]:
    """Yield 0.5, 1, 2, 4, 8, 10, 10, ... seconds."""
    pause = 0.5
    while True:
        yield min(pause, 10.0)
        pause *= 2
