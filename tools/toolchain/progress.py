"""Progress of a long command: one line with the elapsed time. Leaves out the commands."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

TERMINAL_PERIOD_SECONDS = 1.0
LOG_PERIOD_SECONDS = 30.0
LAST_LINES = 15


class StepError(Exception):
    """A command failed; the text holds its last lines."""


class Step:
    """A running command, as a context manager that ends it unless it has ended.

    Raises:
        StepError: The command is missing.
    """

    def __init__(
        self,
        what: str,
        command: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._what, self._command, self._log = what, command, log
        self._started = time.monotonic()
        with log.open("w") as output:
            try:
                self._child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env, cwd=cwd)
            except FileNotFoundError as error:
                raise StepError(f"{command[0]} is not installed") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child.poll() is None:
            self._child.terminate()
            self._child.wait()

    def wait(self) -> None:
        """Show progress until the command ends.

        Raises:
            StepError: It ended with an exit code other than 0.
        """
        live = sys.stderr.isatty()
        period = TERMINAL_PERIOD_SECONDS if live else LOG_PERIOD_SECONDS
        say(self._what, end="" if live else "\n")
        while True:
            try:
                code = self._child.wait(timeout=period)
                break
            except subprocess.TimeoutExpired:
                text = f"{self._what} … {self._seconds():.0f} s"
                say(text, start="\r" if live else "", end="" if live else "\n")
        end = "done" if code == 0 else "failed"
        say(f"{self._what}: {end} after {self._seconds():.0f} s", start="\r\033[K" if live else "")
        if code:
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-LAST_LINES:])
            raise StepError(f"`{' '.join(self._command)}` ended with exit code {code}:\n{tail}")

    def _seconds(self) -> float:
        return time.monotonic() - self._started


def run(
    what: str, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> None:
    """Run `command` with its output in the file `log`; show `what` as progress until it ends.

    Raises:
        StepError: The command is missing, or ended with an exit code other than 0.
    """
    with Step(what, command, log=log, env=env, cwd=cwd) as step:
        step.wait()


def say(text: str, *, start: str = "", end: str = "\n") -> None:
    """Print a line of progress to standard error."""
    sys.stderr.write(f"{start}{text}{end}")
    sys.stderr.flush()
