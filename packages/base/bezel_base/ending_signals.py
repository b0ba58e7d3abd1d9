"""Signals that end this process: SIGTERM and SIGHUP end a command as Ctrl-C does, and the exit code names the signal.

Owns the last such signal of the process, since only the handler that received it knows its number. A handler of a
part of the program, e.g. of a running engine or load, notes it here. Leaves out what each command does at its end.
"""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final

_LIKE_INTERRUPT = (signal.SIGTERM, signal.SIGHUP)
# A signal that comes just before a blocking call, or to another thread, does not interrupt that call: Python would run
# its handler only once the call returns. A timer's signal interrupts the call, and then Python runs both handlers.
_WAKE_SECONDS = 1.0
INTERRUPTED: Final = 130  # 128 and the number of SIGINT
"""Exit code after Ctrl-C."""

_last: int | None = None


class Stopped(KeyboardInterrupt):
    """A signal ends the process, where no handler of Ctrl-C does it."""


def note(number: int) -> None:
    """Note that a signal ends what runs."""
    global _last  # noqa: PLW0603 - signals are the process's
    _last = number


def forget() -> None:
    """Forget the last signal: a process may run one command after another."""
    global _last  # noqa: PLW0603 - signals are the process's
    _last = None


def exit_code() -> int | None:
    """The exit code of a command that the last signal has ended, 128 and its number; None if none came."""
    return None if _last is None else 128 + _last


@contextlib.contextmanager
def handle() -> Iterator[None]:
    """End the block on SIGTERM and SIGHUP by the handler that SIGINT has at that moment, within a second.

    Only what no signal interrupts takes longer: the lookup of a name, and a thread that an event loop waits for.
    A signal that this process was started to ignore stays ignored; so does one with a handler already.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in _LIKE_INTERRUPT if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _end)
    try:
        with _interrupt_blocking_calls():
            yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Let an interrupt of the block end it only once it is done, e.g. when what was started has a name."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[FrameType | None] = []
    before = signal.signal(signal.SIGINT, lambda _number, frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came and callable(before):
            before(signal.SIGINT, came[0])


@contextlib.contextmanager
def kept_from_children() -> Iterator[None]:
    """Block SIGINT in processes that the block starts: Ctrl-C reaches the whole group, also those that just begin.

    To this process an interrupt of the block comes at its end. For processes of `multiprocessing`: its resource tracker
    lets a thread have the signal again as it begins, so it begins before.
    """
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _interrupt_blocking_calls() -> Iterator[None]:
    """Interrupt blocking calls of the main thread again and again, unless the timer is in use."""
    if signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, _WAKE_SECONDS, _WAKE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    note(number)
    interrupt = signal.getsignal(signal.SIGINT)
    if callable(interrupt):
        interrupt(signal.SIGINT, frame)
    else:
        raise Stopped
