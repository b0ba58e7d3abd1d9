"""The tests of a package import what the package depends on, and run with its wheel alone."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from tests.support.source_nodes import nodes_of
from tests.support.tools.fresh_environment import FreshEnvironment, without_this_clone

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
# Package -> the folders of its fast tests that are run, and how many they are at least.
RUN_ALONE = {
    "base": ("tests", 100),
    "bench": ("tests/report", 60),
    "catalog": ("tests", 150),
    "door": ("tests", 80),
    "localcloud": ("tests/registry tests/storage tests/api tests/identity", 180),
    "pulumi-offline": ("tests", 150),
    "simulated-vllm": ("tests", 220),
}
# Package -> the slow tests that are run as well: those of whole processes.
SLOW = {"pulumi-offline": "tests/test_process.py"}
SECONDS = 200


def read_project(package: str) -> dict:
    return tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text(encoding="utf-8"))


def tools_of(package: str) -> list[str]:
    """What the tests need beside the package."""
    return read_project(package)["dependency-groups"]["dev"]


def names_of(requirements: list[str]) -> set[str]:
    return {re.sub(r"[-_.]+", "-", Requirement(text).name).lower() for text in requirements}


def imported_names(source: str) -> Iterator[str]:
    """The uppermost names of the modules that a source imports."""
    for node in nodes_of(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@cache
def _distributions() -> dict[str, list[str]]:
    """Distributions by the modules that they install; those of the workspace are installed by their folders' paths."""
    return dict(packages_distributions())


def strangers(package: str, source: str) -> set[str]:
    """The modules that a test's source imports and that neither the package nor its tests may need."""
    project = read_project(package)["project"]
    allowed = names_of([project["name"], *project["dependencies"], *tools_of(package)])
    support = f"{package.replace('-', '_')}_support"
    return {
        name
        for name in imported_names(source)
        if name not in sys.stdlib_module_names
        and name != support
        and not names_of(_distributions().get(name, [name])) & allowed
    }


@pytest.mark.slow
@pytest.mark.parametrize("package", RUN_ALONE)
def test_package_tests_import_only_their_dependencies(package: str) -> None:
    files = sorted((ROOT / "packages" / package / "tests").rglob("*.py"))
    assert len(files) > 5
    found_strangers = {
        str(path.relative_to(ROOT)): strangers(package, path.read_text(encoding="utf-8")) for path in files
    }
    assert {path: names for path, names in found_strangers.items() if names} == {}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("from bezel.planner import make_plan", "bezel"),
        ("from tools.docs import reports", "tools"),
        ("from tests.support.record_results import check_results", "tests"),
        ("from localcloud_support.client import Client", "localcloud_support"),
        ("import bezel_bench.load", "bezel_bench"),
    ],
)
def test_foreign_import_of_package_test_is_reported(line: str, name: str) -> None:
    assert strangers("catalog", f"import json\nimport pytest\n{line}\n") == {name}


@pytest.mark.wide_except("catalog")
@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 100)
@pytest.mark.parametrize("package", RUN_ALONE)
def test_package_tests_pass_with_its_wheel_alone(wheels: Path, tmp_path: Path, package: str) -> None:
    part, least = RUN_ALONE[package]
    name = read_project(package)["project"]["name"]
    environment = FreshEnvironment.make(tmp_path / "environment", wheels, name, *tools_of(package))
    folder = tmp_path / package
    folder.mkdir()
    shutil.copy(ROOT / "packages" / package / "pyproject.toml", folder)
    shutil.copy(ROOT / "conftest.py", folder)  # of each table two cases, as in `make check`
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "packages" / package / "tests", folder / "tests", ignore=ignored)
    assert count_passed(environment, folder, "not slow", part) >= least
    if package in SLOW:
        assert count_passed(environment, folder, "slow", SLOW[package]) >= 1


def count_passed(environment: FreshEnvironment, folder: Path, selection: str, paths: str) -> int:
    """Run tests, which have to pass, and return how many they are."""
    with TemporaryDirectory() as temporary:  # a short path: that of a socket has at most 107 characters
        options = ["-q", "-p", "no:cacheprovider", f"--basetemp={temporary}/pytest", "-m", selection]
        run = subprocess.run(
            [environment.python, "-m", "pytest", *options, *paths.split()],
            cwd=folder,
            env=without_this_clone(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed is not None
    return int(passed[1])
