"""The first steps of a contributor: `uv run pytest tests/catalog tests/planner` works where nothing was built."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.docs.markdown import PACKAGES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = ("tests/catalog", "tests/planner")


def missing(project: dict[str, Any], members: set[str]) -> set[str]:
    """Members of the workspace that `uv run` would not install with the project at the top."""
    named = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    return members - {text.partition("[")[0] for text in named}


def members() -> set[str]:
    return {tomllib.loads((package / "pyproject.toml").read_text())["project"]["name"] for package in PACKAGES} - {
        "bezel"
    }


def test_uv_run_installs_every_member_of_the_workspace() -> None:
    assert missing(tomllib.loads((ROOT / "pyproject.toml").read_text()), members()) == set()


def test_member_that_uv_run_leaves_out_is_noticed() -> None:
    project = {"project": {"dependencies": ["bezel-base[web]"]}, "dependency-groups": {"dev": ["ruff>=0.17"]}}
    assert missing(project, {"bezel-base", "bezel-smoke"}) == {"bezel-smoke"}


def collected(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Pytest in a clone without `.venv`, and with no program of the set-up on PATH."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(clone), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False, timeout=110)


@pytest.mark.slow
def test_clone_without_set_up_collects_the_rules_tests(tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    archive = ["tar", "-C", str(ROOT), "--null", "--files-from=-", "--ignore-failed-read", "-c"]
    packed = subprocess.run(archive, input=tracked, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-C", str(tmp_path), "-x"], input=packed, check=True)
    run = collected(tmp_path, "--collect-only", *FOLDERS)
    assert run.returncode == 0, run.stdout[-2000:]
    run = collected(tmp_path, "tests/catalog/test_look_up.py")
    assert run.returncode == 0, run.stdout[-2000:]
    assert not (tmp_path / ".venv").exists()
