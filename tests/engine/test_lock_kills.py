"""A process that is killed at any request of its lock leaves a bucket in which the next one gets the lock at once."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.gitops.fake_bucket import fake_bucket
from tests.support.rest.fake_google import Answer

pytestmark = pytest.mark.slow
# Two processes of a machine: the first is killed by the server at one of its requests.
HOLDER = """
import os, sys
from bezel.engine.locks.taker import Surroundings, hold
from bezel.engine.state.bucket import StateBucket
around = Surroundings(os.environ, lambda run: "unknown", lambda line: print(line, flush=True))
with StateBucket.of("gs://states") as states:
    for _ in range(int(sys.argv[1])):
        with hold(states, "bezel", "dev", 0, around):
            print("held", flush=True)
            sys.stdin.readline()
"""
REQUESTS = ["read", "create", "list", "delete"]


def holder(bucket, times=1):
    environ = {"PATH": os.environ["PATH"], "STORAGE_EMULATOR_HOST": bucket.server.url}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, "-c", HOLDER, str(times)], env=environ, **pipes)


def test_a_lock_is_free_for_the_next_after_a_kill_at_any_request():
    with fake_bucket() as bucket:
        killed = []
        for number in range(2 * len(REQUESTS)):
            at, is_served = divmod(number, 2)
            left = [at]
            process = holder(bucket)

            def strike(_, process=process, left=left):
                left[0] -= 1
                if left[0] == -1:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    return Answer(reset=True)  # of the gate: the request never arrived
                return None

            bucket.gate, bucket.after = (None, strike) if is_served else (strike, None)
            process.communicate("\n\n", timeout=60)
            assert process.returncode == -signal.SIGKILL, f"not killed at {REQUESTS[at]}"
            bucket.gate = bucket.after = None
            killed.append(sorted(bucket.objects))
        # Only the kills between the creation and the deletion leave an object, which the next process replaces.
        assert killed == [[], [], [], *[["locks/bezel/dev.json"]] * 4, []]

        first = holder(bucket)
        assert first.stdout.readline() == "held\n"
        first.kill()
        first.wait()
        assert list(bucket.objects) == ["locks/bezel/dev.json"]
        last = holder(bucket, times=2)
        text, _ = last.communicate("\n\n\n", timeout=60)
        assert last.returncode == 0, text
        assert "took over the lock of dev" in text
        assert "its process has ended" in text
        assert text.count("held") == 2
        assert bucket.objects == {}
