"""When to try again and when to give up: failures in a row are counted, waits grow, the whole has a deadline.

Clock and dice are passed in. Leaves out what a failure is.
"""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING

from bezel.rest import Backoff
from bezel.weights.errors import StoppedError, WeightsError

if TYPE_CHECKING:
    from collections.abc import Callable

FAILURES_IN_A_ROW = 7


class Watch:
    """The end of a copy: its deadline, or the word of another thread.

    Args:
        seconds: For the whole copy.
        backoff: The waits between two tries.
        clock: Seconds that only go forward.
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
        """Lets every thread end at its next step."""
        self._stopped.set()

    def check(self) -> None:
        """Ends the caller where there is no more to be done.

        Raises:
            StoppedError: Somebody called `stop`.
            WeightsError: The deadline is over.
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
        """Waits, but not beyond the end."""
        self.check()
        self._stopped.wait(max(0.0, min(seconds, self._end - self._clock())))
        self.check()


class Patience:
    """Failures in a row of one thing that is tried again."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.progressed()

    def progressed(self) -> None:
        """Something came through: failures count from nothing again."""
        self._failures = 0
        self._delays = self._watch.backoff.delays(random.random)

    def failed(self, why: Exception, asked_seconds: float = 0.0) -> None:
        """Waits before the next try.

        Args:
            why: What went wrong.
            asked_seconds: The least wait that the server asked for.

        Raises:
            Exception: `why`, where it has been tried often enough.
        """
        self._failures += 1
        if self._failures > FAILURES_IN_A_ROW:
            raise why
        self._watch.wait(max(next(self._delays), asked_seconds))
