"""A killed cloud goes on with its data, and a run that lives keeps its lock. Other kills: `test_kill_points`."""

import os
import signal
from pathlib import Path

import httpx
import pytest

from bezel_localcloud import control
from tests.support.e2e.kill_points import KillHarness
from tests.support.e2e.rehearsal import SECONDS


def test_a_killed_cloud_goes_on_with_its_data(grounds: KillHarness, tmp_path: Path) -> None:
    rehearsal = grounds.copy("refresh", tmp_path / "deployed")
    try:
        before = rehearsal.outputs()
        status = control.status(rehearsal.cloud)
        assert status is not None
        os.kill(status.pid, signal.SIGKILL)

        run = rehearsal.local("preview", "l4-qat", "--", "--refresh", "--expect-no-changes")
        assert run.code == 0, run.text
        headers = {"Authorization": f"Bearer {rehearsal.token(before['url'])}"}
        assert httpx.get(f"{before['url']}/health", headers=headers, timeout=60).status_code == 200
    finally:
        rehearsal.local("stop")


@pytest.mark.wide
def test_an_engine_that_still_runs_keeps_its_lock(grounds: KillHarness, tmp_path: Path) -> None:
    rehearsal = grounds.copy("up", tmp_path / "previewed")
    try:
        process = rehearsal.start("up", "l4-qat")
        rehearsal.wait_for(process, "Updating")
        second = rehearsal.local("up", "l4-qat")
        rest, _ = process.communicate(timeout=SECONDS)
        assert second.code != 0, second.text
        assert "another run is active (pulumi, process " in second.text
        assert process.returncode == 0, rest
    finally:
        rehearsal.local("stop")
