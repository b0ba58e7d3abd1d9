"""A command that a message names, found in it and run as it stands there."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.support.cli.repair_commands import commands_in
from tests.support.e2e.rehearsal import SECONDS, Rehearsal, Run


def command_in(text: str, beginning: str) -> str:
    """The one command of a text that begins so."""
    candidates = {one.removeprefix(".venv/bin/") for one in commands_in(text)}
    fitting = [one for one in candidates if one.startswith(beginning)]
    assert len(fitting) == 1, f"{sorted(candidates)} of:\n{text}"
    return fitting[0]


def run(rehearsal: Rehearsal, command: str, stack: str) -> Run:
    """Run it: `bezel local` on the rehearsal's cloud, `pulumi` with the stack chosen and its question answered."""
    program, *arguments = shlex.split(command)
    if program == "bezel":
        assert arguments[0] == "local", command
        return rehearsal.local(*arguments[1:])
    quiet = ["--skip-preview"] if arguments[0] in {"up", "destroy", "refresh"} else []
    ended = subprocess.run(
        [Path(sys.executable).parent / program, *arguments, "--yes", *quiet, "--stack", stack],
        cwd=rehearsal.folder,
        env=os.environ | rehearsal.variables(),
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return Run(ended.returncode, ended.stdout + ended.stderr)
