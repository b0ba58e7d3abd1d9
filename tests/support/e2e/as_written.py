"""A command that a message names, found in it and run as it stands there."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.support.cli.repair_commands import commands_in
from tests.support.e2e.fault_harness import unpreviewed
from tests.support.e2e.rehearsal import SECONDS, Rehearsal, Run


def named(text: str, beginning: str) -> str:
    """The one command of a text that begins so."""
    found = {one.removeprefix(".venv/bin/") for one in commands_in(text)}
    fitting = [one for one in found if one.startswith(beginning)]
    assert len(fitting) == 1, f"{sorted(found)} of:\n{text}"
    return fitting[0]


def run(rehearsal: Rehearsal, command: str, stack: str) -> Run:
    """Run it: a recipe as the Makefile does, `pulumi` alone with the stack chosen and its question answered."""
    program, *words = shlex.split(command)
    if program == "make":
        recipe, given = words
        name, _, value = given.partition("=")
        assert (name, value) == ("STACK", stack), command
        return rehearsal.local(recipe, stack, *unpreviewed())
    if program == "bezel":
        assert words[0] == "local", command
        return rehearsal.local(*words[1:])
    quiet = ["--skip-preview"] if words[0] in {"up", "destroy", "refresh"} else []
    ended = subprocess.run(
        [Path(sys.executable).parent / program, *words, "--yes", *quiet, "--stack", stack],
        cwd=rehearsal.folder,
        env=os.environ | rehearsal.variables(),
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return Run(ended.returncode, ended.stdout + ended.stderr)
