import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gitops import forge as forges

ROOT = Path(__file__).parents[2]
BUILD_SECONDS = 900


def program(name: str) -> Path:
    """The folder of a program built from Go modules; skips the test where Go is missing, but not in CI."""
    if shutil.which("go") is None and not os.environ.get("CI"):
        pytest.skip("Go is not installed, so neither the forge nor act can be built")
    command = [sys.executable, str(ROOT / "tools" / "toolchain" / "go_programs.py"), name]
    built = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip())


@pytest.fixture(scope="module")
def forge(tmp_path_factory):
    """A forge of the module's own, with an empty repository."""
    with forges.running(program("gitea"), tmp_path_factory.mktemp("forge") / "gitea") as running:
        running.call("POST", "/user/repos", {"name": forges.REPOSITORY, "default_branch": "main", "private": False})
        yield running


@pytest.fixture(scope="module")
def act():
    """The program act."""
    return program("act") / "act"
