"""Lock that a process holds: it is watched while a command runs under it, and released at its end.

Leaves out how it is taken (`taker`).
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bezel.engine.locks.record import Lock, object_name, parse
from bezel.engine.outcomes import LockedError
from bezel.engine.state.bucket import PreconditionError, StateBucket
from bezel.rest import RestError
from bezel_base.errors import Problem, one_line
from bezel_catalog.quantities import duration_text

TOKEN = "BEZEL_STACK_LOCK"  # noqa: S105 - the name of a variable
"""Variable: the token of the lock under which a command runs. A command below it takes no lock of its own."""
WATCH_SECONDS = 15.0
"""Seconds between two readings of a lock by its holder."""
BLIND_SECONDS = 60.0
"""How long a holder continues without being able to read its lock."""


@dataclass
class HeldLock:
    """A lock that this process, or one above it, holds.

    Attributes:
        states: The bucket.
        lock: The lock.
        generation: Its generation in the bucket.
        is_own: Whether this process took it, and releases it.
        lost: Why it is not held any more, "" while it is.
    """

    states: StateBucket
    lock: Lock
    generation: int
    is_own: bool
    lost: str = ""

    @property
    def name(self) -> str:
        """Name of the object."""
        return object_name(self.lock.project, self.lock.stack)

    @property
    def environment(self) -> dict[str, str]:
        """Variables for a command that runs under the lock."""
        return {TOKEN: self.lock.token}

    def look(self) -> bool:
        """Read the lock; return whether it is held. Once lost, it stays lost.

        Raises:
            RestError: It cannot be read.
        """
        if not self.lost:
            stored = self.states.read(self.name)
            other = None if stored is None else parse(stored[0])
            if stored is None:
                self.lost = "it was removed"
            elif other is None or other.token != self.lock.token:
                self.lost = f"it is held by {other.text if other else 'another version of bezel'}"
        return not self.lost

    def check(self) -> None:
        """Refuse to continue without the lock.

        Raises:
            LockedError: It is not held any more.
        """
        if self.lost:
            consequence = f"this run has lost the stack's lock: {self.lost}. Its command was ended."
            repair = "look at the other run, then run this command again: it reconciles what was interrupted."
            raise LockedError(Problem(f"stack {self.lock.stack}", None, consequence, repair))

    @contextlib.contextmanager
    def watch(self, interrupt: Callable[[], None] | None = None, seconds: float = WATCH_SECONDS) -> Iterator[None]:
        """Read the lock now and then while the block runs, and end the command if it is lost.

        It starts a thread: enter it once the command's process runs.

        Args:
            interrupt: Called if the lock is lost; by default it sends this process SIGTERM, after which an engine gets
                a limited time to end (bezel.engine.run.process).
            seconds: Between two readings.
        """
        ended = threading.Event()
        arguments = (ended, interrupt or _interrupt, seconds)
        threading.Thread(target=self._watch, args=arguments, daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def _watch(self, ended: threading.Event, interrupt: Callable[[], None], seconds: float) -> None:
        read = time.monotonic()
        while not ended.wait(seconds):
            try:
                self.look()
                read = time.monotonic()
            except RestError as error:
                if time.monotonic() - read > BLIND_SECONDS:
                    self.lost = f"it could not be read for {duration_text(BLIND_SECONDS)}: {one_line(error)}"
            if self.lost and not ended.is_set():
                interrupt()
                return

    def release(self, say: Callable[[str], None]) -> None:
        """Delete the lock if it is this one; a failure is reported, not raised: the next run takes the lock over."""
        if not self.is_own:
            return
        try:
            self.states.delete(self.name, self.generation)
        except PreconditionError:
            say(f"the lock of {self.lock.stack} was not released: another run has taken it over")
        except RestError as error:
            say(
                f"the lock of {self.lock.stack} was not released ({one_line(error)}); the next run takes it over once "
                "this run has ended"
            )


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
