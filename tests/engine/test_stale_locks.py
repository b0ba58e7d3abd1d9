"""A stack's lock is taken for left behind only when its engine is surely gone."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bezel.engine.locks.stale_locks import EngineLockFile, live_lock, present_lock, stale_lock_pids


@pytest.fixture
def ended_pid() -> int:
    """A process id that was alive and is not."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(timeout=60)
    return process.pid


def lock(state: Path, name: str, content: object) -> None:
    folder = state / ".pulumi" / "locks" / "organization" / "bezel" / "one"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / f"{name}.json.attrs").write_text("{}")


def test_the_lock_of_a_dead_engine_is_found(tmp_path: Path, ended_pid: int) -> None:
    lock(tmp_path, "a", {"pid": ended_pid, "hostname": socket.gethostname()})
    assert stale_lock_pids(tmp_path, "bezel", "one") == [ended_pid]


@pytest.mark.parametrize(
    "content",
    [
        {"pid": os.getpid(), "hostname": socket.gethostname()},
        {"pid": 1, "hostname": socket.gethostname()},
        {"pid": 2**22 + 1, "hostname": "another machine"},
        {"pid": "?", "hostname": socket.gethostname()},
        {},
        [],
    ],
)
def test_a_lock_that_may_be_alive_is_left_alone_with_all_others(
    tmp_path: Path, ended_pid: int, content: object
) -> None:
    lock(tmp_path, "a", {"pid": ended_pid, "hostname": socket.gethostname()})
    lock(tmp_path, "b", content)
    assert stale_lock_pids(tmp_path, "bezel", "one") == []


def test_another_stack_and_no_lock_at_all_are_no_dead_ones(tmp_path: Path, ended_pid: int) -> None:
    lock(tmp_path, "a", {"pid": ended_pid, "hostname": socket.gethostname()})
    assert stale_lock_pids(tmp_path, "bezel", "two") == []
    assert stale_lock_pids(tmp_path / "empty", "bezel", "one") == []


def test_the_lock_of_an_engine_that_goes_on_is_found_among_others(tmp_path: Path, ended_pid: int) -> None:
    here = socket.gethostname()
    lock(tmp_path, "a", {"pid": ended_pid, "hostname": here})
    lock(tmp_path, "b", {"pid": os.getpid(), "hostname": "another machine"})
    lock(tmp_path, "c", {})
    assert live_lock(tmp_path, "bezel", "one") is None
    lock(tmp_path, "d", {"pid": os.getpid(), "hostname": here, "timestamp": "2026-11-23T08:00:00.123Z"})
    assert live_lock(tmp_path, "bezel", "one") == EngineLockFile(os.getpid(), here, "2026-11-23T08:00:00.123Z")
    assert live_lock(tmp_path, "bezel", "two") is None


def test_any_lock_that_may_be_alive_is_present_and_says_whose_it_is(tmp_path: Path, ended_pid: int) -> None:
    here = socket.gethostname()
    lock(tmp_path, "a", {"pid": ended_pid, "hostname": here})
    assert present_lock(tmp_path, "bezel", "one") is None
    lock(tmp_path, "b", {"pid": 7, "hostname": "another machine", "timestamp": "2026-11-24T00:00:00Z"})
    assert present_lock(tmp_path, "bezel", "one") == "process 7 on another machine, since 2026-11-24T00:00:00Z"
    lock(tmp_path, "b", {"pid": os.getpid(), "hostname": here})
    assert present_lock(tmp_path, "bezel", "one") == f"process {os.getpid()} on {here}"
    lock(tmp_path, "b", "no lock")
    assert present_lock(tmp_path, "bezel", "one") == "an unknown process"
    assert present_lock(tmp_path, "bezel", "another") is None
