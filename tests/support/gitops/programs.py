"""Programs of the forge, built once from their Go modules (`tools/go`)."""

import subprocess
import sys
from pathlib import Path

from tests.support.gitops.working_copy import ROOT
from tests.support.needed_programs import need_program

BUILD_SECONDS = 900


def program_folder(name: str, *, is_shown: bool = False) -> Path:
    """The folder of a program, built if need be; its progress is shown on standard error if asked for.

    Raises:
        subprocess.CalledProcessError: It cannot be built; the text of the error is what the build printed.
    """
    command = [sys.executable, str(ROOT / "tools" / "toolchain" / "go_programs.py"), name]
    errors = None if is_shown else subprocess.PIPE
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=BUILD_SECONDS, check=True)
    return Path(made.stdout.strip())


def program(name: str) -> Path:
    """The folder of a program; skips the test where Go is missing, but not in CI."""
    need_program("go", f"builds {name}")
    try:
        return program_folder(name)
    except subprocess.CalledProcessError as error:
        raise AssertionError(error.stderr) from None
