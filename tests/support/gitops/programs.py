"""Programs of the tests' forge, built once from their Go modules (`tools/go`)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gitops.working_copy import ROOT

BUILD_SECONDS = 900


def program(name: str) -> Path:
    """The folder of a program; skips the test where Go is missing, but not in CI."""
    if shutil.which("go") is None and not os.environ.get("CI"):
        pytest.skip("Go is not installed, so neither the forge nor act can be built")
    command = [sys.executable, str(ROOT / "tools" / "toolchain" / "go_programs.py"), name]
    built = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip())
