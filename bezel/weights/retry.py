"""Retry policy and deadline of a copy: a limit of failures in a row, growing waits, one deadline for the whole copy.

Clock and backoff are passed in. Leaves out the definition of a failure.
"""

import random
import threading
import time
from collections.abc import Callable

from bezel.rest import Backoff
from bezel.weights.errors import StoppedError, WeightsError

FAILURES_IN_A_ROW = 7


class Watch:
    """The end of a copy: its deadline, or a stop by another thread.

    Args:
        seconds: Time for the whole copy.
        backoff: The waits between two attempts.
        clock: A monotonic clock, in seconds.
    """

    def __init__(
        self, seconds: float, backoff: Backoff | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.backoff = backoff or Backoff()
        self._clock = clock
        self._seconds = seconds
        self._end = clock() + seconds
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Makes every thread end at its next `check` or `wait`."""
        self._stopped.set()

    def check(self) -> None:
        """Raises if the copy is over.

        Raises:
            StoppedError: `stop` was called.
            WeightsError: The deadline has passed.
        """
        if self._stopped.is_set():
            raise StoppedError("stopped")
        if self._clock() >= self._end:
            raise WeightsError(
                f"The copy has taken {self._seconds:g} s.",
                "it was given up; what is copied stays, and an upload that was cut off is kept for the next time.",
                "run the same command again to go on, with a longer --deadline if need be.",
            )

    def wait(self, seconds: float) -> None:
        """Waits, but not beyond the deadline or a stop."""
        self.check()
        self._stopped.wait(max(0.0, min(seconds, self._end - self._clock())))
        self.check()


class Patience:
    """Counter of failures in a row of one operation that is retried."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.progressed()

    def progressed(self) -> None:
        """Resets the count of failures and the waits, after a success."""
        self._failures = 0
        self._delays = self._watch.backoff.delays(random.random)

    def failed(self, why: Exception, asked_seconds: float = 0.0) -> None:
        """Counts a failure and waits before the next attempt.

        Args:
            why: The failure.
            asked_seconds: The least wait that the server requested.

        Raises:
            Exception: `why`, after more than FAILURES_IN_A_ROW failures.
        """
        self._failures += 1
        if self._failures > FAILURES_IN_A_ROW:
            raise why
        self._watch.wait(max(next(self._delays), asked_seconds))
