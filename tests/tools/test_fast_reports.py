"""A worker that reports a fast test by one message hides no error of its set-up or its end."""

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


def run(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "conftest.py", folder)
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers =\n  slow: s\n  wide: w\n  wide_except: w\n  wide_cases: w\n  long: l\n"
    )
    (folder / "test_numbers.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-m", "not slow", *names]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


def test_errors_of_set_up_and_end_are_reported(tmp_path: Path) -> None:
    ended = run(tmp_path)
    assert ended.returncode == 1, ended.stderr
    assert "1 failed, 2 passed, 1 skipped, 2 errors" in ended.stdout
    assert "no place to begin" in ended.stdout
    assert "no place to end" in ended.stdout


def test_passing_tests_are_counted_once(tmp_path: Path) -> None:
    ended = run(tmp_path, "test_numbers.py::test_number")
    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout
    assert "error" not in ended.stdout
