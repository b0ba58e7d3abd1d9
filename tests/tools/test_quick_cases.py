"""Each case of a table is made for one selection: two quick ones for `make check`, the others for the wider runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MARKS = "slow: s\n  wide: w\n  wide_except: w\n  wide_cases: w\n  long: l\n  clients: c\n  gitops: g\n"
TESTS = """
import pytest

@pytest.mark.parametrize("number", [0, 1, 2, pytest.param(3, marks=pytest.mark.slow), 4, 5, 6, 7])
@pytest.mark.wide_cases("7")
def test_number(number): ...

@pytest.mark.slow
@pytest.mark.parametrize("number", [0, pytest.param(1, marks=pytest.mark.long)])
def test_slow_number(number): ...
"""


@pytest.mark.parametrize(
    ("selection", "numbers", "slow_numbers"),
    [
        ("not slow", "06", ""),
        ("not wide and not long", "0123456", "0"),
    ],
)
def test_a_selection_has_its_cases_of_a_table(tmp_path: Path, selection: str, numbers: str, slow_numbers: str) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers =\n  {MARKS}")
    (tmp_path / "test_numbers.py").write_text(TESTS)
    collected = collect(tmp_path, "-m", selection)
    expected = [f"test_number[{number}]" for number in numbers]
    assert collected == expected + [f"test_slow_number[{number}]" for number in slow_numbers]


def test_a_case_that_is_named_is_known_whatever_is_selected(tmp_path: Path) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers =\n  {MARKS}")
    (tmp_path / "test_numbers.py").write_text(TESTS)
    assert collect(tmp_path, "-m", "not slow", "test_numbers.py::test_number[1]") == []


def collect(folder: Path, *arguments: str) -> list[str]:
    """Return the names of the tests that are collected in a folder."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *arguments]
    run = subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert run.returncode in {0, 5}, run.stdout + run.stderr  # 5: no test is selected
    return [line.partition("::")[2] for line in run.stdout.splitlines() if "::" in line]
