"""A killed cloud goes on with its data, and a run that lives keeps its lock. Other kills: `test_kill_points`."""

import os
import signal
from pathlib import Path

import httpx
import pytest

from tests.support.e2e.fault_harness import UNCHANGED, FaultHarness
from tests.support.e2e.kill_points import KillHarness
from tests.support.e2e.rehearsal import SECONDS


def test_a_killed_cloud_goes_on_with_its_data(stage: FaultHarness) -> None:
    stage.settle()
    url = stage.service().json()["uri"]
    os.kill(stage.endpoint().pid, signal.SIGKILL)

    run = stage.rehearsal.local("preview", "l4-qat", *UNCHANGED, "--refresh")
    assert run.code == 0, run.text
    headers = {"Authorization": f"Bearer {stage.rehearsal.token(url)}"}
    assert httpx.get(f"{url}/health", headers=headers, timeout=60).status_code == 200


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
        rehearsal.stop_cloud()
