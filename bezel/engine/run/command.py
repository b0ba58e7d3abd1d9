"""Short commands of the engine with a time limit: their output, or an error. Leaves out long runs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bezel_base.errors import NOT_SET, Problem, UserError, caused_by

QUICK_SECONDS = 120.0
"""Time limit of a command that asks the backend only."""
PRIVATE = 0o077
"""The umask of every engine: its state, its backups and its events may hold secrets."""


class CommandError(UserError):
    """The command failed, or did not end in time."""


def pulumi_cli() -> str:
    """The path of the Pulumi CLI: beside this Python, else on PATH.

    Raises:
        UserError: There is none.
    """
    path = shutil.which("pulumi", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if path is None:
        consequence = "the Pulumi CLI is neither in this virtual environment nor on PATH."
        raise UserError(Problem("pulumi", None, consequence, "run `make setup`, or install the Pulumi CLI."))
    return path


def command_output(
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
    limit = min(seconds, _deadline())
    try:
        result = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=limit,
            umask=PRIVATE,
        )
    except subprocess.TimeoutExpired:
        consequence = f"it was ended after {limit:g} s: the state's backend or the cloud does not respond."
        repair = "check the network and the login, then run the same command again; nothing is lost by that."
        raise CommandError(Problem(f"`{name}`", None, consequence, repair)) from None
    if result.returncode:
        raise CommandError(f"{name}: {(result.stderr or result.stdout).strip()}")
    return result.stdout


def backend_problem(error: CommandError, environment: Mapping[str, str]) -> Problem:
    """The problem of a backend that a command could not read, in whose own words it ends.

    Args:
        error: Of the command.
        environment: Of the engine.
    """
    from bezel.engine.state.bucket import BACKEND  # late: for an error alone

    repair = f'set {BACKEND}, or `pulumi login`; on localcloud `eval "$(bezel local env)"` first.'
    problem = caused_by(error, BACKEND, "the backend cannot be read", repair)
    return Problem(BACKEND, environment.get(BACKEND) or NOT_SET, problem.consequence, problem.repair)


def _deadline() -> float:
    value = os.environ.get("BEZEL_DEADLINE_SECONDS") or "inf"
    try:
        return float(value)
    except ValueError:
        repair = "write seconds above 0, or unset it."
        raise CommandError(Problem("BEZEL_DEADLINE_SECONDS", value, "expected a number of seconds.", repair)) from None
