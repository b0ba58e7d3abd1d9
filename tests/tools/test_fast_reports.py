"""A worker that reports a test by one message hides no error of its set-up or its end."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

@pytest.fixture
def before():
    raise OSError("no place to begin")

@pytest.fixture
def after():
    yield
    raise OSError("no place to end")

def test_number(): ...
def test_with_set_up(before): ...
def test_with_end(after): ...
def test_wrong(): assert 1 == 2
def test_left_out(): pytest.skip("no need")
"""


SLOW = "not wide and not long"


def run(folder: Path, selection: str, *names: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "conftest.py", folder)
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n  slow: s\n  wide: w\n  wide_except: w\n  wide_cases: w\n  long: l\n"
    )
    marks = "\npytestmark = pytest.mark.slow\n" if selection == SLOW else ""
    (folder / "test_numbers.py").write_text(TESTS + marks)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist.plugin", "-n", "1", "-m", selection, *names]
    # Other plugins import for a second, in both processes.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )


def test_each_outcome_is_counted_once_and_errors_are_reported(tmp_path: Path) -> None:
    ended = run(tmp_path, "not slow")
    assert ended.returncode == 1, ended.stderr
    # Passed are the one without a fixture, and the one whose fixture fails at its end.
    assert re.match(r"1 failed, 2 passed, 1 skipped, 2 errors in ", ended.stdout.splitlines()[-1]), ended.stdout
    assert "no place to begin" in ended.stdout
    assert "no place to end" in ended.stdout


def test_passing_tests_of_the_slow_ones_are_counted_once(tmp_path: Path) -> None:
    ended = run(tmp_path, SLOW, "test_numbers.py::test_number")
    assert ended.returncode == 0, ended.stdout
    assert re.match(r"1 passed in ", ended.stdout.splitlines()[-1]), ended.stdout
