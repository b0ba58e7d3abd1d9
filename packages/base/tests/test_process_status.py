"""A process lives until something ends it, not until it is gone."""

import os
import signal
import subprocess
import sys

import pytest

from bezel_base.process_status import has_ended, is_running


@pytest.fixture
def process():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        yield started
        started.kill()


def test_a_process_that_waits_lives_and_so_does_this_one_and_anothers(process):
    assert is_running(process.pid)
    assert is_running(os.getpid())
    assert is_running(1)


def test_a_process_that_is_stopped_lives(process):
    os.kill(process.pid, signal.SIGSTOP)
    assert is_running(process.pid)


def test_a_killed_process_is_dead_before_it_is_gone(process):
    os.kill(process.pid, signal.SIGKILL)
    assert not is_running(process.pid)
    os.kill(process.pid, 0)  # It is still there: no process has taken its exit status.


def test_a_process_that_has_ended_is_dead_and_so_is_one_that_never_was(process):
    process.communicate(b"\n", timeout=60)
    assert not is_running(process.pid)
    assert not is_running(2**22 + 1)


def test_a_killed_process_has_ended_before_its_parent_notices(process):
    """Not before it is killed."""
    assert not has_ended(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(process.pid)
    assert has_ended(2**22 + 1)
