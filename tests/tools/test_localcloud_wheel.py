"""The README of localcloud, typed in a fresh environment with nothing but its wheel and what that asks for."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from bezel_base.process_status import processes_with_variable
from tests.support.docs.markdown import ROOT, blocks
from tests.support.tools.fresh_environment import FreshEnvironment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
README = ROOT / "packages" / "localcloud" / "README.md"
SECONDS = 250.0
MARK = "LOCALCLOUD_README"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> FreshEnvironment:
    """An environment of somebody who tests with pytest."""
    folder = tmp_path_factory.mktemp("fresh") / "environment"
    return FreshEnvironment.make(folder, wheels, "bezel-localcloud", "pytest")


def run(environment: FreshEnvironment, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": f"{environment.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
    return subprocess.run(
        command,
        cwd=folder,
        env=variables | {MARK: str(folder)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_commands_of_the_readme_run_as_they_are_typed(environment: FreshEnvironment, tmp_path: Path) -> None:
    install, *commands = blocks(README, "sh")[0].splitlines()
    assert install == "pip install --find-links dist bezel-localcloud"  # as `FreshEnvironment.make` has done
    ran = run(environment, tmp_path, "bash", "-euo", "pipefail", "-c", "\n".join(commands))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("localcloud at http://127.0.0.1:")
    for line in ('{"kind":"storage#buckets"}', "active: server-errors status=503", "serves a new project\n"):
        assert line in ran.stdout
    assert [path.name for path in tmp_path.iterdir()] == [".localcloud"]
    assert processes_with_variable(MARK, str(tmp_path)) == []


@pytest.mark.wide
def test_the_test_of_the_readme_passes_with_the_fixture(environment: FreshEnvironment, tmp_path: Path) -> None:
    assert not environment.installed & {"pulumi", "pytest-xdist", "google-auth"}
    (tmp_path / "test_shown.py").write_text(blocks(README, "python")[0])
    (tmp_path / "pytest.ini").write_text(blocks(README, "ini")[0])
    ran = run(environment, tmp_path, str(environment.python), "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout
    assert processes_with_variable(MARK, str(tmp_path)) == []


def test_serve_in_the_foreground_ends_with_its_starter(environment: FreshEnvironment, tmp_path: Path) -> None:
    (tmp_path / "buckets" / "own-bucket").mkdir(parents=True)
    command = "localcloud serve --temporary --enable run,secretmanager --seed buckets --json"
    assert f"`{command}`" in README.read_text().replace("\n", " ")
    # The shell is the starter: it reads the line, and ends.
    script = f"exec 3< <(exec {command} --parent $$); read -r line <&3; printf '%s' \"$line\""
    ran = run(environment, tmp_path, "bash", "-c", script)
    assert ran.returncode == 0, ran.stderr
    assert '"base": "http://127.0.0.1:' in ran.stdout
