"""The workers of a run are forks of one process that has collected, and differ in nothing else from xdist's own."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FORKS = Path("tests/support/worker_forks")
IMPORTS = """
import os, signal, sys, threading
import pytest

with open("imports", "a") as file:
    print(os.getpid(), file=file)
"""


def start(folder: Path, source: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start pytest with workers on one module, in a session of its own as from a terminal."""
    shutil.copy(ROOT / "conftest.py", folder)
    shutil.copytree(ROOT / FORKS, folder / FORKS, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    (folder / "test_module.py").write_text(IMPORTS + source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist.plugin", *arguments, "test_module.py"]
    return subprocess.Popen(
        command,
        cwd=folder,
        # Other plugins import for a second, in both processes.
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(folder: Path, source: str, *arguments: str) -> tuple[int, str]:
    """Run pytest with workers on one module; its exit code and what it printed."""
    process = start(folder, source, *arguments)
    output, _ = process.communicate(timeout=100)
    return process.returncode, output


def count_imports(folder: Path) -> int:
    return len((folder / "imports").read_text().splitlines())


def test_workers_share_one_import_and_nothing_else(tmp_path: Path) -> None:
    source = """
def test_identity(worker_id, tmp_path_factory, testrun_uid):
    environment = [os.environ["PYTEST_XDIST_" + name] for name in ("WORKER", "TESTRUNUID")]
    assert environment == [worker_id, testrun_uid]
    assert tmp_path_factory.getbasetemp().name == "popen-" + worker_id
    assert sys.stdin is not sys.__stdin__ and os.read(0, 1) == b""
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"]

@pytest.mark.parametrize("number", range(20))
def test_output(worker_id, number):
    print("printed by", worker_id)
    os.write(1, f"written by {worker_id}\\n".encode())
    raise AssertionError(worker_id)
"""
    code, output = run(tmp_path, source, "-n", "3", "--dist", "each")
    assert code == 1, output
    assert "60 failed, 3 passed" in output
    reports = re.split(r"_+ test_output\[\d+\] _+", output.partition("short test summary")[0])[1:]
    assert len(reports) == 60
    for report in reports:
        (worker,) = set(re.findall(r"AssertionError: (gw\d)", report))
        assert f"printed by {worker}\nwritten by {worker}\n" in report
    assert count_imports(tmp_path) == 1


def test_worker_that_dies_fails_its_test_and_is_replaced(tmp_path: Path) -> None:
    source = """
@pytest.mark.parametrize("number", range(6))
def test_number(number):
    if number in (1, 4):
        os.kill(os.getpid(), signal.SIGKILL)
"""
    code, output = run(tmp_path, source, "-n", "2", "--dist", "worksteal")
    assert code == 1, output
    assert "2 failed, 4 passed" in output
    for number in (1, 4):
        assert re.search(rf"worker 'gw\d' crashed while running 'test_module.py::test_number\[{number}\]'", output)
    assert count_imports(tmp_path) == 1


@pytest.mark.parametrize(
    ("obstacle", "message"),
    [
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", "2 threads run after the imports"),
        ("import socket; PAIR = socket.socketpair()", "the imports opened socket:"),
    ],
)
def test_process_that_cannot_be_forked_leaves_xdist_alone(tmp_path: Path, obstacle: str, message: str) -> None:
    code, output = run(tmp_path, f"{obstacle}\ndef test_nothing(): ...\n", "-n", "2")
    assert code == 0, output
    assert "1 passed" in output
    assert f"no worker is forked, each collects by itself: {message}" in output
    assert count_imports(tmp_path) == 3


def test_error_in_a_module_fails_the_run(tmp_path: Path) -> None:
    code, output = run(tmp_path, "def test_nothing(): ...\nraise OSError('no place to begin')\n", "-n", "2")
    assert code == 1, output
    assert "E   OSError: no place to begin" in output
    assert "2 errors in" in output  # as xdist counts it: once for each worker
    assert count_imports(tmp_path) == 1


def test_interrupt_ends_the_run_and_its_workers(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    source = """
@pytest.mark.parametrize("number", range(4))
def test_wait(number):
    os.write(os.open("begun", os.O_WRONLY), b"1")
    signal.pause()
"""
    process = start(tmp_path, source, "-n", "2")
    with (tmp_path / "begun").open() as begun:
        begun.read(2)
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=100)  # all have closed their output
    assert process.returncode == pytest.ExitCode.INTERRUPTED, output
    assert "KeyboardInterrupt" in output
