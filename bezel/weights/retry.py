"""Retry policy and deadline of a copy: a limit of failures in a row, growing waits, one deadline for the whole copy.

Clock and backoff are passed in. Leaves out the definition of a failure.
"""

import random
import threading
import time
from collections.abc import Callable

from bezel.rest import Backoff
from bezel.weights.errors import StoppedError, WeightsError
from bezel_base.errors import Problem

FAILURES_IN_A_ROW = 7
_LOOK_SECONDS = 0.5  # between two looks at the caller while waiting


class Watch:
    """The end of a copy: its deadline, or a stop by another thread.

    Args:
        seconds: Time for the whole copy.
        backoff: The waits between two attempts.
        clock: A monotonic clock, in seconds.
        cancelled: Set by the caller to give the copy up.
        overdue: The problem of a deadline that has passed; by default that of a copy.
    """

    def __init__(
        self,
        seconds: float,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
        cancelled: threading.Event | None = None,
        overdue: Problem | None = None,
    ) -> None:
        self.backoff = backoff or Backoff()
        self._clock = clock
        self._end = clock() + seconds
        self._overdue = overdue or _of_copy(seconds)
        self._stopped = threading.Event()
        self._cancelled = cancelled or threading.Event()

    def stop(self) -> None:
        """Makes every thread end at its next `check` or `wait`."""
        self._stopped.set()

    def check(self) -> None:
        """Raises if the copy is over.

        Raises:
            StoppedError: `stop` was called, or the caller has given the copy up.
            WeightsError: The deadline has passed.
        """
        if self._stopped.is_set() or self._cancelled.is_set():
            raise StoppedError("stopped")
        if self._clock() >= self._end:
            raise WeightsError(self._overdue)

    def wait(self, seconds: float) -> None:
        """Waits, but not beyond the deadline or a stop."""
        self.check()
        left = min(seconds, self._end - self._clock())
        while left > 0 and not self._stopped.wait(min(left, _LOOK_SECONDS)):
            self.check()
            left -= _LOOK_SECONDS
        self.check()


def _of_copy(seconds: float) -> Problem:
    text = "the copy took longer and was ended; copied files stay, and the next run resumes open uploads."
    return Problem("--deadline", f"{seconds:g}", text, "run the same command again, or raise --deadline.")


class RetryBudget:
    """Counter of failures in a row of one operation that is retried."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.note_progress()

    def note_progress(self) -> None:
        """Resets the count of failures and the waits, after a success."""
        self._failures = 0
        self._delays = self._watch.backoff.delays(random.random)

    def note_failure(self, why: Exception, retry_after: float = 0.0) -> None:
        """Counts a failure and waits before the next attempt.

        Args:
            why: The failure.
            retry_after: The least wait that the server requested.

        Raises:
            Exception: `why`, after more than FAILURES_IN_A_ROW failures.
        """
        self._failures += 1
        if self._failures > FAILURES_IN_A_ROW:
            raise why
        self._watch.wait(max(next(self._delays), retry_after))
