"""Headers that stay good in runs longer than their token lives: renewed in the background, before the end.

Knows no identity provider: whoever starts a run says how headers are fetched. Asking never waits; where a new token
does not come in time the old one is sent on, and the server's refusals are counted as such.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_MARGIN_SECONDS = 300.0
"""Left when a new token is first asked for; a source that keeps tokens itself hands out a new one by then."""
_RETRY_SECONDS = 20.0


@dataclass(frozen=True)
class Fetched:
    """Headers, and for how many seconds from now they are good."""

    headers: Mapping[str, str]
    seconds: float = math.inf


def in_thread(work: Callable[[], None]) -> None:
    """Does the work beside the load."""
    threading.Thread(target=work, name="token", daemon=True).start()


class RenewedHeaders:
    """A ``TokenSource`` whose headers are renewed before they end.

    Args:
        fetch: Gives new headers; may take its time, and may fail.
        clock: Seconds that only go forward.
        beside: Runs a function without waiting for it.

    Raises:
        Exception: What ``fetch`` raises at its first call; later failures are counted in ``failed``.
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
        self.failed = 0
        self._due = math.inf
        self._headers: Mapping[str, str] = {}
        self._take(fetch())

    def __call__(self) -> Mapping[str, str]:
        """The headers to send now."""
        if self._clock() >= self._due:
            # Until the renewal has ended nobody begins another.
            self._due = math.inf
            self._beside(self._renew)
        return self._headers

    def _renew(self) -> None:
        try:
            self._take(self._fetch())
        except Exception:  # noqa: BLE001 - whatever it was, the load goes on and it is tried again
            self.failed += 1
            self._due = self._clock() + _RETRY_SECONDS

    def _take(self, fetched: Fetched) -> None:
        self._headers = fetched.headers
        wait = max(fetched.seconds - _MARGIN_SECONDS, min(fetched.seconds / 2, _RETRY_SECONDS))
        self._due = self._clock() + wait
