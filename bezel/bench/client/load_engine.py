"""Sends a load and returns what was seen: one process where one core is enough, several where the load says so.

Owns the run: who sends, that Ctrl-C and SIGTERM end it with what there is, and that someone is told how far it is.
Leaves out every figure: `bezel.bench.metrics.definitions`.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Final, Protocol

from bezel.bench.client.sender import Sender
from bezel.bench.load.patterns import user_windows
from bezel.bench.load.plan import Bodies, Load, TokenSource, is_closed
from bezel.bench.load.plan_rules import checked
from bezel.bench.load.progress import progress_line
from bezel.bench.result.sample import Measured

_TELL_SECONDS: Final = 2.0


class Sending(Protocol):
    """Whoever sends: this process, or several."""

    def run(self) -> Measured:
        """Send all."""

    def interrupt(self) -> None:
        """Send nothing more and wait for nothing."""

    def progress(self) -> tuple[int, int, int, int]:
        """Requests begun, answered or failed, and awaited; for how long (ns) none of these was answered."""


def run_load(
    load: Load, bodies: Bodies, headers: TokenSource, show: Callable[[str], None], spill: Path | None = None
) -> Measured:
    """Send a load, and wait for every answer or its deadline.

    Every request is one sample, also one that failed: none is sent again. Where no request at all is answered for as
    long as a single one may take (`deadline_seconds`), the server hangs, and the load ends with what there is. Ctrl-C
    and SIGTERM (in the main thread) end it early: what was open is marked as the client's own doing, and
    `client.interrupted` is set.

    Args:
        load: What is sent.
        bodies: What its requests say.
        headers: What authorises each request.
        show: Takes a line every two seconds, in another thread.
        spill: A file that what was measured so far is kept in (of several workers with their numbers added).

    Raises:
        UserError: The load cannot be sent, no connection can be made, or a worker died.
    """
    checked(load)
    if is_closed(load.pattern):
        # A worker without a user would send none of its share.
        load = replace(load, workers=min(load.workers, len(user_windows(load))))
    sending: Sending
    if load.workers == 1:
        sending = Sender(load, bodies, headers, spill=spill)
    else:
        # Only here: what it imports is a third of the time in which a small load is ready.
        from bezel.bench.client.workers import Workers

        sending = Workers(load, bodies, headers, spill)
    with _interruptible(sending.interrupt), _told(sending.progress, load, show):
        return sending.run()


@contextlib.contextmanager
def _interruptible(interrupt: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def once(number: int, _: object) -> None:
        interrupt()
        # Whoever asks again does not want to wait.
        signal.signal(number, before[number])

    before = {int(number): signal.signal(number, once) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _told(progress: Callable[[], tuple[int, int, int, int]], load: Load, show: Callable[[str], None]) -> Iterator[None]:
    ended, began = threading.Event(), monotonic()

    def tell() -> None:
        while not ended.wait(_TELL_SECONDS):
            begun, done, _, silent = progress()
            show(progress_line(load, monotonic() - began, begun=begun, done=done, silent=silent / 1e9))

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
