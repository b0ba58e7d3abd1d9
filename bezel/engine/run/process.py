"""Process of the engine: in a session of its own, interrupted when this process ends, and never left running.

The engine gets a signal to this command once, from here only, whichever processes it was sent to. Every Ctrl-C is
forwarded, and the engine takes the time it needs; a second one makes it abandon the changes under way. After SIGTERM,
SIGHUP (the terminal was closed) and a kill of this process no second request can come. Then the guard, a shell reading
a pipe whose other end only this process holds, interrupts the engine, once more after a minute, and kills it ten
seconds later.

An engine ends its plugins, but a killed one cannot: the language host looks for its engine and ends, a process of
dynamic resources waits for ever (`pulumi.dynamic`, SDK 3.272). They are in the engine's session, so whatever is left
of that is ended too, here or by the guard. Leaves out changes whose outcome is unknown: see `recover`.
"""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bezel.engine.run.command import PRIVATE
from bezel_base import ending_signals
from bezel_base.console import say
from bezel_base.process_status import end_session

GRACE_SECONDS = (60, 10)
"""Seconds from the guard's first interrupt to its second, and from there to the kill."""
_GUARD = """
read -r engine || exit
read -r _
kill -s INT "$engine"
waited=0
while kill -s 0 "$engine" && [ $waited -le $(($1 + $2)) ]; do
  if [ $waited -eq $1 ]; then kill -s INT "$engine"; fi
  if [ $waited -eq $(($1 + $2)) ]; then kill -s KILL "$engine"; fi
  waited=$((waited + 1))
  sleep 1
done
for file in /proc/[0-9]*/stat; do
  read -r line < "$file" || continue
  set -- ${line##*) }
  if [ "$4" = "$engine" ]; then process=${file#/proc/}; kill -s KILL "${process%/stat}"; fi
done
"""
_LOOK_SECONDS = 0.2
_MAKES = frozenset({"make", "gmake"})
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_NAMES = {signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP (the terminal was closed)"}


@dataclass(frozen=True)
class End:
    """End of an engine command: its exit code, and whether a signal or its time limit had requested it."""

    code: int
    interrupted: bool
    timed_out: bool = False


class Streams(NamedTuple):
    """Descriptors of the engine's standard output and error, and those that stay open as long as it lives.

    `held_descriptors` has the reading end of a pipe that this process reads: Go ends a program by SIGPIPE, whether that
    is ignored or not, once it writes to a pipe whose readers have ended, so a kill of this process would kill the
    engine too.
    """

    out: int
    err: int
    held_descriptors: tuple[int, ...] = ()


def run_to_end(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    held_descriptors: Sequence[int] = (),
    grace: tuple[int, int] = GRACE_SECONDS,
    meanwhile: contextlib.AbstractContextManager[None] | None = None,
    streams: Streams | None = None,
    seconds: float | None = None,
    cancelled: threading.Event | None = None,
) -> End:
    """Run the engine, and wait for its end, whatever signals this process gets.

    In another thread than the main one this process's signals are left alone, and `cancelled` ends the run.

    Args:
        command: The program and its arguments.
        folder: Its working directory.
        environment: Its complete environment.
        held_descriptors: Descriptors that stay open as long as the engine lives.
        grace: See `GRACE_SECONDS`.
        meanwhile: Entered while the engine runs, and only once it does: it may start threads.
        streams: Its standard output and error; this process's own by default.
        seconds: Its time limit: then the guard ends it, as after a SIGTERM.
        cancelled: Ends the run in the same way as soon as it is set.
    """
    out, err, of_streams = streams or (None, None, ())
    outlet, inlet = os.pipe()
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", *map(str, grace)],
        stdin=outlet,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath},
        start_new_session=True,
    )
    os.close(outlet)
    signals = _Signals(inlet)
    try:
        with signals.handle():
            engine = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdout=out,
                stderr=err,
                pass_fds=(*held_descriptors, *of_streams),
                start_new_session=True,
                umask=PRIVATE,
                restore_signals=False,  # SIGPIPE stays ignored: a closed output does not end it
                # The engine writes its process id to the guard itself, so it never runs unguarded.
                preexec_fn=lambda: os.write(inlet, b"%d\n" % os.getpid()),  # noqa: PLW1509 - no other thread here
            )
            signals.forward_to(engine)
            with meanwhile or contextlib.nullcontext():
                code, timed_out = _await_end(engine, seconds, cancelled, signals)
            if code < 0:
                end_session(engine.pid)
            return End(code, signals.received, timed_out)
    finally:
        guard.kill()
        guard.wait()
        signals.close()


def _await_end(
    engine: "subprocess.Popen[bytes]", seconds: float | None, cancelled: threading.Event | None, signals: "_Signals"
) -> tuple[int, bool]:
    """The engine's exit code, and whether its time limit was reached; the guard ends it then, or once cancelled."""
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        left = None if end is None else max(0.0, end - time.monotonic())
        pause = left if cancelled is None else min(_LOOK_SECONDS, _LOOK_SECONDS if left is None else left)
        try:
            return engine.wait(pause), False
        except subprocess.TimeoutExpired:
            if cancelled is not None and cancelled.is_set():
                signals.received, cancelled = True, None
                signals.close()
            elif end is not None and time.monotonic() >= end:
                signals.close()
                return engine.wait(), True


def end_with_make() -> None:
    """Get SIGTERM when the `make` that started this process ends in any way. On Linux only.

    A `make` that gets SIGTERM forwards it; a killed one forwards nothing.
    """
    parent = os.getppid()
    try:
        if Path(f"/proc/{parent}/comm").read_text(encoding="utf-8").strip() not in _MAKES:
            return
    except OSError:
        return
    import ctypes  # late: only a start by `make` needs it

    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


@dataclass
class _Signals:
    """Signals to this process, forwarded to the engine as soon as it runs."""

    lifeline: int
    received: bool = False
    waiting: list[int] = field(default_factory=list)
    engine: "subprocess.Popen[bytes] | None" = None

    @contextlib.contextmanager
    def handle(self) -> Iterator[None]:
        """Handle the signals; one that this process was started to ignore stays ignored."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.getsignal(number) for number in numbers}
        before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
        try:
            for number in before:
                signal.signal(number, self._receive)
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def forward_to(self, engine: "subprocess.Popen[bytes]") -> None:
        """Forward signals to the engine from here on, with those that came before it ran."""
        self.engine = engine
        self._forward()

    def close(self) -> None:
        """Close the lifeline: if the engine still runs, the guard interrupts it."""
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def _receive(self, number: int, _frame: object) -> None:
        ending_signals.note(number)
        self.received = True
        self.waiting.append(number)
        self._forward()

    def _forward(self) -> None:
        while self.waiting and self.engine is not None:
            number = self.waiting.pop(0)
            if number == signal.SIGINT:
                self.engine.send_signal(signal.SIGINT)
            elif self.lifeline >= 0:
                self.close()
                with contextlib.suppress(OSError):  # a closed output is no reason to leave the engine alone
                    say(
                        f"{_NAMES[signal.Signals(number)]}: pulumi (process {self.engine.pid}) completes its running "
                        f"operations, in {sum(GRACE_SECONDS)} s at most; the next run reconciles the others"
                    )
