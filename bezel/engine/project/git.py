"""Calls of git, each with a deadline; none asks for a password. Leaves out what an output means."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bezel_base.errors import Problem, UserError

_SECONDS = 120.0


class GitError(Exception):
    """git failed; the text is its own."""


def git(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """The output of git, without newlines at its end.

    Args:
        folder: Of the checkout, or below it.
        arguments: Of git.
        variables: Added to those of this process.

    Raises:
        GitError: It failed.
        UserError: It is missing, or did not end in time.
    """
    try:
        ended = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
            timeout=_SECONDS,
            env=os.environ | {"GIT_TERMINAL_PROMPT": "0"} | dict(variables or {}),
        )
    except FileNotFoundError:
        raise UserError(Problem("git", None, "it is not on PATH.", "install git, or add its folder to PATH.")) from None
    except subprocess.TimeoutExpired:
        consequence = f"git {arguments[0]} did not end within {_SECONDS:g} s."
        raise UserError(Problem("git", None, consequence, "check the disk, then run the same command again.")) from None
    if ended.returncode:
        raise GitError(ended.stderr.strip())
    return ended.stdout.rstrip("\n")
