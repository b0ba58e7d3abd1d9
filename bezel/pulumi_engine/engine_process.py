"""Process of the engine: in a session of its own, interrupted when this process ends, and never left running.

The engine gets a signal to this command once, from here only, whichever processes it was sent to. Every Ctrl-C is
forwarded, and the engine takes the time it needs; a second one makes it abandon the changes under way. After SIGTERM,
SIGHUP (the terminal was closed) and a kill of this process no second request can come. Then the guard, a shell reading
a pipe whose other end only this process holds, interrupts the engine, once more after a minute, and kills it ten
seconds later. Leaves out changes whose outcome is unknown: see `recover`.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from bezel.pulumi_engine.pulumi_command import PRIVATE

PATIENCE = (60, 10)
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
"""
_MAKES = frozenset({"make", "gmake"})
_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_NAMES = {signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP: its terminal was closed"}


@dataclass(frozen=True)
class Ended:
    """End of an engine command: its exit code, and whether a signal had requested it."""

    code: int
    interrupted: bool


def run_to_end(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    held: Sequence[int] = (),
    patience: tuple[int, int] = PATIENCE,
) -> Ended:
    """Run the engine with this process's streams, and wait for its end, whatever signals this process gets.

    Args:
        command: The program and its arguments.
        folder: Its working directory.
        environment: Its complete environment.
        held: Descriptors that stay open as long as the engine lives.
        patience: See `PATIENCE`.
    """
    outlet, inlet = os.pipe()
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", *map(str, patience)],
        stdin=outlet,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath},
        start_new_session=True,
    )
    os.close(outlet)
    asked = _Asked(inlet)
    try:
        with asked.heard():
            engine = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                pass_fds=held,
                start_new_session=True,
                umask=PRIVATE,
                restore_signals=False,  # SIGPIPE stays ignored: a closed output does not end it
                # The engine writes its process id to the guard itself, so it never runs unguarded.
                preexec_fn=lambda: os.write(inlet, b"%d\n" % os.getpid()),  # noqa: PLW1509 - no other thread here
            )
            asked.hand_on(engine)
            return Ended(engine.wait(), asked.ever)
    finally:
        guard.kill()
        guard.wait()
        asked.close()


def end_with_make() -> None:
    """Get SIGTERM when the `make` that started this process ends in any way. On Linux only.

    A `make` that gets SIGTERM forwards it; a killed one forwards nothing.
    """
    parent = os.getppid()
    try:
        if Path(f"/proc/{parent}/comm").read_text().strip() not in _MAKES:
            return
    except OSError:
        return
    import ctypes  # late: only a start by `make` needs it

    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


@dataclass
class _Asked:
    """Signals to this process, forwarded to the engine as soon as it runs."""

    lifeline: int
    ever: bool = False
    waiting: list[int] = field(default_factory=list)
    engine: "subprocess.Popen[bytes] | None" = None

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Handle the signals; one that this process was started to ignore stays ignored."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.getsignal(number) for number in numbers}
        heard = [number for number in numbers if before[number] is not signal.SIG_IGN]
        try:
            for number in heard:
                signal.signal(number, self._hear)
            yield
        finally:
            for number in heard:
                signal.signal(number, before[number])

    def hand_on(self, engine: "subprocess.Popen[bytes]") -> None:
        """Forward signals to the engine from here on, with those that came before it ran."""
        self.engine = engine
        self._tell()

    def close(self) -> None:
        """Close the lifeline: if the engine still runs, the guard interrupts it."""
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.ever = True
        self.waiting.append(number)
        self._tell()

    def _tell(self) -> None:
        while self.waiting and self.engine is not None:
            number = self.waiting.pop(0)
            if number == signal.SIGINT:
                self.engine.send_signal(signal.SIGINT)
            elif self.lifeline >= 0:
                self.close()
                _say(
                    f"asked to end ({_NAMES[signal.Signals(number)]}): pulumi (process {self.engine.pid}) ends what is "
                    f"under way, in {sum(PATIENCE)} s at most; the next run finds out about what had no end by then"
                )


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # a closed output is no reason to leave the engine alone
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
