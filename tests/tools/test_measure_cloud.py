"""The localcloud of a measurement ends with it: a kill leaves neither the daemon nor the folder."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bezel_base.process_status import has_ended

ROOT = Path(__file__).parents[2]
MEASURES = """
import sys
from bezel_localcloud import control
from tools.measure.own_cloud import own_cloud

with own_cloud() as (folder, cloud):
    print(folder, control.start(cloud, speed=10_000).pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.wide_except("9")
@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, None])
def test_a_daemon_of_a_measurement_ends_with_it(ending: signal.Signals | None) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", MEASURES], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout
        folder, pid = process.stdout.readline().split()
        assert not has_ended(int(pid))
        if ending is not None:
            process.send_signal(ending)
        process.communicate(timeout=60)
    until = time.monotonic() + 60
    while time.monotonic() < until and (not has_ended(int(pid)) or Path(folder).exists()):
        time.sleep(0.05)
    assert has_ended(int(pid))
    assert not Path(folder).exists()
