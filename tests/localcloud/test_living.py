"""A process lives until something ends it, not until it is gone."""

import os
import signal
import subprocess
import sys

import pytest

from bezel.localcloud.living import lives


@pytest.fixture
def process():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        yield started
        started.kill()


def test_a_process_that_waits_lives_and_so_does_this_one_and_anothers(process):
    assert lives(process.pid)
    assert lives(os.getpid())
    assert lives(1)


def test_a_process_that_is_stopped_lives(process):
    os.kill(process.pid, signal.SIGSTOP)
    assert lives(process.pid)


def test_a_killed_process_is_dead_before_it_is_gone(process):
    os.kill(process.pid, signal.SIGKILL)
    assert not lives(process.pid)
    os.kill(process.pid, 0)  # There it is still: nobody has taken its exit status.


def test_a_process_that_has_ended_is_dead_and_so_is_one_that_never_was(process):
    process.communicate(b"\n", timeout=30)
    assert not lives(process.pid)
    assert not lives(2**22 + 1)
