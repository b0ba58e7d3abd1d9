"""Short commands of the engine with a time limit: their output, or an error. Leaves out long runs."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bezel.errors import UserError

PRIVATE = 0o077
"""The umask of every engine: its state, its backups and its events may hold secrets."""


class CommandError(UserError):
    """The command failed, or did not end in time; the text says which, and what to do."""


def printed(
    command: Sequence[str], *, folder: Path, seconds: float, environment: Mapping[str, str] | None = None
) -> str:
    """Run a command and return its output.

    Args:
        command: The program and its arguments.
        folder: Its working directory.
        seconds: Its time limit; `BEZEL_DEADLINE_SECONDS` in the environment may lower it.
        environment: Its complete environment; this process's own by default.

    Raises:
        CommandError: The command failed, or was ended because it took too long.
    """
    name = " ".join([Path(command[0]).name, *command[1:2]])
    most = min(seconds, _asked())
    try:
        answer = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=most,
            umask=PRIVATE,
        )
    except subprocess.TimeoutExpired:
        raise CommandError(
            f"`{name}` did not end within {most:g} s and was ended: the state's backend or the cloud does not answer. "
            "Look at the network and the login, then run the same command again; nothing is lost by that."
        ) from None
    if answer.returncode:
        raise CommandError(f"{name}: {(answer.stderr or answer.stdout).strip()}")
    return answer.stdout


def _asked() -> float:
    given = os.environ.get("BEZEL_DEADLINE_SECONDS") or "inf"
    try:
        return float(given)
    except ValueError:
        raise CommandError(
            f"BEZEL_DEADLINE_SECONDS={given} is no time to wait: write seconds above 0, or unset it."
        ) from None
