import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.gitops import forge as forges
from tests.support.gitops.runner import end_group

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


@contextmanager
def runner_of(forge, folder, *, environment=None, issuer=None, jobs=2):
    """A runner process of the repository, with its own environment."""
    folder.mkdir(parents=True)
    registration = forge.repository("POST", "/actions/runners/registration-token")["token"]
    act = program("act") / "act"
    settings = {"forge": forge.url, "registration": registration, "act": str(act), "jobs": jobs, "issuer": issuer}
    (folder / "runner.json").write_text(json.dumps(settings))
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.gitops.runner", str(folder)],
            cwd=ROOT, env=environment or os.environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        end_group(process)
        process.wait(timeout=30)
