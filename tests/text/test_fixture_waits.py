"""Modules that start a real vLLM: their timeout is above the wait for its start, and no server outlives its test."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ended import has_ended
from tests.support.real_vllm import SECONDS, TIMEOUT

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
MODULES = [
    path
    for path in sorted(TESTS.rglob("test_*.py"))
    if re.search(r"import .*\breal_vllm\b|real_vllm import", path.read_text(encoding="utf-8"))
    and "tests.support.real_vllm" in path.read_text(encoding="utf-8")
    and path.name not in (Path(__file__).name, "test_real_server_end.py")  # the other one waits for its own seconds
]
_PARENT = """
import sys, time
from tests.support.real_vllm import start_bound
child = start_bound([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def timeout_of(text: str) -> float:
    """The timeout of all tests of a module, in seconds; 0 where it has none of its own."""
    marks = re.search(r"^pytestmark = (.*)$", text, re.MULTILINE)
    match = re.search(r"mark\.timeout\((?:(\d+) \* )?(\d+|TIMEOUT)\)", marks[1]) if marks else None
    if match is None:
        return 0.0
    return float(match[1] or 1) * float(TIMEOUT if match[2] == "TIMEOUT" else match[2])


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module_that_starts_a_real_vllm_has_a_timeout_above_its_wait(path: Path) -> None:
    assert timeout_of(path.read_text(encoding="utf-8")) > SECONDS


def test_timeout_of_a_module_is_read() -> None:
    assert len(MODULES) == 7
    assert timeout_of("pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]\n") == 500
    assert timeout_of("pytestmark = [pytest.mark.timeout(TIMEOUT)]\n") == TIMEOUT
    assert timeout_of("pytestmark = [pytest.mark.timeout(2 * TIMEOUT)]\n") == 2 * TIMEOUT
    assert timeout_of("pytestmark = pytest.mark.slow\n\n@pytest.mark.timeout(900)\ndef test(): ...\n") == 0


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_started_server_ends_with_its_killed_parent(ending: signal.Signals) -> None:
    """pytest-timeout ends the whole process, and then no fixture is torn down."""
    with subprocess.Popen(
        [sys.executable, "-c", _PARENT], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        lines = {parent.stdout.readline().strip(), parent.stdout.readline().strip()}
        child = int(next(line for line in lines if line.isdecimal()))
        assert "up" in lines
        parent.send_signal(ending)
        parent.wait(60)
    assert has_ended(child)
