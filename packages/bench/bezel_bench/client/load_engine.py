"""Load engine: sends a load in one process, or in several where the load requires it, and returns the samples.

Owns the run: the choice of sender, the end by Ctrl-C or SIGTERM with the samples so far, and the progress messages.
Leaves out every figure (`bezel_bench.metrics.definitions`).
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Final, Protocol

from bezel_base import ending_signals
from bezel_bench.client.sender import Sender
from bezel_bench.load.patterns import user_windows
from bezel_bench.load.plan import Bodies, Load, TokenSource, is_closed
from bezel_bench.load.plan_rules import check_load
from bezel_bench.load.progress import progress_line
from bezel_bench.result.sample import Measured

_TELL_SECONDS: Final = 2.0


class Sending(Protocol):
    """A sender of load: this process, or several."""

    def run(self) -> Measured:
        """Send everything."""

    def interrupt(self) -> None:
        """Send nothing more and wait for nothing."""

    def progress(self) -> tuple[int, int, int, int]:
        """Return requests begun, ended, and awaited, and for how long (ns) none of these got a response."""


def run_load(
    load: Load, bodies: Bodies, headers: TokenSource, show: Callable[[str], None], spill: Path | None = None
) -> Measured:
    """Send a load, and wait for every response or its deadline.

    Every request is one sample, also a failed one: none is sent again. Where no request gets a response for as long as
    a single one may take (`deadline_seconds`), the server hangs, and the load ends with the samples so far. Ctrl-C and
    SIGTERM (in the main thread) end it early: open requests are marked as ended by the client, and
    `client.interrupted` is set.

    Args:
        load: The load to send.
        bodies: The bodies of its requests.
        headers: Source of the headers that authorise each request.
        show: Receives a line every two seconds, in another thread.
        spill: A file for the samples so far (several workers append their numbers to its name).

    Raises:
        UserError: The load cannot be sent, no connection can be made, or a worker died.
    """
    check_load(load)
    if is_closed(load.pattern):
        # A worker without a user would send none of its share.
        load = replace(load, workers=min(load.workers, len(user_windows(load))))
    sending: Sending
    if load.workers == 1:
        sending = Sender(load, bodies, headers, spill=spill)
    else:
        # Imported here: its imports take a third of the start of a small load.
        from bezel_bench.client.workers import Workers

        sending = Workers(load, bodies, headers, spill)
    with _interruptible(sending.interrupt), _show_progress(sending.progress, load, show):
        return sending.run()


@contextlib.contextmanager
def _interruptible(interrupt: Callable[[], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def once(number: int, _: object) -> None:
        ending_signals.note(number)
        interrupt()
        # A second signal ends the process at once.
        signal.signal(number, before[number])

    before = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, once)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _show_progress(
    progress: Callable[[], tuple[int, int, int, int]], load: Load, show: Callable[[str], None]
) -> Iterator[None]:
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
