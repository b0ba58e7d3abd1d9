"""Sends a load and returns what was seen: one process where one core is enough, several where the load says so.

Owns the run: who sends, that the garbage collector stays away meanwhile, that Ctrl-C and SIGTERM end it with what there
is, and that someone is told how far it is. Leaves out every figure: `bezel.bench.metrics`.
"""

import contextlib
import gc
import signal
import threading
from collections.abc import Callable, Iterator
from time import monotonic_ns
from typing import Final

from bezel.bench.plan import Bodies, Load, TokenSource
from bezel.bench.plan_rules import checked
from bezel.bench.sample import Measured
from bezel.bench.sender import Sender

_TELL_SECONDS: Final = 2.0


def run_load(load: Load, bodies: Bodies, headers: TokenSource, show: Callable[[str], None]) -> Measured:
    """Send a load, and wait for every answer or its deadline.

    Every request is one sample, also one that failed: none is sent again. Ctrl-C and SIGTERM (in the main thread) end
    it early: what was open is marked as the client's own doing, and `client.interrupted` is set.

    Args:
        load: What is sent.
        bodies: What its requests say.
        headers: What authorises each request.
        show: Takes a line every two seconds, in another thread.

    Raises:
        UserError: The load cannot be sent, no connection can be made, or a worker died.
    """
    sender = Sender(checked(load), bodies, headers)
    with _interruptible(sender.interrupt), _told(sender, load, show):
        sender.connect()
        with _uncollected():
            return sender.send(monotonic_ns())


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
def _uncollected() -> Iterator[None]:
    """Without the garbage collector: a collection takes tens of milliseconds in a process with many samples."""
    was_on = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


@contextlib.contextmanager
def _told(sender: Sender, load: Load, show: Callable[[str], None]) -> Iterator[None]:
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(_TELL_SECONDS):
            begun, done, awaited = sender.progress()
            of = f" of {load.stop.requests}" if load.stop.requests else ""
            show(f"{done}{of} requests answered, {begun} begun, {awaited} awaited")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
