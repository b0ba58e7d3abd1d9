"""Authorisation headers that are renewed in the background before their token expires.

Knows no identity provider: the caller that starts a run passes the function that fetches headers. Reading the headers
never blocks; where a new token does not arrive in time the old one is still sent, and the server's refusals are counted
as such.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_MARGIN_SECONDS = 300.0
"""Left when a new token is first requested; a source that caches tokens itself returns a new one by then."""
_RETRY_SECONDS = 20.0


@dataclass(frozen=True)
class Fetched:
    """Headers, and their validity in seconds from the fetch."""

    headers: Mapping[str, str]
    seconds: float = math.inf


def in_thread(work: Callable[[], None]) -> None:
    """Run the work in a background thread."""
    threading.Thread(target=work, name="token", daemon=True).start()


class RenewedHeaders:
    """A `TokenSource` whose headers are renewed before they expire.

    Args:
        fetch: Returns new headers; may be slow, and may fail.
        clock: Monotonic seconds.
        beside: Runs a function in the background.

    Raises:
        Exception: Raised by the first call of `fetch`; later failures are counted in `failures`.
    """

    def __init__(
        self,
        fetch: Callable[[], Fetched],
        *,
        clock: Callable[[], float] = time.monotonic,
        beside: Callable[[Callable[[], None]], None] = in_thread,
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._beside = beside
        self.failures = 0
        self._due = math.inf
        self._headers: Mapping[str, str] = {}
        self._take(fetch())

    def __call__(self) -> Mapping[str, str]:
        """Return the headers to send."""
        if self._clock() >= self._due:
            # No other renewal begins until this one has ended.
            self._due = math.inf
            self._beside(self._renew)
        return self._headers

    def _renew(self) -> None:
        try:
            self._take(self._fetch())
        except Exception:  # noqa: BLE001 - any failure: the load continues, and the token is requested again
            self.failures += 1
            self._due = self._clock() + _RETRY_SECONDS

    def _take(self, fetched: Fetched) -> None:
        self._headers = fetched.headers
        wait = max(fetched.seconds - _MARGIN_SECONDS, min(fetched.seconds / 2, _RETRY_SECONDS))
        self._due = self._clock() + wait
