"""The first steps of a contributor: `uv run pytest packages/catalog` works where nothing was built."""

from __future__ import annotations

import re
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.docs.markdown import PACKAGES, ROOT
from tests.support.tools.fresh_environment import FreshEnvironment

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = ("packages/catalog", "tests/planner")


def installed_by_uv_run(project: dict[str, Any]) -> list[str]:
    """Requirements of the project at the top and of the groups that uv installs with it by default."""
    groups = project["tool"]["uv"]["default-groups"]
    return [
        *project["project"]["dependencies"],
        *(text for group in groups for text in project["dependency-groups"][group]),
    ]


def missing(project: dict[str, Any], members: set[str]) -> set[str]:
    """Members of the workspace that `uv run` would not install with the project at the top."""
    return members - {re.split(r"[\[=<>]", text)[0] for text in installed_by_uv_run(project)}


def read_project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def members() -> set[str]:
    return {tomllib.loads((package / "pyproject.toml").read_text())["project"]["name"] for package in PACKAGES} - {
        "bezel"
    }


def test_uv_run_installs_every_member_of_the_workspace() -> None:
    assert missing(read_project(), members()) == set()


def test_member_that_uv_run_leaves_out_is_noticed() -> None:
    project = {
        "project": {"dependencies": ["bezel-base[web]"]},
        "dependency-groups": {"test": ["pytest>=9.2"], "dev": ["bezel-smoke"]},
        "tool": {"uv": {"default-groups": ["test"]}},
    }
    assert missing(project, {"bezel-base", "bezel-smoke"}) == {"bezel-smoke"}


def test_uv_run_leaves_out_tools_of_lint_and_browsers() -> None:
    names = {text.partition(">")[0] for text in installed_by_uv_run(read_project())}
    assert "pytest" in names
    assert not names & {"mypy", "playwright", "ruff", "zizmor"}


def pytest_in(clone: Path, environment: FreshEnvironment, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Pytest in a clone without `.venv`, and with no program of the set-up on PATH."""
    command = [str(environment.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(clone), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=clone, env=variables, capture_output=True, text=True, check=False, timeout=110)


@pytest.mark.wide
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_clone_without_set_up_runs_the_rules_tests(tmp_path: Path, wheels: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    archive = ["tar", "-C", str(ROOT), "--null", "--files-from=-", "--ignore-failed-read", "-c"]
    packed = subprocess.run(archive, input=tracked, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-C", str(clone), "-x"], input=packed, check=True)
    environment = FreshEnvironment.make(tmp_path / "environment", wheels, "bezel", *installed_by_uv_run(read_project()))
    for folder in FOLDERS:
        run = pytest_in(clone, environment, "--collect-only", folder)
        assert run.returncode == 0, run.stdout[-2000:]
    run = pytest_in(clone, environment, "packages/catalog/tests/test_look_up.py")
    assert run.returncode == 0, run.stdout[-2000:]
    assert not (clone / ".venv").exists()
