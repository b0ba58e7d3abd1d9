"""Command run under a stack's lock: its streams are this process's, signals are forwarded, its exit code is returned.

Leaves out the lock. If this process is killed, the command gets SIGTERM (on Linux), so that it does not run without it.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

from bezel.engine.locks.held import WATCH_SECONDS, HeldLock
from bezel.engine.run.process import GRACE_SECONDS
from bezel_base.errors import Problem, UserError
from bezel_base.process_status import end_session

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def run_under(
    held_lock: HeldLock, command: Sequence[str], environ: Mapping[str, str], *, watch_seconds: float = WATCH_SECONDS
) -> int:
    """Run a command to its end and return its exit code, 128 and the signal's number if a signal ended it.

    Args:
        held_lock: The lock; the command is ended if it is lost, as fast as the next owner counts on.
        command: The program and its arguments.
        environ: Its variables; it gets the lock's as well.
        watch_seconds: Between two readings of the lock.

    Raises:
        UserError: The program cannot be started.
        LockedError: The lock was lost while it ran.
    """
    with _forward_signals() as forward_to:
        try:
            process = subprocess.Popen(
                command,
                env={**environ, **held_lock.environment},
                start_new_session=True,  # signals reach it from here only, once
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - the watch's thread starts after it
            )
        except OSError as error:
            consequence = f"it cannot be started: {error.strerror}."
            raise UserError(Problem("COMMAND", command[0], consequence, "check its name and PATH.")) from None
        forward_to(process)
        with held_lock.watch(lambda: _end(process), watch_seconds):
            code = process.wait()
    if code < 0:
        end_session(process.pid)  # the plugins of an engine that was killed
    held_lock.check()
    return code if code >= 0 else 128 - code


class _Forward:
    """Signals to this process, for the command's process as soon as it runs."""

    def __init__(self) -> None:
        self._early: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, process: "subprocess.Popen[bytes]") -> None:
        """Forward to a process from here on, and the signals that came before it ran."""
        self._process = process
        while self._early:
            process.send_signal(self._early.pop(0))

    def receive(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal."""
        if self._process is None:
            self._early.append(number)
        else:
            self._process.send_signal(number)


@contextlib.contextmanager
def _forward_signals() -> Iterator[_Forward]:
    """Forward signals; one that this process was started to ignore stays ignored."""
    forward = _Forward()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    try:
        for number in before:
            signal.signal(number, forward.receive)
        yield forward
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process: two requests, then a kill, in the time that an engine gets elsewhere too."""
    for number, seconds in ((signal.SIGTERM, GRACE_SECONDS[0]), (signal.SIGTERM, GRACE_SECONDS[1])):
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            return
    process.kill()


def _end_with_parent() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() == 1:
            os.kill(os.getpid(), signal.SIGTERM)
