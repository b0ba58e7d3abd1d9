"""A killed cloud goes on with its data, and a run that lives keeps its lock. Other kills: `test_kill_points`."""

import os
import signal
from pathlib import Path

import httpx
import pytest

from tests.support.e2e.fault_harness import SERVICE, UNCHANGED, FaultHarness
from tests.support.e2e.kill_points import HOLD, Boundary, KillHarness, Point, begin
from tests.support.e2e.rehearsal import SECONDS
from tests.support.ended import has_ended

CREATES = Point("up", "engine", Boundary("POST", f"/run/v2/{SERVICE.rpartition('/')[0]}", 1), "before")


def test_a_killed_cloud_goes_on_with_its_data(stage: FaultHarness) -> None:
    stage.settle()
    url = stage.service().json()["uri"]
    cloud = stage.endpoint().pid
    os.kill(cloud, signal.SIGKILL)
    assert has_ended(cloud)

    run = stage.rehearsal.local("preview", "l4-qat", *UNCHANGED, "--refresh")
    assert run.code == 0, run.text
    headers = {"Authorization": f"Bearer {stage.rehearsal.token(url)}"}
    assert httpx.get(f"{url}/health", headers=headers, timeout=60).status_code == 200


@pytest.mark.wide
def test_an_engine_that_still_runs_keeps_its_lock(grounds: KillHarness, tmp_path: Path) -> None:
    rehearsal = grounds.copy("up", tmp_path / "previewed")
    try:
        with rehearsal.api() as api:
            process = begin(rehearsal, api, CREATES)
            second = rehearsal.local("up", "l4-qat")
            api.delete(HOLD)
        rest, _ = process.communicate(timeout=SECONDS)
        assert second.code != 0, second.text
        assert "another run is active (pulumi, process " in second.text
        assert process.returncode == 0, rest
    finally:
        rehearsal.stop_cloud()
