"""Progress of a long command: one line with the elapsed time. Leaves out the commands."""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TERMINAL_PERIOD_SECONDS = 1.0
LOG_PERIOD_SECONDS = 30.0
LAST_LINES = 15


class StepError(Exception):
    """A command failed; the text holds its last lines."""


def run(
    what: str, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> None:
    """Run `command` with its output in the file `log`; show `what` as progress until it ends.

    Raises:
        StepError: The command is missing, or ended with an exit code other than 0.
    """
    live = sys.stderr.isatty()
    period = TERMINAL_PERIOD_SECONDS if live else LOG_PERIOD_SECONDS
    started = time.monotonic()
    say(what, end="" if live else "\n")
    with log.open("w") as output:
        try:
            child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=env, cwd=cwd)
        except FileNotFoundError as error:
            raise StepError(f"{command[0]} is not installed") from error
        try:
            while True:
                try:
                    code = child.wait(timeout=period)
                    break
                except subprocess.TimeoutExpired:
                    seconds = time.monotonic() - started
                    say(f"{what} … {seconds:.0f} s", start="\r" if live else "", end="" if live else "\n")
        except BaseException:
            child.terminate()
            child.wait()
            raise
    seconds = time.monotonic() - started
    say(f"{what}: {'done' if code == 0 else 'failed'} after {seconds:.0f} s", start="\r\033[K" if live else "")
    if code:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-LAST_LINES:])
        raise StepError(f"`{' '.join(command)}` ended with exit code {code}:\n{tail}")


def say(text: str, *, start: str = "", end: str = "\n") -> None:
    """Print a line of progress to standard error."""
    sys.stderr.write(f"{start}{text}{end}")
    sys.stderr.flush()
