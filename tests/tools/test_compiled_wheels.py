"""The compiled engine is released for the client of the same commit, and its platforms hold up nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tools.release.compiled import main
from tools.release.version import files, versions

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "packages" / "bench" / "compiled"
SETTINGS = tomllib.loads((PROJECT / "pyproject.toml").read_text())
VERSION = SETTINGS["project"]["version"]
COMPILED, CLIENT = "packages/bench/compiled/pyproject.toml", "packages/bench/pyproject.toml"


def jobs(name: str) -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())["jobs"]
    return read


def pythons_without_wheel(pythons: Sequence[str], selection: Sequence[str]) -> set[str]:
    return {python for python in pythons if f"cp{python.replace('.', '')}-*" not in selection}


def waiting_for(workflow: dict[str, dict[str, Any]], job: str) -> set[str]:
    return {name for name, other in workflow.items() if job in (other.get("needs") or "")}


@pytest.mark.parametrize(
    ("file", "place"),
    [
        (COMPILED, f'version = "{VERSION}"'),
        (COMPILED, f'\nrequires = [\n  "bezel-bench=={VERSION}"'),
        (COMPILED, f'test-requires = [\n  "bezel-bench=={VERSION}"'),
        (CLIENT, f'version = "{VERSION}"'),
        (CLIENT, f'compiled = [\n  "bezel-bench-compiled=={VERSION}"'),
    ],
    ids=["version", "build", "test", "client", "extra"],
)
def test_each_version_of_client_and_build_is_compared(tmp_path: Path, file: str, place: str) -> None:
    for source in files(ROOT):
        copy = tmp_path / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    assert set(versions(tmp_path)) == {VERSION}
    text = (tmp_path / file).read_text()
    assert text.count(place) == 1
    (tmp_path / file).write_text(text.replace(place, place.replace(VERSION, "9.9.9")))
    assert versions(tmp_path)["9.9.9"] == [file]


def test_every_python_that_the_checks_run_on_has_a_wheel() -> None:
    (checked,) = (job["strategy"]["matrix"]["python"] for job in jobs("check.yml").values() if "strategy" in job)
    selection = SETTINGS["tool"]["cibuildwheel"]["build"]
    assert pythons_without_wheel(checked, selection) == set()
    assert pythons_without_wheel([*checked, "3.99"], selection) == {"3.99"}


def test_a_platform_that_fails_holds_up_no_other_job() -> None:
    release = jobs("release.yml")
    assert waiting_for(release, "publish") == {"compiled"}
    assert waiting_for(release, "compiled") == set()
    assert release["compiled"]["strategy"]["fail-fast"] is False


def test_a_forge_without_the_runners_skips_the_platforms() -> None:
    job = jobs("release.yml")["compiled"]
    condition = job["if"]
    assert job["runs-on"] == f"${{{{ {condition} && matrix.runner || '{jobs('release.yml')['publish']['runs-on']}' }}}}"


def test_wheels_are_not_built_among_other_files_or_without_the_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == 2
    assert main([str(tmp_path / "new")]) == 1
    assert "run `python3 tools/toolchain wheels`" in capsys.readouterr().err
    (tmp_path / "old.whl").touch()
    assert main([str(tmp_path)]) == 1
    assert "old.whl" in capsys.readouterr().err


@pytest.mark.slow
def test_a_missing_compiler_is_named_before_the_build(tmp_path: Path) -> None:
    project = Path(shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("build")))

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "setup.py", command], cwd=project, env={**os.environ, "CC": "absent-cc -O2"},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    metadata, build = run("egg_info"), run("build")
    assert metadata.returncode == 0, metadata.stderr
    assert build.returncode == 1
    assert "the C compiler (absent-cc) is missing" in build.stderr
    assert "without [compiled]" in build.stderr
    assert "Traceback" not in build.stderr
