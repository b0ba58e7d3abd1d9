"""Only the processes of a run that is over are ended, by the mark that each of them carries."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bezel.engine.run.record import MARK, LastRun

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="other processes' environments can be read on Linux only"
)
Start = Callable[[str, str], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a process of a name that waits, with a mark."""
    running: list[subprocess.Popen[bytes]] = []
    sleep = shutil.which("sleep")
    assert sleep is not None

    def begin(name: str, mark: str) -> "subprocess.Popen[bytes]":
        shutil.copy(sleep, tmp_path / name)
        process = subprocess.Popen([str(tmp_path / name), "60"], env=os.environ | {MARK: mark})
        running.append(process)
        # The kernel takes over a program before it shows its variables.
        until = time.monotonic() + 60
        while mark.encode() not in Path(f"/proc/{process.pid}/environ").read_bytes():
            assert time.monotonic() < until, f"{name} never shows its mark"
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait(60)


def test_what_a_run_left_is_ended_and_nothing_else(tmp_path: Path, start: Start) -> None:
    last = LastRun(tmp_path / "run")
    left, other = start("plugin", last.begin()), start("plugin2", "another run")
    assert last.end_leftovers() == 1
    assert left.wait(60) != 0
    assert other.poll() is None


def test_a_run_lives_as_long_as_its_engine(tmp_path: Path, start: Start) -> None:
    last = LastRun(tmp_path / "run")
    assert not last.is_running()
    mark = last.begin()
    start("plugin", mark)
    assert not last.is_running()
    engine = start("pulumi", mark)
    assert last.is_running()
    engine.kill()
    engine.wait(60)
    assert not last.is_running()


def test_a_folder_without_a_run_has_no_processes(tmp_path: Path) -> None:
    assert LastRun(tmp_path / "none").end_leftovers() == 0


def test_a_record_opens_with_a_mark_and_without_what_was_left(tmp_path: Path, start: Start) -> None:
    last = LastRun(tmp_path / "run")
    left = start("plugin", last.begin())
    last.events.write_text("{}")
    marks = last.open(changes=True)
    assert left.wait(60) != 0
    assert set(marks) == {MARK}
    assert not last.events.exists()


def test_a_record_stays_the_other_runs_while_that_lives(tmp_path: Path, start: Start) -> None:
    last = LastRun(tmp_path / "run")
    engine = start("pulumi", last.begin())
    last.events.write_text("{}")
    assert last.open(changes=True) == {}
    assert engine.poll() is None
    assert last.events.exists()


def test_a_preview_marks_its_processes_and_keeps_earlier_changes(tmp_path: Path) -> None:
    """A preview marks its processes and keeps the changes of the run before."""
    last = LastRun(tmp_path / "run")
    last.begin()
    last.events.write_text("{}")
    assert set(last.open(changes=False)) == {MARK}
    assert last.events.exists()
