"""The wheel holds what another program imports, and the files that its modules read."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("bezel", "bootstrap", "components", "policies", "smoke", "stacks")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    tool = str(ROOT / "tools" / "release" / "wheel.py")
    subprocess.run([sys.executable, tool, str(folder)], check=True, capture_output=True, timeout=120)
    return set(zipfile.ZipFile(next(folder.glob("*.whl"))).namelist())


@pytest.mark.slow
def test_every_file_of_the_packages_is_in_the_wheel(files: set[str]) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60
    ).stdout.split()
    assert set(tracked) - files == set()


@pytest.mark.slow
def test_each_package_says_that_it_is_typed(files: set[str]) -> None:
    assert {f"{package}/py.typed" for package in PACKAGES} <= files


def test_nothing_else_is_in_the_wheel(files: set[str]) -> None:
    assert {name.split("/")[0] for name in files if ".dist-info/" not in name} == set(PACKAGES)
